"""Penalised linear and logistic regressions of many clients, each with a penalty that held-out rows choose.

Clients of similar size are solved as one batch of NumPy's products, see `problems`; a pooled regression is a batch of
one. The penalties form a path from the strongest to the weakest, each of which starts where the one before ended.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import log_expit, softmax

from idiolect.study.advice.problems import ABSENT, Problems, newton, outputs_of

PENALTIES = np.geomspace(1e-3, 1e4, 15)


def penalties_of(classes: int) -> Float[np.ndarray, "q"]:
    """The penalties that are tried: every second one for a classification, which takes more steps."""
    return PENALTIES[::2] if classes else PENALTIES


FOLDS = 3
FEWEST = 3
"""Rows below which a client guesses."""
ENOUGH, SCORED = 200, 30
"""Training and validation rows from which a client's validation rows choose its penalty, not folds."""
_NUMBERS = 2**22  # numbers in one batch's largest array
_ROUGH, _EXACT = 1e-5, 1e-11  # of the loss per row, what a further step could gain


class Rows(NamedTuple):
    """Rows of all clients: client i owns `offsets[i]:offsets[i + 1]`. y: whole numbers for classes."""

    x: Shaped[np.ndarray, "n d"]
    y: Shaped[np.ndarray, "n"]
    offsets: Int[np.ndarray, "clients_plus_1"]

    @property
    def sizes(self) -> Int[np.ndarray, "clients"]:
        """Rows of each client."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Fits:
    """Fitted regressions, one per client or one for all.

    weights: (clients or 1, outputs, d). intercepts: (clients or 1, outputs). counts: training rows of each class,
    (clients or 1, classes); no columns for a regression. penalties: (clients or 1,), NaN for a guess.
    """

    weights: Float[np.ndarray, "_ outputs d"]
    intercepts: Float[np.ndarray, "_ outputs"]
    counts: Int[np.ndarray, "_ classes"]
    penalties: Float[np.ndarray, "_"]

    def outputs(self, x: Shaped[np.ndarray, "n d"], offsets: Int[np.ndarray, "_"]) -> Float[np.ndarray, "n ..."]:
        """Return predicted numbers (n,), or logarithms of probabilities (n, classes); see `mixed`."""
        classes, clients = self.counts.shape[1], len(offsets) - 1
        result = np.zeros((len(x), classes) if classes else len(x))
        if all(len(part) == 1 for part in (self.weights, self.intercepts)):
            offsets, clients = np.asarray([0, len(x)]), 1
        for client in range(clients):
            rows = slice(int(offsets[client]), int(offsets[client + 1]))
            if rows.stop > rows.start:
                weights, intercept, counts = (
                    part[min(client, len(part) - 1)] for part in (self.weights, self.intercepts, self.counts)
                )
                logits = x[rows] @ weights.T + intercept
                result[rows] = mixed(logits, counts) if classes else logits[:, 0]
        return result


def mixed(
    logits: Float[np.ndarray, "*b n outputs"], counts: Int[np.ndarray, "*b classes"]
) -> Float[np.ndarray, "*b n classes"]:
    """Return log((n p + g) / (n + 1)): the model's probabilities p mixed with the guess g, as if g were one row more.

    counts: training rows of each class, n in all; g = (count + 1) / (n + classes). Where the rows lack a class, p is
    0, and one test row of this class would be an infinite loss. With fewer than 3 rows, or one class only, p = g.
    """
    rows, held = counts.sum(axis=-1, keepdims=True), counts > 0
    guess = ((counts + 1) / (rows + counts.shape[-1]))[..., None, :]
    if logits.shape[-1] == 1:
        shares = np.exp(np.concatenate([log_expit(-logits), log_expit(logits)], axis=-1))
    else:
        shares = softmax(np.where(held[..., None, :], logits, ABSENT), axis=-1)
    few = (held.sum(axis=-1) < 2) | (rows[..., 0] < FEWEST)
    shares = np.where(few[..., None, None], guess, shares)
    return np.log((rows[..., None] * shares + guess) / (rows[..., None] + 1))


def own_regressions(
    train: Rows, validation: Rows, classes: int, penalties: Float[np.ndarray, "q"] = PENALTIES
) -> Fits:
    """Fit one regression per client on its training rows, with its own penalty among these.

    A client with at least 200 training and 30 validation rows chooses it by its validation rows, the others by three
    stratified folds of their training rows. Fewer than 3 rows, or rows of one class, make a guess: the mean, or the
    shares of the labels. classes: 0 for a regression.
    """
    clients, width, outputs = len(train.sizes), train.x.shape[1], outputs_of(classes)
    counts = np.zeros((clients, classes), np.int64)
    if classes:
        np.add.at(counts, (np.repeat(np.arange(clients), train.sizes), train.y), 1)
    fits = Fits(np.zeros((clients, outputs, width)), np.zeros((clients, outputs)), counts, np.full(clients, np.nan))
    few = train.sizes < FEWEST
    for client in np.flatnonzero(few).tolist():
        y = train.y[train.offsets[client] : train.offsets[client + 1]]
        fits.intercepts[client] = y.mean() if len(y) and not classes else 0.0
    fitted = ~few & ((counts > 0).sum(axis=1) >= 2 if classes else True)
    large = fitted & (train.sizes >= ENOUGH) & (validation.sizes >= SCORED)
    penalties = np.sort(penalties)[::-1]
    for client in np.flatnonzero(large).tolist():
        problem = _pool(*_of(train, client), classes)
        found, penalty = _by_validation(problem, _of(validation, client), validation.sizes, penalties)
        theta, _ = problem.parts(found)
        fits.weights[client], fits.intercepts[client] = theta[0, :, :-1], theta[0, :, -1]
        fits.penalties[client] = penalty
    for chunk in _chunks(np.flatnonzero(fitted & ~large), train.sizes, width, outputs):
        theta, fits.penalties[chunk] = _by_folds(train, chunk, classes, penalties)
        fits.weights[chunk], fits.intercepts[chunk] = theta[..., :-1], theta[..., -1]
    return fits


def pooled_regression(
    train: Rows,
    validation: Rows,
    classes: int,
    penalties: Float[np.ndarray, "q"] = PENALTIES,
    *,
    dummies: bool = True,
) -> Fits:
    """Fit one regression on all clients' training rows, with the penalty that all validation rows prefer.

    dummies: each client has its own intercept in addition to the shared one, penalised like the weights.
    classes: 0 for a regression.
    """
    problem = _pool(train.x, train.y, classes, train.sizes if dummies else None)
    rows = validation.x, validation.y
    found, penalty = _by_validation(problem, rows, validation.sizes, np.sort(penalties)[::-1])
    theta, own = problem.parts(found)
    intercepts = theta[:, :, -1] + own[0] if dummies else theta[:, :, -1]
    return Fits(theta[:, :, :-1], intercepts, problem.counts, np.asarray([penalty]))


def _path(
    problems: Problems, penalties: Float[np.ndarray, "q"], score: Callable[[Float[np.ndarray, "b m"]], np.ndarray]
) -> tuple[Float[np.ndarray, "q b m"], Float[np.ndarray, "q b"]]:
    """The parameters under each penalty, the strongest first, and their scores."""
    theta, thetas, scores = problems.start(), [], []
    for penalty in penalties:
        if len(penalties) > 1:
            theta = newton(problems, theta, np.full(len(theta), penalty), _ROUGH)
            scores.append(score(theta))
        else:
            scores.append(np.zeros(len(theta)))
        thetas.append(theta)
    return np.stack(thetas), np.stack(scores)


# One problem, with validation rows


def _of(rows: Rows, client: int) -> tuple[np.ndarray, np.ndarray]:
    mine = slice(int(rows.offsets[client]), int(rows.offsets[client + 1]))
    return rows.x[mine], rows.y[mine]


def _pool(x: np.ndarray, y: np.ndarray, classes: int, sizes: Int[np.ndarray, "k"] | None = None) -> Problems:
    rows = np.ones((1, len(y), x.shape[1] + 1))
    rows[0, :, :-1] = x
    counts = np.bincount(y, minlength=classes) if classes else np.zeros(0, np.int64)
    weights = np.ones((1, len(y)))
    if classes and (counts > 0).sum() < 2:
        weights[:] = 0  # a guess
    return Problems(rows, y[None] if classes else y[None].astype(np.float64), weights, counts[None], sizes)


def _losses(
    logits: Float[np.ndarray, "b n c"], y: Shaped[np.ndarray, "b n"], counts: Int[np.ndarray, "b classes"]
) -> Float[np.ndarray, "b n"]:
    """The loss of each row as it is reported: of the mixed probabilities, or the squared error."""
    if not counts.shape[1]:
        return (logits[..., 0] - y) ** 2
    return -np.take_along_axis(mixed(logits, counts), y[..., None], axis=2)[..., 0]


def _by_validation(
    problem: Problems,
    rows: tuple[np.ndarray, np.ndarray],
    sizes: Int[np.ndarray, "k"],
    penalties: Float[np.ndarray, "q"],
) -> tuple[Float[np.ndarray, "1 m"], float]:
    """The parameters under the penalty with the least loss on validation rows, and this penalty."""
    x, y = rows

    def score(theta: Float[np.ndarray, "b m"]) -> Float[np.ndarray, "b"]:
        shared, own = problem.parts(theta)
        logits = x @ shared[..., :-1].transpose(0, 2, 1) + shared[:, None, :, -1]
        if problem.sizes is not None:
            logits = logits + np.repeat(own, sizes, axis=1)
        return _losses(logits, y[None], problem.counts).mean(axis=1)

    thetas, scores = _path(problem, penalties, score)
    best = int(scores[:, 0].argmin())
    return newton(problem, thetas[best], penalties[[best]], _EXACT), float(penalties[best])


# Many problems, with folds


def _chunks(
    clients: Int[np.ndarray, "_"], sizes: Int[np.ndarray, "k"], width: int, outputs: int
) -> Iterator[Int[np.ndarray, "_"]]:
    """Clients of similar size, few enough that one batch's arrays stay small."""
    rounded = 2 ** np.ceil(np.log2(np.maximum(sizes[clients], 8))).astype(np.int64)
    for rows in np.unique(rounded):
        alike = clients[rounded == rows]
        columns = min(width, int(rows)) + 1
        numbers = FOLDS * max(int(rows) * max(columns, width), (outputs * columns) ** 2)
        count = max(1, _NUMBERS // numbers)
        for first in range(0, len(alike), count):
            yield alike[first : first + count]


def folds_of(y: Shaped[np.ndarray, "n"], classes: int) -> Int[np.ndarray, "n"]:
    """The fold of each row: rows are shuffled by a fixed seed, and each class is dealt to the folds in turn."""
    order = np.random.default_rng(0).permutation(len(y))
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), np.int64)
    folds[order] = np.arange(len(y)) % FOLDS
    return folds


