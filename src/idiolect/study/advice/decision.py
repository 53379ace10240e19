"""From the losses of frozen candidates to a verdict: federate or not, with what, and for whom.

The claim is about these clients, with other rows of theirs to train and test on; so the unit is the division. Clients
are not: they are the ones that decide, not a sample of others. The gap of two candidates in one division is the mean
over all test rows; over divisions it has the corrected resampled t interval (`intervals.resampled`), which allows for
the rows that divisions share.

The rule. G is the best of the shared models, P the best of the personal ones, F the better of the two, L local
training; "best" is by the validation rows of the same division, so that each is a policy and its test loss carries no
selection.
1. Too few rows: with fewer than `FEWEST` test rows in a division, the verdict is inconclusive.
2. Federate if F is better than L, the interval excluding 0.
   One shared model, unless P is better than G, the interval excluding 0, or G is not surely better than L.
3. Do not federate if F is surely not better than L by more than a `MARGIN` of L's loss (the interval ends below), or
   if G is surely worse than L and F is better by less than that on average: what all clients share is then not what
   each of them needs, and nothing personal gains what would matter.
4. Otherwise the verdict is inconclusive.
A client gains or loses if its own gap is not 0 beyond noise; of the clients named so, at most 5 % are wrong on
average (Benjamini, Hochberg, "Controlling the false discovery rate", JRSS B 1995). A client with fewer than
`FEWEST_OF_CLIENT` test rows is never called.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from idiolect.study.advice.scored import Candidate, by_client, mixed
from idiolect.study.analyse.intervals import Difference, resampled

ALPHA = 0.05
MARGIN = 0.05  # of Local's loss: a gain below does not matter
FEWEST = 20
FEWEST_OF_CLIENT = 5

Outcome = Literal["alone", "shared", "personal", "unclear"]
Call = Literal["gains", "loses", "cannot be told"]


@dataclass(frozen=True)
class ClientCall:
    """One client under the federated candidate compared with local training.

    gap: Local's loss minus the candidate's. p: adjusted over the clients. rows: test rows in a division.
    """

    name: str
    call: Call
    gap: Difference
    p: float
    rows: int


@dataclass(frozen=True)
class Decision:
    """The verdict. method: the federated candidate that it rests on, the one most divisions chose; share: of them.

    federated: F against Local; shared: G against Local; personal: P against Local, or None; beyond: P against G, or
    None. A positive mean is a lower loss. loss: Local's mean test loss. why: the rule that decided, in words.
    clients: under the candidates that it rests on.
    """

    outcome: Outcome
    method: str
    share: float
    federated: Difference
    shared: Difference
    personal: Difference | None
    beyond: Difference | None
    loss: float
    why: str
    clients: tuple[ClientCall, ...]


def pooled(rows: Sequence[Float[np.ndarray, "_"]]) -> Float[np.ndarray, "draws"]:
    """The mean loss over all rows of each division."""
    return np.asarray([each.mean() for each in rows])


def gap(one: Candidate, other: Candidate, ratio: float) -> Difference:
    """How much lower the test loss of `one` is than that of `other`."""
    return resampled(list(pooled(other.test) - pooled(one.test)), ratio)


def best_by_validation(
    name: str, kind: str, among: Sequence[Candidate], owners: Sequence[np.ndarray]
) -> tuple[Candidate, list[str]]:
    """The policy that takes in each division the candidate with the least validation loss; and which those are."""
    losses = np.stack([pooled(one.validation) for one in among])
    places = losses.argmin(axis=0)
    clients = 1 + max(int(part.max()) for part in owners if len(part))
    chosen = mixed(name, kind, [np.full(clients, place) for place in places], among, owners)
    return chosen, [among[place].name for place in places]


def decide(
    candidates: Sequence[Candidate], owners: Sequence[Int[np.ndarray, "_"]], clients: Sequence[str], ratio: float
) -> Decision:
    """The verdict on these candidates; see the module.

    owners: the client of each (validation, test) row. ratio: test rows / other rows, see `resampled`.
    """
    local = next(one for one in candidates if one.kind == "alone")
    shared, shared_names = best_by_validation(
        "shared", "shared", [one for one in candidates if one.kind == "shared"], owners
    )
    own = [one for one in candidates if one.kind == "personal"]
    personal, personal_names = best_by_validation("personal", "personal", own, owners) if own else (None, [])
    federated, picked = best_by_validation(
        "federated", "federated", [shared, *([personal] if personal else [])], owners
    )
    loss = float(pooled(local.test).mean())
    against = gap(federated, local, ratio)
    of_shared = gap(shared, local, ratio)
    of_personal = gap(personal, local, ratio) if personal else None
    beyond = gap(personal, shared, ratio) if personal else None
    rows = len(local.test[0])
    outcome: Outcome = "unclear"
    if rows < FEWEST:
        why = f"a division has only {rows} test rows"
    elif against.above(0):
        needs_own = beyond is not None and (beyond.above(0) or not of_shared.above(0))
        outcome = "personal" if needs_own else "shared"
        why = "the federated models are better than local training, beyond noise"
        if outcome == "shared" and beyond is not None:
            why += "; personal ones are not better than the shared one beyond noise"
    elif against.below(least := MARGIN * loss):
        outcome, why = "alone", f"no federated model gains more than {100 * MARGIN:g} % of the loss of local training"
    elif of_shared.below(0) and against.mean < least:
        outcome = "alone"
        why = "one shared model is worse, beyond noise, and the best federated one gains nothing that matters"
    elif against.low is None and against.mean == 0:
        outcome, why = "alone", "the federated models have the same loss as local training in every division"
    elif against.low is None:
        why = f"the gain has no interval: it is {against.why}"
    else:
        why = "the interval of the gain holds 0 and gains that would matter"
    used, names = federated, [shared_names[s] if k == "shared" else personal_names[s] for s, k in enumerate(picked)]
    if outcome == "shared":
        used, names = shared, shared_names
    elif outcome == "personal" and personal is not None:
        used, names = personal, personal_names
    method, count = Counter(names).most_common(1)[0]
    return Decision(
        outcome,
        method,
        count / len(names),
        against,
        of_shared,
        of_personal,
        beyond,
        loss,
        why,
        calls(used, local, owners[1], clients, ratio),
    )


def calls(
    one: Candidate, local: Candidate, owners: Int[np.ndarray, "n"], clients: Sequence[str], ratio: float
) -> tuple[ClientCall, ...]:
    """Each client under a candidate compared with local training, see the module."""
    from scipy.stats import false_discovery_control  # here: it loads slowly, and most commands never need it

    gaps = by_client(local.test, owners, len(clients)) - by_client(one.test, owners, len(clients))
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
