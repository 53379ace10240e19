from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.study.advice.advise import Advice, _notes, advise
from idiolect.study.advice.draws import Draws, again


@pytest.fixture(scope="module")
def advice() -> Advice:
    """Alike clients with noise, most labels the same."""
    rng = np.random.default_rng(1)
    parts = {}
    for i in range(4):
        x = rng.normal(size=(24, 2))
        parts[f"c{i}"] = (x, (x[:, 0] > 9).astype(int))
    parts["c0"][1][:1] = 1
    return advise(from_arrays(parts), methods=(), splits=2, rounds=2)


def test_the_table_has_the_two_ends_the_portfolio_and_the_baselines(advice: Advice) -> None:
    names = [line.name for line in advice.lines]
    assert names == [
        *("local", "fedavg", "blend", "portfolio", "by-size", "chosen"),
        *("own guess", "pooled guess", "own logistic", "pooled logistic", "pooled logistic without clients"),
        "pooled trees",
    ]
    local = advice.line("local")
    assert local.gap is None
    assert local.hurt == local.surely == 0


def test_gaps_are_losses_below_training_alone(advice: Advice) -> None:
    local = advice.line("local").loss
    for line in advice.lines[1:]:
        assert line.gap is not None
        assert line.gap.mean == pytest.approx(local - line.loss, abs=1e-9)


def test_a_rare_label_is_told(advice: Advice) -> None:
    assert any("99.0 % of the rows have the label '0'" in note for note in advice.notes)


def test_every_division_of_a_client_is_in_its_portfolio(advice: Advice) -> None:
    assert {sum(kept.values()) for kept in advice.kept.values()} == {advice.splits}
    assert {*advice.kept} == {"c0", "c1", "c2", "c3"}


@pytest.mark.second
def test_methods_that_had_not_finished_are_named_in_one_note() -> None:
    rng = np.random.default_rng(1)
    parts = {f"c{i}": (x := rng.normal(size=(24, 2)), (x[:, 0] > 0).astype(int)) for i in range(3)}
    short = advise(from_arrays(parts), methods=(), splits=2, rounds=1, baselines="regressions")
    assert [note for note in short.notes if "still falling" in note] == [
        "local, fedavg: validation loss was still falling in round 1; give --rounds more"
    ]
    assert not any(line.name.endswith("trees") for line in short.lines)
    assert any(line.name == "own logistic" for line in short.lines)


@pytest.mark.second
def test_without_baselines_only_methods_and_policies_are_shown() -> None:
    rng = np.random.default_rng(1)
    data = from_arrays({f"c{i}": (x := rng.normal(size=(24, 2)), (x[:, 0] > 0).astype(int)) for i in range(3)})
    bare = advise(data, methods=(), splits=2, rounds=1, baselines="none")
    assert [line.name for line in bare.lines] == ["local", "fedavg", "blend", "portfolio", "by-size", "chosen"]
    with pytest.raises(ConfigError, match="baselines = 'trees' is not one of all, regressions, none"):
        advise(data, methods=(), splits=2, rounds=1, baselines="trees")  # type: ignore[arg-type]


def test_a_method_that_ends_at_a_limit_of_its_own_is_named(advice: Advice) -> None:
    """Its limit does not follow the user's rounds; in most divisions it is the chosen round."""
    rng = np.random.default_rng(1)
    parts = {f"c{i}": (x := rng.normal(size=(24, 2)), (x[:, 0] > 0).astype(int)) for i in range(3)}
    draws = Draws(again(from_arrays(parts)), 3)
    for rounds, told in (((400, 364, 400), True), ((400, 364, 72), False)):
        choice = replace(advice.choices[0], name="boosted-intercept", rounds=rounds, validation=(0.5,) * 3)
        notes = " ".join(_notes(draws, [choice], advice.lines, 60, {"boosted-intercept": 400}))
        assert ("boosted-intercept: validation loss was still falling at its limit of 400 rounds" in notes) is told
