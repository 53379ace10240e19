import numpy as np
import pytest

from idiolect.study.advice.decision import FEWEST_OF_CLIENT, MARGIN, Decision, best_by_validation, calls, decide, gap
from idiolect.study.advice.scored import Candidate
from idiolect.study.intervals import resampled

CLIENTS, ROWS, DRAWS = 4, 10, 8
OWNERS = np.repeat(np.arange(CLIENTS), ROWS)
NAMES = tuple(f"c{i}" for i in range(CLIENTS))


def of(name: str, kind: str, loss: float, noise: float = 0.01, seed: int = 0, rows: int = ROWS) -> Candidate:
    """A candidate with this loss everywhere, and noise from row to row."""
    rng = np.random.default_rng([seed, len(name)])
    made = tuple(loss + noise * rng.normal(size=CLIENTS * rows) for _ in range(DRAWS))
    return Candidate(name, kind, made, made)


def verdict(local: float, shared: float, personal: float, noise: float = 0.01) -> Decision:
    candidates = [
        of("local", "alone", local, noise),
        of("fedavg", "shared", shared, noise),
        of("ditto", "personal", personal, noise),
    ]
    return decide(candidates, (OWNERS, OWNERS), NAMES, 1 / 3)


def test_each_truth_has_its_verdict() -> None:
    assert verdict(1.0, 0.5, 0.5).outcome == "shared"
    assert verdict(1.0, 0.8, 0.5).outcome == "personal"
    assert verdict(1.0, 2.0, 1.0).outcome == "alone"
    assert verdict(1.0, 1.0, 1.0, noise=5.0).outcome == "unclear"


def test_a_personal_model_must_beat_the_shared_one_or_the_shared_one_training_alone() -> None:
    assert verdict(1.0, 1.1, 0.5).method == "ditto"
    assert verdict(1.0, 0.5, 0.5).method == "fedavg"


def test_a_gain_that_surely_does_not_matter_is_no_reason_to_federate() -> None:
    worse = verdict(1.0, 1.0 - 0.5 * MARGIN, 1.0, noise=0.5)
    assert worse.federated.high > MARGIN
    assert worse.outcome == "unclear"
    assert verdict(1.0, 1.0, 1.0, noise=0.001).outcome == "alone"


def test_the_policy_is_chosen_by_validation_rows_of_its_division_alone() -> None:
    good = np.zeros(CLIENTS)
    owners = np.arange(CLIENTS)
    one = Candidate("a", "shared", (good, good + 1), (good + 7, good + 7))
    other = Candidate("b", "shared", (good + 1, good), (good + 3, good + 3))
    chosen, names = best_by_validation("best", "shared", [one, other], (owners, owners))
    assert names == ["a", "b"]
    np.testing.assert_array_equal(np.stack(chosen.test), [good + 7, good + 3])


def test_a_gap_is_the_corrected_resampled_interval_of_the_pooled_losses() -> None:
    one, other = of("ab", "shared", 0.5), of("abc", "alone", 1.0)
    expected = resampled([b.mean() - a.mean() for a, b in zip(one.test, other.test, strict=True)], 0.3)
    assert gap(one, other, 0.3) == expected


def test_clients_are_called_by_name_and_small_ones_never() -> None:
    small = FEWEST_OF_CLIENT - 1
    owners = np.concatenate([np.repeat([0, 1, 2], ROWS), np.full(small, 3)])
    rng = np.random.default_rng(0)
    base = [1.0 + 0.01 * rng.normal(size=len(owners)) for _ in range(DRAWS)]
    better = np.select([owners == 0, owners == 1, owners == 3], [0.5, -0.5, 0.5], 0.0)
    local = Candidate("local", "alone", tuple(base), tuple(base))
    noisy = [rows - better + 0.01 * rng.normal(size=len(owners)) for rows in base]
    called = calls(Candidate("x", "shared", tuple(noisy), tuple(noisy)), local, owners, NAMES, 1 / 3)
    assert [one.call for one in called] == ["gains", "loses", "cannot be told", "cannot be told"]
    assert called[3].p == 1.0
    assert called[3].gap.mean == pytest.approx(0.5, abs=0.02)


def test_nobody_is_called_if_all_clients_are_small() -> None:
    few = tuple(rows[:CLIENTS] for rows in of("local", "alone", 1.0).test)
    local = Candidate("local", "alone", few, few)
    half = tuple(rows / 2 for rows in few)
    called = calls(Candidate("x", "shared", half, half), local, np.arange(CLIENTS), NAMES, 1 / 3)
    assert {one.call for one in called} == {"cannot be told"}


def test_too_few_rows_are_too_few_whatever_the_gain() -> None:
    candidates = [of("local", "alone", 9.0, rows=1), of("fedavg", "shared", 0.1, rows=1)]
    owners = np.arange(CLIENTS)
    decision = decide(candidates, (owners, owners), NAMES, 1 / 3)
    assert decision.outcome == "unclear"
    assert "test rows" in decision.why
    assert decision.personal is None
