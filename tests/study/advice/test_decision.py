from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from idiolect.study.advice import decision as rule
from idiolect.study.advice.decision import (
    FEWEST_OF_CLIENT,
    MARGIN,
    SHARE,
    Decision,
    alone_of,
    beating,
    calls,
    decide,
    gap,
    ranked,
    words_of,
)
from idiolect.study.advice.policies import BY_SIZE, CHOSEN, PORTFOLIO, choices_of
from idiolect.study.advice.scored import Candidate
from idiolect.study.analyse.intervals import Difference, resampled

CLIENTS, ROWS, DRAWS = 4, 10, 8
OWNERS = np.repeat(np.arange(CLIENTS), ROWS)
NAMES = tuple(f"c{i}" for i in range(CLIENTS))


def of(name: str, kind: str, loss: float, noise: float = 0.01, seed: int = 0, rows: int = ROWS) -> Candidate:
    """A candidate with this loss everywhere, and noise from row to row."""
    rng = np.random.default_rng([seed, *map(ord, name)])
    parts = [tuple(loss + noise * rng.normal(size=CLIENTS * rows) for _ in range(DRAWS)) for _ in range(2)]
    return Candidate(name, kind, parts[0], parts[1])


def ends(difference: Difference) -> tuple[float, float]:
    """The ends of an interval that is there."""
    assert difference.low is not None
    assert difference.high is not None
    return difference.low, difference.high


def asked(
    candidates: Sequence[Candidate],
    bars: Sequence[Candidate] = (),
    owners: tuple[np.ndarray, np.ndarray] = (OWNERS, OWNERS),
) -> Decision:
    """The verdict with the policies that choose among these candidates, `chosen` first."""
    own, small, chosen = choices_of(candidates, owners, CLIENTS)
    return decide(candidates, [chosen, own, small], owners[1], NAMES, 1 / 3, bars)


def verdict(local: float, shared: float, personal: float, noise: float = 0.01) -> Decision:
    candidates = [
        of("local", "alone", local, noise),
        of("fedavg", "shared", shared, noise),
        of("ditto", "personal", personal, noise),
    ]
    return asked(candidates)


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
    assert ends(worse.gain)[1] > MARGIN
    assert worse.outcome == "unclear"
    assert verdict(1.0, 1.0, 1.0, noise=0.001).outcome == "alone"


def test_models_that_are_the_same_gain_nothing() -> None:
    """A gap that is 0 in every division has no interval, and nobody should federate for it."""
    local, same = of("local", "alone", 1.0), of("local", "shared", 1.0)
    found = asked([local, Candidate("fedavg", "shared", same.validation, same.test)])
    assert (found.gain.mean, found.gain.low, found.outcome) == (0, None, "alone")
    assert found.why == "the federated models have the same loss as local training in every division"
    assert {one.call for one in found.clients} == {"cannot be told"}
    assert {one.p for one in found.clients} == {1.0}
    lower = tuple(rows - 0.5 for rows in local.test)
    found = asked([local, Candidate("fedavg", "shared", lower, lower)])
    assert (found.outcome, found.why) == ("unclear", "the gain has no interval: it is equal in every division")


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
    decision = asked(candidates, owners=(owners, owners))
    assert decision.outcome == "unclear"
    assert "test rows" in decision.why
    assert decision.beyond is None


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
    return asked([LOCAL, *candidates])


def test_candidates_are_ranked_by_their_validation_loss_over_all_rows_and_divisions() -> None:
    some = [constant(name, "shared", around(1.0, 0.1), [loss, 0.5]) for name, loss in (("a", 0.4), ("b", 0.1))]
    assert [one.name for one in ranked([*some, constant("c", "alone", [9.0] * 8, 0.4)])] == ["b", "c", "a"]


@pytest.mark.parametrize("sign", [1, -1])
def test_p_values_are_adjusted_as_the_graph_of_bretz_and_others_says(sign: int) -> None:
    """The first policy has 80 % of the error rate, and passes it on to the others' Holm if it is better."""
    gains = {"a": 0.17, "b": 0.42, CHOSEN: 0.2 * sign, "portfolio": -0.3, "by-size": 0.02}
    kinds = dict(zip(gains, ("shared", "personal", "policy", "portfolio", "policy"), strict=True))
    made = [constant(name, kinds[name], around(1 - gain, 0.1), 0.0) for name, gain in gains.items()]
    found = rule.tested(made[:2], made[2:], LOCAL, 1 / 3)
    assert [(one.name, one.kind) for one in found] == [*kinds.items()]
    error = 0.1 * np.sqrt(8 / 7 * (1 / 8 + 1 / 3))
    p = {name: 2 * float(student.sf(abs(gain) / error, DRAWS - 1)) for name, gain in gains.items()}
    assert p["b"] < p["portfolio"] < p["a"] < p["by-size"]
    first, second = 4 * p["b"], 3 * p["portfolio"]
    holm = {"b": first, "portfolio": second, "a": 2 * p["a"], "by-size": p["by-size"]}
    assert first < second < holm["a"] < holm["by-size"]
    gate = p[CHOSEN] / 0.8 if sign > 0 else 1.0
    expected = {name: min(max(gate, one), one / 0.2, 1.0) for name, one in holm.items()}
    expected[CHOSEN] = gate
    assert {one.name: one.p for one in found} == pytest.approx(expected, rel=1e-6)
    better = {one.name for one in found if one.better}
    assert better == ({"b", CHOSEN} if sign > 0 else {"b"})
    assert SHARE == 0.8


