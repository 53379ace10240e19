"""What a candidate gave on every row, and the portfolio: each client keeps what its validation rows prefer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax

from idiolect.study.advice.contestants import Kind

Rows = tuple[Float[np.ndarray, "_"], ...]


@dataclass(frozen=True)
class Candidate:
    """A way to predict, as frozen on validation data.

    name: as in tables. kind: as of a contestant, "portfolio", or "baseline" for what is only shown.
    validation, test: for each division the loss of each row, in a split's order. right: for each division whether
    each test row's label was hit; None for a regression.
    """

    name: str
    kind: Kind | str
    validation: Rows
    test: Rows
    right: tuple[Bool[np.ndarray, "_"], ...] | None = None


def log_losses(outputs: Float[np.ndarray, "n classes"], labels: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """-log softmax(outputs)_label of each row."""
    return -log_softmax(outputs, axis=1)[np.arange(len(labels)), labels]


def candidate(
    name: str,
    kind: Kind | str,
    outputs: Sequence[tuple[Float[np.ndarray, "_ ..."], Float[np.ndarray, "_ ..."]]],
    labels: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Candidate:
    """The candidate of these outputs (validation, test) in each division. labels: alike; whole numbers are classes.

    Classes: outputs are those before a softmax, the loss is log-loss. Numbers: the loss is the squared error.
    """
    classes = np.issubdtype(labels[0][1].dtype, np.integer)

    def loss(output: Float[np.ndarray, "n ..."], y: np.ndarray) -> Float[np.ndarray, "n"]:
        return log_losses(output, y) if classes else (output.reshape(len(y)) - y.astype(np.float64)) ** 2

    pairs = list(zip(outputs, labels, strict=True))
    return Candidate(
        name,
        kind,
        tuple(loss(one[0], y[0]) for one, y in pairs),
        tuple(loss(one[1], y[1]) for one, y in pairs),
        tuple(one[1].argmax(axis=1) == y[1] for one, y in pairs) if classes else None,
    )


def by_client(rows: Rows, owners: Int[np.ndarray, "n"], clients: int) -> Float[np.ndarray, "draws clients"]:
    """The mean over each client's rows, in each division; NaN for a client without rows."""
    count = np.bincount(owners, minlength=clients)
    sums = np.stack([np.bincount(owners, weights=each, minlength=clients) for each in rows])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, sums / count, np.nan)


def mixed(
    name: str, kind: str, choice: Sequence[np.ndarray], of: Sequence[Candidate], parts: Sequence[np.ndarray]
) -> Candidate:
    """The candidate that takes, in division s, for rows of client i, what `of[choice[s][i]]` gives.

    choice: (clients,) for each division. parts: the owners of (validation, test) rows.
    """

    def rows(table: Sequence[Sequence[np.ndarray]], owners: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(
            np.stack([each[draw] for each in table])[picked[owners], np.arange(len(owners))]
            for draw, picked in enumerate(choice)
        )

    rights = [each.right for each in of if each.right is not None]
    return Candidate(
        name,
        kind,
        rows([each.validation for each in of], parts[0]),
        rows([each.test for each in of], parts[1]),
        rows(rights, parts[1]) if len(rights) == len(of) else None,
    )


NAME = "portfolio"
BY_SIZE = "by-size"
FEWEST_ROWS = 5
"""Validation rows below which a client's spread of gains says too little."""


def preferred(losses: Float[np.ndarray, "models n"], default: int) -> int:
    """The model that a client's validation rows prefer to the federation's choice, if they surely do.

    losses: of each of m models on each of the client's n rows. A client leaves the default only for the model with
    the least loss, and if the paired mean gain exceeds sqrt(2 ln m) standard errors, std / sqrt(n): about what the
    largest of m gains reaches by chance. With fewer than `FEWEST_ROWS` rows the default stays.
    """
    models, rows = losses.shape
    if rows < FEWEST_ROWS or models < 2:
        return default
    best = int(losses.mean(axis=1).argmin())
    difference = losses[default] - losses[best]
    error = difference.std(ddof=1) / np.sqrt(rows)
    return default if difference.mean() <= np.sqrt(2 * np.log(models)) * error else best


def portfolio(
    candidates: Sequence[Candidate], owners: Sequence[Int[np.ndarray, "_"]], clients: int
) -> tuple[Candidate, list[Int[np.ndarray, "clients"]]]:
    """The portfolio of these candidates and its choices in each division.

    Every candidate is tried as the default that a client keeps unless its rows surely prefer another, see
    `preferred`; the default whose portfolio has the least validation loss over all rows of the division stays.
    """
    choices: list[Int[np.ndarray, "clients"]] = []
    for draw in range(len(candidates[0].test)):
        losses = np.stack([one.validation[draw] for one in candidates])
        rows = [losses[:, owners[0] == i] for i in range(clients)]
        tried = [np.asarray([preferred(own, default) for own in rows]) for default in range(len(candidates))]
        means = [losses[each[owners[0]], np.arange(losses.shape[1])].mean() for each in tried]
        choices.append(tried[int(np.argmin(means))])
    return mixed(NAME, "portfolio", choices, candidates, owners), choices


def by_size(candidates: Sequence[Candidate], owners: Sequence[Int[np.ndarray, "_"]], clients: int) -> Candidate:
    """The policy that federates small clients only: one candidate below a number of rows, local training from there.

    Candidate and limit are those with the least validation loss over all rows of the division.
    """
    local = next(place for place, one in enumerate(candidates) if one.kind == "alone")
    sizes = np.bincount(owners[0], minlength=clients)
    order = np.argsort(sizes, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(sizes[order])) + 1, clients)  # clients of one size stay together
    choices: list[Int[np.ndarray, "clients"]] = []
    for draw in range(len(candidates[0].test)):
        sums = np.stack(
            [np.bincount(owners[0], weights=one.validation[draw], minlength=clients) for one in candidates]
        )
        gains = np.cumsum((sums[local] - sums)[:, order], axis=1)[:, ends - 1]
        place, end = np.unravel_index(int(gains.argmax()), gains.shape)
        choice = np.full(clients, local)
        if gains[place, end] > 0:
            choice[order[: ends[end]]] = place
        choices.append(choice)
    return mixed(BY_SIZE, "policy", choices, candidates, owners)
