"""What a candidate gave on every row, and candidates that take one for each client."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax, softmax

from idiolect.study.advice.contestants import Kind

Rows = tuple[Float[np.ndarray, "_"], ...]


@dataclass(frozen=True)
class Candidate:
    """A way to predict, as frozen on validation data.

    name: as in tables. kind: as of a contestant, "policy", or "baseline" for what is only shown.
    validation, test: for each division the loss of each row, in a split's order. right: for each division whether
    each test row's label was hit; None for a regression. predictions: for each division those of validation and test
    rows, probabilities (n, classes) or numbers (n,); None where nothing needs them.
    """

    name: str
    kind: Kind | str
    validation: Rows
    test: Rows
    right: tuple[Bool[np.ndarray, "_"], ...] | None = None
    predictions: tuple[tuple[Float[np.ndarray, "_ ..."], Float[np.ndarray, "_ ..."]], ...] | None = None


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

    def predicted(output: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
        return softmax(output, axis=1) if classes else output.reshape(len(output))

    pairs = list(zip(outputs, labels, strict=True))
    return Candidate(
        name,
        kind,
        tuple(loss(one[0], y[0]) for one, y in pairs),
        tuple(loss(one[1], y[1]) for one, y in pairs),
        tuple(one[1].argmax(axis=1) == y[1] for one, y in pairs) if classes else None,
        tuple((predicted(one[0]), predicted(one[1])) for one, _ in pairs),
    )


def pooled(rows: Sequence[Float[np.ndarray, "_"]]) -> Float[np.ndarray, "draws"]:
    """The mean loss over all rows of each division."""
    return np.asarray([each.mean() for each in rows])


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
