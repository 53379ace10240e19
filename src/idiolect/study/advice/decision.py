"""From the losses of frozen candidates to a verdict: federate or not, with what, and for whom.

The claim is about these clients, with other rows of theirs to train and test on; so the unit is the division. Clients
are not: they are the ones that decide, not a sample of others. The gap of two candidates in one division is the mean
over all test rows; over divisions it has the corrected resampled t interval (`intervals.resampled`), which allows for
the rows that divisions share.

The rule. L is what clients reach by themselves, see `alone_of`. Tested against L are every federated candidate and
four policies, which mix the candidates or choose among them by validation rows, see `policies`: `blend`,
`portfolio`, `by-size` and `chosen`.
Their p values are adjusted for their number: `blend` has four fifths of the error rate of 5 %, all others share the
rest by Holm's rule, and the whole once `blend` is better (Bretz et al., "A graphical approach to sequentially
rejective multiple test procedures", Statistics in Medicine 28, 2009).
1. Too few rows: with fewer than `FEWEST` test rows in a division, the verdict is inconclusive.
2. Federate if a candidate or a policy is better than L after the adjustment. The answer is the one with the least
   validation loss, mean over divisions, among those that are better. It gives way to the best simpler one of these,
   unless its loss is lower than that one's, the interval excluding 0. A shared model is simpler than a personal one,
   and that is simpler than a policy, whose further gain must be `WORTH` of L's loss.
3. Do not federate if no candidate has a mean gain of a `MARGIN` of L's loss, and either all their intervals end below
   it, or every shared model is surely worse than L, and the policies' intervals end below it or their gains are not
   positive: what all clients share is then not what each of them needs.
4. Otherwise the verdict is inconclusive.
A client gains or loses if its own gap is not 0 beyond noise; of the clients named so, at most 5 % are wrong on
average (Benjamini, Hochberg, "Controlling the false discovery rate", JRSS B 1995). A client with fewer than
`FEWEST_OF_CLIENT` test rows is never called.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

from idiolect.study.advice.policies import KIND, Policy, first_of
from idiolect.study.advice.scored import Candidate, by_client, pooled
from idiolect.study.analyse.intervals import ALPHA, Difference, holm, resampled

MARGIN = 0.05  # of Local's loss: a gain below does not matter
FEWEST = 20
FEWEST_OF_CLIENT = 5

OWN = {"own logistic": "own logistic regression", "own ridge": "own ridge regression"}
"""Bars of a client's own rows that may be L, as sentences call them."""

SHARE = 0.8
"""Of the error rate, for the first policy."""
WORTH = 0.01
"""Of L's loss: what a policy must gain over the best method, since it runs several."""

_GIVES_WAY = (
    (KIND, ("personal", "shared"), "policies are not better by what is worth it"),
    ("personal", ("shared",), "personal models are not better than the shared one beyond noise"),
)
"""What gives way to which simpler kinds, and what it means that it is not surely better."""

Outcome = Literal["alone", "shared", "personal", "unclear"]
Call = Literal["gains", "loses", "cannot be told"]


@dataclass(frozen=True)
class ClientCall:
    """One client under the federated candidate compared with L.

    gap: L's loss minus the candidate's. p: adjusted over the clients. rows: test rows in a division.
    """

    name: str
    call: Call
    gap: Difference
    p: float
    rows: int


@dataclass(frozen=True)
class Tested:
    """A candidate or policy compared with L. gap: L's loss minus its; p: adjusted."""

    name: str
    kind: str
    gap: Difference
    p: float

    @property
    def better(self) -> bool:
        """Whether its loss is lower beyond noise, after the adjustment."""
        return self.p < ALPHA and self.gap.mean > 0


@dataclass(frozen=True)
class Decision:
    """The verdict. method: the federated candidate or policy that it rests on; share: of the divisions whose
    validation rows rank it first among its like, the federated candidates or the policies.

    gain: of that candidate over L. beyond: the best personal candidate against the best shared one, or None. A
    positive mean is a lower loss. tested: all candidates and policies. loss: L's mean test loss. why: the rule
    that decided, in words. trees: the gradient boosting bar that beats every candidate, and by how much, or None.
    clients: under the candidate that it rests on. `alone`: the name of L.
    """

    outcome: Outcome
    method: str
    share: float
    gain: Difference
    beyond: Difference | None
    tested: tuple[Tested, ...]
    loss: float
    why: str
    trees: tuple[str, Difference] | None
    clients: tuple[ClientCall, ...]
    alone: str = "local"

    @property
    def federates(self) -> bool:
        """Whether it says to federate."""
        return self.outcome in ("shared", "personal")


