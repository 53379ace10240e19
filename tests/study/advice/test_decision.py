from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from idiolect.study.advice.decision import FEWEST_OF_CLIENT, MARGIN, Decision, best_by_validation, calls, decide, gap
from idiolect.study.advice.scored import Candidate
from idiolect.study.analyse.intervals import resampled

CLIENTS, ROWS, DRAWS = 4, 10, 8
OWNERS = np.repeat(np.arange(CLIENTS), ROWS)
NAMES = tuple(f"c{i}" for i in range(CLIENTS))


def of(name: str, kind: str, loss: float, noise: float = 0.01, seed: int = 0, rows: int = ROWS) -> Candidate:
    """A candidate with this loss everywhere, and noise from row to row."""
    rng = np.random.default_rng([seed, *map(ord, name)])
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


def test_models_that_are_the_same_gain_nothing() -> None:
    """A gap that is 0 in every division has no interval, and nobody should federate for it."""
    local, same = of("local", "alone", 1.0), of("local", "shared", 1.0)
    found = decide([local, Candidate("fedavg", "shared", same.validation, same.test)], (OWNERS, OWNERS), NAMES, 1 / 3)
    assert (found.federated.mean, found.federated.low, found.outcome) == (0, None, "alone")
    assert found.why == "the federated models have the same loss as local training in every division"
    assert {one.call for one in found.clients} == {"cannot be told"}
    assert {one.p for one in found.clients} == {1.0}
    lower = tuple(rows - 0.5 for rows in local.test)
    found = decide([local, Candidate("fedavg", "shared", lower, lower)], (OWNERS, OWNERS), NAMES, 1 / 3)
    assert (found.outcome, found.why) == ("unclear", "the gain has no interval: it is equal in every division")


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


def constant(name: str, kind: str, losses: Sequence[float], validation: Sequence[float] | float) -> Candidate:
    """A candidate with one loss for all rows of a division. validation: of each division, or of all."""
    first = [validation] * len(losses) if isinstance(validation, float) else validation
    rows = [tuple(np.full(CLIENTS * ROWS, loss) for loss in part) for part in (first, losses)]
    return Candidate(name, kind, rows[0], rows[1])


LOCAL = constant("local", "alone", [1.0] * 8, 7.0)
UP_AND_DOWN = (-1, 1) * 4


def around(loss: float, spread: float) -> list[float]:
    """Losses of eight divisions with this mean."""
    return [loss + spread * sign for sign in UP_AND_DOWN]


def decided(*candidates: Candidate) -> Decision:
    return decide([LOCAL, *candidates], (OWNERS, OWNERS), NAMES, 1 / 3)


def test_a_personal_model_that_is_better_on_average_only_does_not_replace_the_shared_one() -> None:
    """Its mean gain over the shared one is 0.1; the half-width 2.36 * 0.3 * sqrt(8 / 7 * (1 / 8 + 1 / 3)) = 0.51."""
    shared = constant("fedavg", "shared", around(0.5, 0.001), 0.1)
    decision = decided(shared, constant("ditto", "personal", around(0.4, 0.3), 0.2))
    assert decision.beyond is not None
    assert decision.beyond.mean == pytest.approx(0.1)
    assert decision.beyond.high - 0.1 == pytest.approx(2.364624 * 0.301 * np.sqrt(8 / 7 * (1 / 8 + 1 / 3)), rel=1e-2)
    assert (decision.outcome, decision.method) == ("shared", "fedavg")
    sure = decided(shared, constant("ditto", "personal", around(0.4, 0.01), 0.2))
    assert (sure.outcome, sure.method) == ("personal", "ditto")


def test_a_shared_model_that_does_not_surely_gain_is_not_advised_though_the_personal_one_is_no_better() -> None:
    """The federated policy is the personal one, which surely gains; the shared one gains as much on average only."""
    decision = decided(
        constant("fedavg", "shared", around(0.5, 0.9), 0.2), constant("ditto", "personal", around(0.5, 0.01), 0.1)
    )
    assert decision.shared.low < 0 < decision.shared.mean
    assert decision.beyond is not None
    assert decision.beyond.low < 0
    assert (decision.outcome, decision.method) == ("personal", "ditto")


@pytest.mark.parametrize(("gain", "outcome"), [(0.8 * MARGIN, "alone"), (1.2 * MARGIN, "unclear")])
def test_where_the_shared_model_surely_harms_a_mean_gain_that_matters_keeps_the_verdict_open(gain, outcome) -> None:
    """The interval of the gain holds 0 and gains that matter; local training is advised only if the mean is small."""
    decision = decided(
        constant("fedavg", "shared", around(2.0, 0.01), 0.2),
        constant("ditto", "personal", around(1 - gain, 0.5), 0.1),
    )
    assert decision.federated.mean == pytest.approx(gain)
    assert decision.federated.low < 0 < MARGIN < decision.federated.high
    assert decision.shared.high < 0
    assert decision.outcome == outcome


def test_the_margin_is_a_share_of_the_loss_of_local_training() -> None:
    """Of a loss of 10, a gain of 0.3 is 3 %, which does not matter, and 0.7 is 7 %, which does."""
    local = constant("local", "alone", [10.0] * 8, 1.0)
    harmful = constant("fedavg", "shared", around(12.0, 0.01), 0.2)
    for gain, outcome in ((0.3, "alone"), (0.7, "unclear")):
        own = constant("ditto", "personal", around(10.0 - gain, 5.0), 0.1)
        decision = decide([local, harmful, own], (OWNERS, OWNERS), NAMES, 1 / 3)
        assert (decision.loss, decision.outcome) == (10.0, outcome)
    small = constant("fedavg", "shared", around(9.9, 0.2), 0.2)  # half-width 0.34: the gain ends at 0.44 of 10
    assert decide([local, small], (OWNERS, OWNERS), NAMES, 1 / 3).outcome == "alone"
    assert decide([LOCAL, replace(small, test=tuple(rows - 9 for rows in small.test))], (OWNERS, OWNERS), NAMES,
                  1 / 3).outcome == "unclear"  # fmt: skip