def test_the_gate_holds_back_what_is_sure_by_itself_only_within_the_whole_rate() -> None:
    """Two policies equal local training: Holm triples the p of the one candidate, a fifth of the rate makes it 15."""
    equal = [constant(name, "policy", [1.0] * 8, 0.0) for name in ("portfolio", "by-size")]
    one = constant("a", "shared", around(0.76, 0.1), 0.0)
    p = gap(one, LOCAL, 1 / 3).p
    assert p is not None
    for policy, expected in ((around(0.5, 0.01), 3 * p), (around(1.5, 0.01), 15 * p), ([1.0] * 8, 15 * p)):
        found = rule.tested([one], [constant(CHOSEN, "policy", policy, 0.0), *equal], LOCAL, 1 / 3)
        assert found[0].p == pytest.approx(min(expected, 1.0))
        assert [each.p for each in found[2:]] == [1.0, 1.0]


def test_a_personal_model_that_is_better_on_average_only_gives_way_to_the_shared_one() -> None:
    """Its mean gain over the shared one is 0.1; the half-width 2.36 * 0.2 * sqrt(8 / 7 * (1 / 8 + 1 / 3)) = 0.34."""
    shared = constant("fedavg", "shared", around(0.5, 0.001), 0.2)
    decision = decided(shared, constant("ditto", "personal", around(0.4, 0.2), 0.1))
    assert {one.name for one in decision.tested if one.better} >= {"fedavg", "ditto"}
    assert decision.beyond is not None
    assert decision.beyond.mean == pytest.approx(0.1)
    half = 2.364624 * 0.199 * np.sqrt(8 / 7 * (1 / 8 + 1 / 3))
    assert ends(decision.beyond)[1] - 0.1 == pytest.approx(half, rel=1e-4)
    assert (decision.outcome, decision.method) == ("shared", "fedavg")
    assert decision.gain.mean == pytest.approx(0.5)
    sure = decided(shared, constant("ditto", "personal", around(0.4, 0.01), 0.1))
    assert (sure.outcome, sure.method) == ("personal", "ditto")
    assert sure.gain.mean == pytest.approx(0.6)
    later = decided(shared, constant("ditto", "personal", around(0.4, 0.01), 0.3))
    assert (later.outcome, later.method) == ("shared", "fedavg")  # validation rows rank it first


def test_a_shared_model_that_does_not_surely_gain_is_not_advised_though_the_personal_one_is_no_better() -> None:
    """The policies are the personal one, which surely gains; the shared one gains as much on average only."""
    decision = decided(
        constant("fedavg", "shared", around(0.5, 0.9), 0.2), constant("ditto", "personal", around(0.5, 0.01), 0.1)
    )
    assert decision.beyond is not None
    assert ends(decision.beyond)[0] < 0
    assert (decision.outcome, decision.method) == ("personal", "ditto")


def test_the_advice_is_the_first_by_validation_among_those_that_are_better() -> None:
    """The one that validation rows rank first is better on average only."""
    decision = decided(
        constant("fedavg", "shared", around(0.5, 0.9), 0.1),
        constant("ifca", "shared", around(0.8, 0.001), 0.3),
        constant("ditto", "shared", around(0.9, 0.001), 0.2),
    )
    assert {one.name for one in decision.tested if one.better} == {"ifca", "ditto"}
    assert (decision.outcome, decision.method, decision.share) == ("shared", "ditto", 0.0)


@pytest.mark.parametrize("kind", ["shared", "personal"])
def test_a_policy_alone_is_the_answer(kind: str) -> None:
    """Each is good in the half of the divisions in which validation rows prefer it, and bad in the other."""
    good, bad = around(0.5, 0.001)[:4], around(1.6, 0.001)[:4]
    decision = decided(
        constant("one", kind, [*good, *bad], [0.1] * 4 + [0.8] * 4),
        constant("other", kind, [*bad, *good], [0.9] * 4 + [0.2] * 4),
    )
    assert {one.name for one in decision.tested if one.better} == {CHOSEN, PORTFOLIO, BY_SIZE}
    assert (decision.outcome, decision.method, decision.share) == ("personal", CHOSEN, 1.0)
    assert decision.gain.mean == pytest.approx(0.5)
    assert [one.gap.mean for one in decision.clients] == pytest.approx([0.5] * CLIENTS)


