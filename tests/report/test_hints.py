"""Each rule on made curves: where it must speak, and where it must not."""

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest

import idiolect
from idiolect.report.hints import all_hints, diverging, hints, local_ahead, not_learning
from idiolect.study.run.following import Followed, Point

NAN = math.nan
MSE = "mse"


def course(values, losses=None, every=10, samples=1000):
    losses = losses or [1.0] * len(values)
    return tuple(
        Point(every * i, value, loss, samples) for i, (value, loss) in enumerate(zip(values, losses, strict=True))
    )


def run(name="fedavg", metric="accuracy", rounds=100, constant=None, seed=0, **splits):
    courses = {split: models if isinstance(models, dict) else {"global": models} for split, models in splits.items()}
    return Followed(f"c/{name}/seed{seed}", "c", name, name, seed, rounds, "running", metric=metric, courses=courses,
                    constant=constant)  # fmt: skip


def losing(*losses):
    return run(train=course([0.5] * len(losses), list(losses)))


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ((1.0, 0.5, 0.6, 0.8, 1.2), "rose from 0.5 to 1.2 in 30 rounds"),  # above where it began
        ((2.3, 0.1, 0.2, 0.4, 0.8), "rose from 0.1 to 0.8"),  # below it, but by half and more each time
        ((2.3, 2.4, 40.0, 1e9), "rose from 2.3 to 1e+09"),
    ],
)
def test_a_training_loss_that_rises_without_end_diverges(losses, words):
    assert words in diverging(losing(*losses))


