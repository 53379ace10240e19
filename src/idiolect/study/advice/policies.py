"""Policies: rules that say, from validation losses only, which candidate each client uses.

`portfolio` lets each client keep what its own rows surely prefer. `by-size` federates clients with few rows only.
`chosen` takes, in each division, the one candidate or one of these two policies that has the least validation loss.
`blend` mixes the predictions of all candidates, see its module.
A policy's own validation loss is cross-fitted: for each fold of the rows, the rule decides from the other folds. So a
rule with many options is no better there than it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from idiolect.study.advice.blend import BLEND, blended, likelihoods, loss_of, weights
from idiolect.study.advice.scored import Candidate, mixed, pooled

CHOSEN, PORTFOLIO, BY_SIZE = "chosen", "portfolio", "by-size"
KIND = "policy"
NAMES = (BLEND, PORTFOLIO, BY_SIZE, CHOSEN)
FEWEST_ROWS = 5
"""Validation rows below which a client's spread of gains says too little."""
FOLDS = 5

Rule = Callable[[Float[np.ndarray, "models n"], Int[np.ndarray, "n"]], Int[np.ndarray, "clients"]]
"""From each model's loss on each row, and the rows' clients, to the model's place for each client."""


@dataclass(frozen=True)
class Policy:
    """A policy's losses, and the place of the candidate that each client uses in each division.

    In a blend, a client uses all of them: the place is that of the largest weight.
    """

    candidate: Candidate
    choices: tuple[Int[np.ndarray, "clients"], ...]

    @property
    def name(self) -> str:
        """The name, as in tables."""
        return self.candidate.name


def shown_of(method: str) -> str:
    """The policy under which clients' methods are shown: the one that is the answer, or else the portfolio."""
    return method if method in NAMES else PORTFOLIO


def preferred(losses: Float[np.ndarray, "models n"]) -> Int[np.ndarray, "models"]:
    """For each default, the model that a client keeps: another one only if its rows surely prefer it.

    losses: of each of m models on each of the client's n rows. A client leaves its default only for the model with
    the least loss, and if the paired mean gain exceeds sqrt(2 ln m) standard errors, std / sqrt(n): about what the
    largest of m gains reaches by chance. With fewer than `FEWEST_ROWS` rows the default stays.
    """
    models, rows = losses.shape
    defaults = np.arange(models)
    if rows < FEWEST_ROWS or models < 2:
        return defaults
    best = int(losses.mean(axis=1).argmin())
    differences = losses - losses[best]
    error = differences.std(axis=1, ddof=1) / np.sqrt(rows)
    return np.where(differences.mean(axis=1) <= np.sqrt(2 * np.log(models)) * error, defaults, best)


def portfolio(clients: int) -> Rule:
    """The rule of the portfolio.

    Every candidate is tried as the default that a client keeps unless its rows surely prefer another, see
    `preferred`; the default whose portfolio has the least loss over all rows stays, of equal ones the better
    one by itself: clients without rows have it.
    """

    def rule(losses: Float[np.ndarray, "models n"], owners: Int[np.ndarray, "n"]) -> Int[np.ndarray, "clients"]:
        tried = np.stack([preferred(losses[:, owners == i]) for i in range(clients)], axis=1)
        means = losses[tried[:, owners], np.arange(losses.shape[1])].mean(axis=1)
        return tried[int(np.lexsort((losses.mean(axis=1), means))[0])]

    return rule


def by_size(local: int, sizes: Int[np.ndarray, "clients"]) -> Rule:
    """The rule that federates small clients: one candidate below a number of rows, local training from there.

    Candidate and limit are those with the least loss over all rows. Clients of one size are on one side of the limit.

    local: the place of local training. sizes: rows of each client.
    """
    clients = len(sizes)
    order = np.argsort(sizes, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(sizes[order])) + 1, clients)

    def rule(losses: Float[np.ndarray, "models n"], owners: Int[np.ndarray, "n"]) -> Int[np.ndarray, "clients"]:
        sums = np.stack([np.bincount(owners, weights=each, minlength=clients) for each in losses])
        gains = np.cumsum((sums[local] - sums)[:, order], axis=1)[:, ends - 1]
        place, end = np.unravel_index(int(gains.argmax()), gains.shape)
        choice = np.full(clients, local)
        if gains[place, end] > 0:
            choice[order[: ends[end]]] = place
        return choice

    return rule