@pytest.mark.parametrize(("apart", "method"), [(0.4, CHOSEN), (0.04, CHOSEN), (0.01, "one"), (0.0, "one")])
def test_a_policy_gives_way_to_the_first_method_unless_it_is_surely_better(apart: float, method: str) -> None:
    """Validation rows of two clients prefer one method, those of the others the other; on test rows only if apart.

    The gain is half of `apart`: of local training's loss of 1, 0.02 is worth a policy, and 0.005 is sure but is not.
    """

    def made(name: str, kind: str, worse: np.ndarray, more: float) -> Candidate:
        test = tuple(0.5 + apart * worse[OWNERS] + (0.01 + 5 * more) * sign for sign in UP_AND_DOWN)
        return Candidate(name, kind, (0.1 + more + 0.2 * worse[OWNERS],) * DRAWS, test)

    first = np.array([0.0, 0.0, 1.0, 1.0])
    decision = decided(made("one", "personal", first, 0.0), made("other", "personal", 1 - first, 0.001))
    assert {one.name for one in decision.tested if one.better} == {"one", "other", CHOSEN, PORTFOLIO, BY_SIZE}
    assert (decision.outcome, decision.method) == ("personal", method)
    assert ("policies are not better" in decision.why) == (method == "one")


@pytest.mark.parametrize(
    ("gain", "validation", "outcome"),
    [(0.8 * MARGIN, 0.05, "alone"), (1.2 * MARGIN, 0.05, "unclear"), (0.8 * MARGIN, 7.0, "unclear")],
)
def test_where_every_shared_model_surely_harms_a_mean_gain_that_matters_keeps_the_verdict_open(
    gain: float, validation: float, outcome: str
) -> None:
    """The interval of the personal gain holds 0 and gains that matter; local training is advised only if the mean is
    small, and if validation rows choose it too: otherwise the policies have the same interval."""
    candidates = [
        constant("local", "alone", [1.0] * 8, validation),
        constant("fedavg", "shared", around(2.0, 0.01), 0.2),
        constant("ditto", "personal", around(1 - gain, 0.5), 0.1),
    ]
    decision = asked(candidates)
    assert (decision.method, decision.gain.mean) == ("ditto", pytest.approx(gain))
    low, high = ends(decision.gain)
    assert low < 0 < MARGIN < high
    assert decision.outcome == outcome
    if outcome == "alone":
        assert decision.why == "one shared model is worse, beyond noise, and no federated one gains what matters"
    second = constant("ifca", "shared", around(1.01, 0.5), 0.3)  # one shared model that may be no worse
    assert asked([*candidates, second]).outcome == "unclear"


def test_a_candidate_whose_gain_may_matter_keeps_the_verdict_open_though_the_first_one_gains_nothing() -> None:
    first = constant("fedavg", "shared", around(1.0, 0.001), 0.1)
    assert decided(first).outcome == "alone"
    for other, outcome in ((around(0.98, 0.01), "alone"), (around(0.98, 0.1), "unclear")):
        assert decided(first, constant("ditto", "personal", other, 0.2)).outcome == outcome


def test_the_margin_is_a_share_of_the_loss_of_local_training() -> None:
    """Of a loss of 10, a gain of 0.3 is 3 %, which does not matter, and 0.7 is 7 %, which does."""
    local = constant("local", "alone", [10.0] * 8, 0.05)
    harmful = constant("fedavg", "shared", around(12.0, 0.01), 0.2)
    for gain, outcome in ((0.3, "alone"), (0.7, "unclear")):
        own = constant("ditto", "personal", around(10.0 - gain, 5.0), 0.1)
        decision = asked([local, harmful, own])
        assert (decision.loss, decision.outcome) == (10.0, outcome)
    small = constant("fedavg", "shared", around(9.9, 0.2), 0.2)  # half-width 0.34: the gain ends at 0.44 of 10
    assert asked([local, small]).outcome == "alone"
    small = replace(small, test=tuple(rows - 9 for rows in small.test))
    assert asked([LOCAL, small]).outcome == "unclear"