@pytest.mark.parametrize(
    "losses",
    [
        (2.3, 1.0, 0.8, 0.7, 0.6),
        (2.3, 2.4, 2.5),  # too few to tell
        (2.3, 0.5, 0.51, 0.52, 0.53),  # rises slowly, far below where it began
        (2.3, 2.31, 2.32, 2.33),  # above where it began by noise
        (1.0, 3.0, 2.0, 3.0, 2.0, 3.0),  # up and down
        (1.0, 2.0, 3.0, 4.0, 3.9),  # falls again
        (1.0, NAN, 2.0, 3.0, 4.0),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_a_training_loss_that_does_not_is_left_in_peace(losses):
    assert diverging(losing(*losses)) is None


def test_a_rising_test_loss_is_not_called_divergence():
    rising = course([0.5] * 5, [1.0, 2.0, 4.0, 8.0, 16.0])
    assert diverging(run(test=rising)) is None


def test_one_model_that_diverges_is_named():
    flat, rising = course([0.5] * 4, [1.0] * 4), course([0.5] * 4, [1.0, 2.0, 4.0, 8.0])
    assert "of 'global'" in diverging(run(train={"personal": flat, "global": rising}))


@pytest.mark.parametrize(
    ("scores", "constant", "words"),
    [
        ((0.1, 0.1, 0.1, 0.1, 0.1), None, "than before round 1 (accuracy 10 %)"),
        ((0.3, 0.2, 0.1, 0.3, 0.25), None, "than before round 1 (accuracy 30 %)"),
        ((0.1, 0.4, 0.4, 0.4, 0.4), 0.4, "than always the most common label (accuracy 40 %)"),
    ],
)
def test_after_a_third_of_the_rounds_a_method_should_have_learnt(scores, constant, words):
    one = run(train=course(scores), constant=constant)
    assert not_learning(one, one.compared).endswith(words)


@pytest.mark.parametrize(
    ("scores", "constant", "rounds"),
    [
        ((0.1, 0.1, 0.1, 0.1), None, 100),  # 30 of 100 rounds are less than a third
        ((0.1, 0.1, 0.1, 0.1, 0.11), None, 100),
        ((0.1, 0.5, 0.41, 0.38, 0.5), 0.4, 100),
        ((0.1, 0.1), None, 10),  # one evaluation after the start does not tell
        ((0.1, NAN, NAN, NAN, NAN), None, 100),
    ],
)
def test_what_has_learnt_or_cannot_tell_yet_is_left_in_peace(scores, constant, rounds):
    one = run(train=course(scores), constant=constant, rounds=rounds)
    assert not_learning(one, one.compared) is None


def test_a_method_with_one_model_that_learns_learns():
    stuck, learns = course([0.9] * 5), course([0.1, 0.3, 0.5, 0.7, 0.8])
    one = run(train={"personal": stuck, "global": learns})
    assert not_learning(one, one.compared) is None


def test_errors_are_better_when_lower():
    stuck = run(metric=MSE, train=course([4.0, 4.5, 4.2, 4.0, 4.1]))
    assert "before round 1 (mse 4)" in not_learning(stuck, stuck.compared)
    learnt = run(metric=MSE, train=course([4.0, 3.0, 2.5, 2.0, 2.1]), constant=3.0)
    assert not_learning(learnt, learnt.compared) is None
    mean = run(metric=MSE, train=course([4.0, 3.5, 3.2, 3.1, 3.1]), constant=3.0)
    assert "always the labels' mean (mse 3)" in not_learning(mean, mean.compared)


def test_what_only_the_test_samples_say_is_no_hint_on_learning():
    one = run(test=course([0.1] * 5), validation=course([0.1] * 5))
    assert not_learning(one, one.compared) is None


def against(local, other, metric="accuracy", samples=1000):
    alone = run("local", metric, test={"local": course(local, samples=samples)})
    one = run(metric=metric, test={"global": course(other, samples=samples)})
    return local_ahead(one, alone, one.compared)


def test_local_is_ahead_where_it_is_at_each_of_the_last_evaluations_and_beyond_noise():
    assert (
        against([0.1, 0.6, 0.7, 0.8], [0.1, 0.5, 0.5, 0.6]) == "Local ahead by 20 points at round 30 (test accuracy)"
    )
    assert against([0.1, 0.6, 0.7, 0.8], [0.1, 0.5, 0.5, 0.6], samples=10) is None  # noise of ten samples
    assert against([0.1, 0.6, 0.5, 0.8], [0.1, 0.5, 0.5, 0.6]) is None  # once it was not
    assert against([0.1, 0.6, 0.7], [0.1, 0.5, 0.5]) is None  # before training it does not count
    assert against([0.1, 0.5, 0.5, 0.6], [0.1, 0.6, 0.7, 0.8]) is None


def test_local_with_lower_errors_is_ahead():
    assert against([9.0, 3.0, 2.0, 1.0], [9.0, 4.0, 4.0, 4.0], MSE) == "Local ahead by 3 at round 30 (test mse)"
    assert against([9.0, 3.0, 2.0, 1.0], [9.0, 3.1, 2.1, 1.005], MSE) is None  # within a hundredth


def test_the_same_rounds_are_compared_also_while_one_is_still_at_work():
    assert "at round 30" in against([0.1, 0.6, 0.7, 0.8, 0.9, 0.95], [0.1, 0.5, 0.5, 0.6])


def test_local_must_be_ahead_of_every_model():
    alone = run("local", test={"local": course([0.1, 0.6, 0.7, 0.8])})
    both = {"global": course([0.1, 0.5, 0.5, 0.5]), "personal": course([0.1, 0.7, 0.8, 0.9])}
    one = run(test=both)
    assert local_ahead(one, alone, one.compared) is None


def test_hints_pair_runs_by_cell_and_seed():
    worse, better = {"global": course([0.1, 0.5, 0.5, 0.5])}, {"local": course([0.1, 0.8, 0.8, 0.8])}
    runs = [run(test=worse), run(test=worse, seed=1), run("local", test=better)]
    found = all_hints(runs)
    assert {name: [hint.kind for hint in told] for name, told in found.items()} == {"c/fedavg/seed0": ["local ahead"]}


def test_a_run_that_diverges_is_told_that_alone_and_one_that_has_nothing():
    one = run(train=course([0.1] * 5, [1.0, 2.0, 4.0, 8.0, 16.0]))
    assert [hint.kind for hint in hints(one, None)] == ["diverging"]
    assert hints(replace(one, status="diverged"), None) == []
    assert hints(replace(one, metric="", courses={}), None) == []


def test_nothing_that_trains_chooses_or_records_reads_a_hint():
    """Hints lie on a floor that only what is shown may import; see also test_structure."""
    package = Path(idiolect.__file__).parent
    readers = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "idiolect.report.hints":
                readers.add(path.relative_to(package).as_posix())
    assert readers == {"report/standing.py"}