def _by_folds(
    train: Rows, clients: Int[np.ndarray, "k"], classes: int, penalties: Float[np.ndarray, "q"]
) -> tuple[Float[np.ndarray, "k c p"], Float[np.ndarray, "k"]]:
    """Weights with intercepts of these clients, and their penalties, chosen by folds of their training rows."""
    most, width, count = int(train.sizes[clients].max()), train.x.shape[1], len(clients)
    x = np.zeros((count, most, width + 1))
    y = np.zeros((count, most), np.int64 if classes else np.float64)
    fold = np.full((count, most), -1)
    for place, client in enumerate(clients.tolist()):
        rows, labels = _of(train, client)
        x[place, : len(labels), :-1], x[place, : len(labels), -1] = rows, 1
        y[place, : len(labels)], fold[place, : len(labels)] = labels, folds_of(labels, classes)
    basis = None
    if width > most:  # the weights are in the span of the rows: fewer coordinates, the same problem
        basis = np.linalg.svd(x[..., :-1], full_matrices=False)[2]
        x = np.concatenate([x[..., :-1] @ basis.transpose(0, 2, 1), x[..., -1:]], axis=2)
    held_out = (fold[:, None] == np.arange(FOLDS)[:, None]).reshape(count * FOLDS, most)
    trained = np.repeat(fold >= 0, FOLDS, axis=0) & ~held_out
    problems = _batch(np.repeat(x, FOLDS, axis=0), np.repeat(y, FOLDS, axis=0), trained, classes)

    def score(theta: Float[np.ndarray, "b m"]) -> Float[np.ndarray, "b"]:
        return (held_out * _losses(problems.logits(theta), problems.y, problems.counts)).sum(axis=1)

    thetas, scores = _path(problems, penalties, score)
    best = scores.reshape(len(penalties), count, FOLDS).sum(axis=2).argmin(axis=0)
    start = thetas.reshape(len(penalties), count, FOLDS, -1)[best, np.arange(count)].mean(axis=1)
    theta = newton(_batch(x, y, fold >= 0, classes), start, penalties[best], _EXACT)
    weights = theta.reshape(count, outputs_of(classes), -1)
    if basis is not None:
        weights = np.concatenate([weights[..., :-1] @ basis, weights[..., -1:]], axis=2)
    return weights, penalties[best]


def _batch(
    x: Float[np.ndarray, "b n p"], y: Shaped[np.ndarray, "b n"], rows: Bool[np.ndarray, "b n"], classes: int
) -> Problems:
    """Problems on these rows. Where the rows have one class only, none of them counts: this problem guesses."""
    counts = ((y[..., None] == np.arange(classes)) & rows[..., None]).sum(axis=1)
    if classes:
        rows = rows & ((counts > 0).sum(axis=1) >= 2)[:, None]
    return Problems(x, y, rows.astype(np.float64), counts)