@pytest.mark.parametrize(
    ("personal_spread", "outcome", "used"), [(0.3, "shared", 0.5), (0.01, "personal", 0.6), (None, "unclear", None)]
)
def test_clients_are_called_under_the_candidate_that_is_advised(personal_spread, outcome, used) -> None:
    """The federated policy takes the shared model in divisions 0 to 4 and the personal one in 5 to 7."""
    validation = [0.1] * 5 + [0.3] * 3
    shared = constant("fedavg", "shared", around(0.5, 0.001), validation)
    own = constant("ditto", "personal", around(0.4, personal_spread or 0.3), 0.2)
    if personal_spread is None:
        shared, own = (replace(one, test=tuple(rows + 0.5 for rows in one.test)) for one in (shared, own))
    decision = decided(shared, own)
    assert decision.outcome == outcome
    policy = [shared.test[i][0] if i < 5 else own.test[i][0] for i in range(8)]
    expected = 1 - (np.mean(policy) if used is None else 1 - used)
    assert [one.gap.mean for one in decision.clients] == pytest.approx([expected] * CLIENTS)
    assert decision.share == pytest.approx(1.0 if used else 5 / 8)
    assert decision.method == ("ditto" if outcome == "personal" else "fedavg")
    assert [one.rows for one in decision.clients] == [ROWS] * CLIENTS
    assert [one.name for one in decision.clients] == list(NAMES)


def test_a_client_with_just_enough_rows_is_called() -> None:
    owners = np.concatenate([np.zeros(FEWEST_OF_CLIENT, int), np.ones(FEWEST_OF_CLIENT - 1, int)])
    local = tuple(np.ones(len(owners)) for _ in range(DRAWS))
    better = tuple(np.full(len(owners), 0.5 + 0.01 * sign) for sign in UP_AND_DOWN)
    called = calls(Candidate("x", "shared", better, better), Candidate("local", "alone", local, local), owners,
                   NAMES[:2], 1 / 3)  # fmt: skip
    assert [(one.call, one.rows) for one in called] == [("gains", 5), ("cannot be told", 4)]


def test_the_p_values_of_clients_are_adjusted_by_benjamini_and_hochberg() -> None:
    """p'_(i) = min over j >= i of m p_(j) / j; a client without enough rows is not among the m."""
    owners = np.concatenate([np.repeat(np.arange(3), ROWS), np.full(FEWEST_OF_CLIENT - 1, 3)])
    local = tuple(np.ones(len(owners)) for _ in range(DRAWS))
    gains = np.array([0.18, 0.5, 0.02, 0.9])
    other = tuple(1 - gains[owners] - 0.1 * sign for sign in UP_AND_DOWN)
    called = calls(Candidate("x", "shared", other, other), Candidate("local", "alone", local, local), owners, NAMES,
                   1 / 3)  # fmt: skip
    p = [resampled([gain + 0.1 * sign for sign in UP_AND_DOWN], 1 / 3).p for gain in gains]
    assert p[1] < 0.01 < p[0] < 0.05 < 3 / 2 * p[0] < p[2]
    assert [one.p for one in called] == pytest.approx([3 / 2 * p[0], 3 * p[1], p[2], 1.0])
    assert [one.call for one in called] == ["cannot be told", "gains", "cannot be told", "cannot be told"]


def test_the_fewest_test_rows_of_a_division_suffice() -> None:
    """Twenty rows are judged, nineteen are not; there are three validation rows, of three of the clients."""
    for rows, outcome in ((20, "shared"), (19, "unclear")):
        owners = np.arange(3), np.arange(rows) % CLIENTS
        local = tuple(np.ones(rows) for _ in range(DRAWS))
        shared = tuple(np.full(rows, 0.5 + 0.001 * sign) for sign in UP_AND_DOWN)
        candidates = [
            Candidate("fedavg", "shared", tuple(each[:3] for each in shared), shared),
            Candidate("local", "alone", tuple(each[:3] for each in local), local),
        ]
        decision = decide(candidates, owners, NAMES, 1 / 3)
        assert (decision.outcome, decision.method) == (outcome, "fedavg")
        assert decision.federated.mean == pytest.approx(0.5)


def test_the_reason_names_what_decided() -> None:
    shared, own = constant("fedavg", "shared", around(0.5, 0.001), 0.1), constant("ditto", "personal", [0.5] * 8, 0.2)
    better, no_better = "the federated models are better than local training", "personal ones are not better"
    assert decided(shared, own).why.startswith(better)
    assert no_better in decided(shared, own).why
    assert no_better not in decided(shared).why
    personal = decided(shared, constant("ditto", "personal", around(0.3, 0.002), 0.2))
    assert personal.outcome == "personal"
    assert personal.why.startswith(better)
    assert no_better not in personal.why
    nothing = decided(constant("fedavg", "shared", around(1.0, 0.001), 0.1))
    assert (nothing.outcome, nothing.why.count("more than 5 % of the loss")) == ("alone", 1)