@pytest.mark.parametrize(
    ("validation", "more", "outcome", "share", "gain"),
    [(0.2, 0.0, "shared", 5 / 8, 0.5), (0.15, 0.0, "personal", 3 / 8, 0.6), (0.2, 0.5, "unclear", 5 / 8, 0.0)],
)
def test_clients_are_called_under_the_candidate_that_it_rests_on(
    validation: float, more: float, outcome: str, share: float, gain: float
) -> None:
    """Validation rows prefer the shared model in divisions 0 to 4, and the personal one in 5 to 7."""
    shared = constant("fedavg", "shared", around(0.5 + more, 0.001), [0.1] * 5 + [0.3] * 3)
    own = constant("ditto", "personal", around(0.4 + more, 0.6 * more + 0.01), validation)
    decision = decided(shared, own)
    assert (decision.outcome, decision.share) == (outcome, share)
    assert decision.method == ("ditto" if outcome == "personal" else "fedavg")
    assert [one.gap.mean for one in decision.clients] == pytest.approx([gain] * CLIENTS)
    assert decision.gain.mean == pytest.approx(gain)
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
        decision = asked(candidates, owners=owners)
        assert (decision.outcome, decision.method) == (outcome, "fedavg")
        assert decision.gain.mean == pytest.approx(0.5)


def test_the_reason_names_what_decided() -> None:
    shared, own = constant("fedavg", "shared", around(0.5, 0.001), 0.2), constant("ditto", "personal", [0.5] * 8, 0.1)
    own = replace(own, test=constant("", "", around(0.5, 0.002), 0.1).test)
    better, no_better = "it is better than local training, beyond noise", "personal models are not better"
    assert decided(shared, own).why.startswith(better)
    assert no_better in decided(shared, own).why
    assert no_better not in decided(shared).why
    personal = decided(shared, constant("ditto", "personal", around(0.3, 0.002), 0.1))
    assert personal.outcome == "personal"
    assert personal.why.startswith(better)
    assert no_better not in personal.why
    nothing = decided(constant("fedavg", "shared", around(1.0, 0.001), 0.1))
    assert nothing.why == "no federated model gains 5 % of the loss of local training"
    wide = decided(constant("fedavg", "shared", around(1.0, 0.9), 0.1))
    assert (wide.outcome, wide.why) == ("unclear", "the interval of the gain holds 0 and gains that would matter")


def test_trees_are_named_where_they_beat_every_candidate_and_policy_beyond_noise() -> None:
    shared, own = constant("fedavg", "shared", around(0.5, 0.01), 0.1), constant("ditto", "personal", [0.6] * 8, 0.2)
    bars = [
        constant("own trees", "baseline", around(0.4, 0.02), 0.1),
        constant("pooled trees", "pooled", around(0.3, 0.03), 0.1),
        constant("pooled logistic", "pooled", around(0.1, 0.001), 0.1),  # no trees: not asked
    ]
    assert beating(bars, [shared, own, LOCAL], 1 / 3) == ("pooled trees", gap(bars[1], shared, 1 / 3))
    assert beating(bars, [shared, own, LOCAL, constant("x", "policy", around(0.3, 0.2), 0.1)], 1 / 3) is None
    assert beating(bars[2:], [shared], 1 / 3) is None
    assert beating([], [shared], 1 / 3) is None
    decision = asked([LOCAL, shared, own], bars)
    assert decision.trees == ("pooled trees", gap(bars[1], shared, 1 / 3))
    assert decided(shared, own).trees is None


def test_what_clients_reach_alone_is_the_better_of_local_training_and_own_regression_on_validation_rows() -> None:
    """Test rows would choose the other one: their losses are not looked at."""
    own = constant("own logistic", "baseline", [1.2] * 8, 6.0)
    assert alone_of(LOCAL, [own]) is own
    assert alone_of(LOCAL, [constant("own logistic", "baseline", [0.2] * 8, 7.5)]) is LOCAL
    assert alone_of(LOCAL, [constant("pooled logistic", "pooled", [0.2] * 8, 0.1)]) is LOCAL
    assert alone_of(LOCAL) is LOCAL


def test_a_gain_over_unfinished_local_training_is_none_where_own_regressions_have_it_too() -> None:
    shared = constant("fedavg", "shared", around(0.8, 0.01), 0.2)
    own = constant("own logistic", "baseline", around(0.78, 0.02), 0.1)
    against_local, against_own = asked([LOCAL, shared]), asked([LOCAL, shared], [own])
    assert (against_local.outcome, against_local.alone) == ("shared", "local")
    assert (against_own.outcome, against_own.alone) == ("alone", "own logistic")
    assert against_own.loss == pytest.approx(0.78)
    assert against_own.gain.mean == pytest.approx(-0.02)
    assert [one.gap.mean for one in against_own.clients] == pytest.approx([-0.02] * CLIENTS)
    assert words_of("own logistic") in against_own.why