def policy(name: str, rule: Rule, candidates: Sequence[Candidate], owners: Sequence[Int[np.ndarray, "_"]]) -> Policy:
    """What a rule gives. Test rows: decided by all validation rows; validation rows: by those of other folds."""
    own = owners[0]
    choices: list[Int[np.ndarray, "clients"]] = []
    honest: list[Float[np.ndarray, "n"]] = []
    for draw in range(len(candidates[0].test)):
        losses = np.stack([one.validation[draw] for one in candidates])
        choices.append(rule(losses, own))
        rows = np.empty(len(own))
        for held, others in _folds(own):
            choice = rule(losses[:, others], own[others])
            rows[held] = losses[choice[own[held]], held]
        honest.append(rows)
    found = mixed(name, KIND, choices, candidates, owners)
    return Policy(Candidate(name, KIND, tuple(honest), found.test, found.right), tuple(choices))


def _folds(owners: Int[np.ndarray, "n"]) -> Iterator[tuple[Int[np.ndarray, "_"], Int[np.ndarray, "_"]]]:
    """(the rows of a fold, all others): a client's rows in turns, each client from where the one before it ended."""
    order = np.argsort(owners, kind="stable")
    folds = np.empty(len(owners), np.int64)
    folds[order] = np.arange(len(owners)) % FOLDS
    for fold in range(FOLDS):
        yield np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)


def blend(
    candidates: Sequence[Candidate],
    owners: Sequence[Int[np.ndarray, "_"]],
    clients: int,
    labels: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Policy:
    """The policy `blend`. labels: (validation, test) of each division. The candidates have predictions."""
    predictions = [one.predictions for one in candidates if one.predictions is not None]
    assert len(predictions) == len(candidates)
    choices: list[Int[np.ndarray, "clients"]] = []
    honest: list[Float[np.ndarray, "n"]] = []
    tests: list[Float[np.ndarray, "n ..."]] = []
    for draw, (y, _) in enumerate(labels):
        validation, test = ([one[draw][part] for one in predictions] for part in (0, 1))
        likelihood = likelihoods(np.stack([one.validation[draw] for one in candidates]), test[0].ndim > 1)
        share = weights(likelihood, owners[0], clients)
        choices.append(share.argmax(axis=1))
        tests.append(blended(test, share, owners[1]))
        rows = np.empty(len(y))
        for held, others in _folds(owners[0]):
            share = weights(likelihood[:, others], owners[0][others], clients)
            rows[held] = loss_of(blended([one[held] for one in validation], share, owners[0][held]), y[held])
        honest.append(rows)
    losses = tuple(loss_of(one, y[1]) for one, y in zip(tests, labels, strict=True))
    right = tuple(one.argmax(axis=1) == y[1] for one, y in zip(tests, labels, strict=True) if one.ndim > 1)
    return Policy(Candidate(BLEND, KIND, tuple(honest), losses, right or None), tuple(choices))


def policies_of(
    candidates: Sequence[Candidate],
    owners: Sequence[Int[np.ndarray, "_"]],
    clients: int,
    labels: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[Policy, ...]:
    """The policies `blend`, `portfolio`, `by-size` and `chosen`.

    owners: the client of each (validation, test) row. labels: of these rows, in each division.
    """
    return blend(candidates, owners, clients, labels), *choices_of(candidates, owners, clients)


def choices_of(
    candidates: Sequence[Candidate], owners: Sequence[Int[np.ndarray, "_"]], clients: int
) -> tuple[Policy, Policy, Policy]:
    """The policies that choose: `portfolio`, `by-size` and `chosen`."""
    local = next(place for place, one in enumerate(candidates) if one.kind == "alone")
    sizes = np.bincount(owners[0], minlength=clients)
    own = policy(PORTFOLIO, portfolio(clients), candidates, owners)
    small = policy(BY_SIZE, by_size(local, sizes), candidates, owners)
    places = first_of([*candidates, own.candidate, small.candidate])
    options = [tuple(np.full(clients, place) for _ in places) for place in range(len(candidates))]
    options += [own.choices, small.choices]
    choices = tuple(options[place][draw] for draw, place in enumerate(places))
    found = mixed(CHOSEN, KIND, choices, candidates, owners)
    honest = [one.validation for one in (*candidates, own.candidate, small.candidate)]
    rows = tuple(honest[place][draw] for draw, place in enumerate(places))
    return own, small, Policy(Candidate(CHOSEN, KIND, rows, found.test, found.right), choices)


def first_of(candidates: Sequence[Candidate]) -> Int[np.ndarray, "draws"]:
    """The place of the candidate with the least validation loss in each division, the mean over all rows."""
    return np.stack([pooled(one.validation) for one in candidates]).argmin(axis=0)