def gap(one: Candidate, other: Candidate, ratio: float) -> Difference:
    """How much lower the test loss of `one` is than that of `other`."""
    return resampled(list(pooled(other.test) - pooled(one.test)), ratio)


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates by validation loss, the mean over rows and then over divisions, the least first."""
    return sorted(candidates, key=lambda one: float(pooled(one.validation).mean()))


def alone_of(local: Candidate, bars: Sequence[Candidate] = ()) -> Candidate:
    """L, what clients reach without the others: local training, or the regressions of each client's own rows.

    It is the one with the least validation loss, mean over divisions. Local training takes a limited number of steps;
    where its loss is still falling at the end, it would be too easy to beat.
    """
    return ranked([local, *(one for one in bars if one.name in OWN)])[0]


def words_of(alone: str) -> str:
    """L as sentences call it."""
    return OWN.get(alone, "local training")


def tested(
    candidates: Sequence[Candidate], policies: Sequence[Candidate], alone: Candidate, ratio: float
) -> tuple[Tested, ...]:
    """Each candidate and policy against L, with adjusted p values; see the module.

    The first policy has `SHARE` of the error rate.
    """
    every = [*candidates, *policies]
    gaps = [gap(one, alone, ratio) for one in every]
    p_values = [1.0 if each.p is None else each.p for each in gaps]
    first = len(candidates)
    gate = min(p_values[first] / SHARE, 1.0) if gaps[first].mean > 0 else 1.0
    rest = holm([p for place, p in enumerate(p_values) if place != first])
    adjusted = [min(max(gate, p), p / (1 - SHARE), 1.0) for p in rest]
    adjusted.insert(first, gate)
    return tuple(Tested(one.name, str(one.kind), each, p) for one, each, p in zip(every, gaps, adjusted, strict=True))


def decide(
    candidates: Sequence[Candidate],
    policies: Sequence[Policy],
    owners: Int[np.ndarray, "n"],
    clients: Sequence[str],
    ratio: float,
    bars: Sequence[Candidate] = (),
) -> Decision:
    """The verdict on these candidates and on the policies that choose among them; see the module.

    owners: the client of each test row. ratio: test rows / other rows, see `resampled`. bars: no candidates; but own
    regressions may be L, and gradient boosting may beat every candidate.
    """
    local = next(one for one in candidates if one.kind == "alone")
    federated = [one for one in candidates if one is not local]
    alone = alone_of(local, bars)
    words = words_of(alone.name)
    rules = [one.candidate for one in policies]
    results = tested(federated, rules, alone, ratio)
    by_name = {one.name: one for one in results}
    better = ranked([one for one in (*federated, *rules) if by_name[one.name].better])
    order = {kind: ranked([one for one in federated if one.kind == kind]) for kind in ("shared", "personal")}
    beyond = gap(order["personal"][0], order["shared"][0], ratio) if all(order.values()) else None
    loss, rows = float(pooled(alone.test).mean()), len(alone.test[0])
    least = MARGIN * loss
    used, outcome, why = (
        ranked(federated)[0],
        "unclear",
        "the interval of the gain holds 0 and gains that would matter",
    )
    gaps = [one.gap for one in results]
    if rows < FEWEST:
        why = f"a division has only {rows} test rows"
    elif better:
        used, why = better[0], f"it is better than {words}, beyond noise, also after correction"
        for kind, simpler, reason in _GIVES_WAY:
            simple = next((one for one in better if one.kind in simpler), None)
            if used.kind == kind and simple:
                more = gap(used, simple, ratio)
                if not more.above(0) or (kind == KIND and more.mean < WORTH * loss):
                    used, why = simple, f"{why}; {reason}"
        outcome = "shared" if used.kind == "shared" else "personal"
    elif all(each.low is None and each.mean == 0 for each in gaps):
        outcome, why = "alone", f"the federated models have the same loss as {words} in every division"
    elif all(each.mean < least for each in gaps) and all(each.below(least) for each in gaps[: len(federated)]):
        outcome, why = "alone", f"no federated model gains {100 * MARGIN:g} % of the loss of {words}"
    elif (
        all(each.mean < least for each in gaps)
        and all(by_name[one.name].gap.below(0) for one in order["shared"])
        and all(each.below(least) or each.mean <= 0 for each in gaps[len(federated) :])
    ):
        outcome = "alone"
        why = "one shared model is worse, beyond noise, and no federated one gains what matters"
    elif by_name[used.name].gap.low is None:
        why = f"the gain has no interval: it is {by_name[used.name].gap.why}"
    peers = rules if used.kind == KIND else federated
    return Decision(
        outcome,  # pyright: ignore[reportArgumentType]
        used.name,
        float((first_of(peers) == peers.index(used)).mean()),
        by_name[used.name].gap,
        beyond,
        results,
        loss,
        why,
        beating(bars, [*candidates, *rules], ratio),
        calls(used, alone, owners, clients, ratio),
        alone.name,
    )


def beating(
    bars: Sequence[Candidate], candidates: Sequence[Candidate], ratio: float
) -> tuple[str, Difference] | None:
    """The gradient boosting bar with the least loss, if it is better than every candidate beyond noise."""
    trees = [one for one in bars if one.name.endswith("trees")]
    if not trees:
        return None
    least = min(trees, key=lambda one: float(pooled(one.test).mean()))
    gaps = [gap(least, one, ratio) for one in candidates]
    if not all(each.above(0) for each in gaps):
        return None
    return least.name, min(gaps, key=lambda each: each.mean)


def calls(
    one: Candidate, alone: Candidate, owners: Int[np.ndarray, "n"], clients: Sequence[str], ratio: float
) -> tuple[ClientCall, ...]:
    """Each client under a candidate compared with L, see the module."""
    from scipy.stats import false_discovery_control  # here: it loads slowly, and most commands never need it

    gaps = by_client(alone.test, owners, len(clients)) - by_client(one.test, owners, len(clients))
    rows = np.bincount(owners, minlength=len(clients))
    each = [resampled(list(column), ratio) for column in gaps.T]
    called = [i for i in range(len(clients)) if rows[i] >= FEWEST_OF_CLIENT]
    p_values = [1.0 if (p := each[i].p) is None else p for i in called]
    adjusted = dict(zip(called, false_discovery_control(p_values) if called else [], strict=True))

    def call(i: int) -> Call:
        if adjusted.get(i, 1.0) >= ALPHA:
            return "cannot be told"
        return "gains" if each[i].mean > 0 else "loses"

    return tuple(
        ClientCall(name, call(i), each[i], adjusted.get(i, 1.0), int(rows[i])) for i, name in enumerate(clients)
    )
