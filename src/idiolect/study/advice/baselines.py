"""Bars next to the methods: guesses, regressions and trees, of each client's own rows and of all rows pooled.

They see the training rows of a division, and its validation rows for what the methods choose with them, too. Nothing
is federated: own ones use one client's rows; pooled ones need all rows in one place, and know each row's client.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from idiolect.core.cores import cores
from idiolect.data.federated import FederatedData
from idiolect.study.advice.boosting import LEAST, Predict, grows, has_lightgbm, own_trees, pooled_trees
from idiolect.study.advice.draws import Draws
from idiolect.study.advice.regressions import Rows, own_regressions, penalties_of, pooled_regression
from idiolect.study.advice.scored import Candidate, candidate
from idiolect.study.advice.together import Check, side_by_side, workers_for

_PARTS = ("validation", "test")
KINDS = {"own": "baseline", "pooled": "pooled"}
"""The kind of a candidate by the first word of its name."""


EARLY = 2
"""Divisions, the fewest with an interval, after which large tables have their first answer."""
_SLOW = 2.0  # seconds for these, above which a table is large


def regressions(draws: Draws, early: Callable[[list[Candidate]], None] = lambda _: None) -> list[Candidate]:
    """Guesses and regressions on every division, which take a second or so on small tables.

    early: receives those of the first `EARLY` divisions of a large table.

    own guess: each client's own mean, or its shares of the labels with one added to each count; pooled guess: the
    same over all clients. own ridge or logistic: one regression per client. pooled ridge or logistic: one for all
    rows, with an intercept per client that is penalised like the weights; "without clients": without it.
    """
    kind = "ridge" if draws.first.task == "regression" else "logistic"
    names = ["own guess", "pooled guess", f"own {kind}", f"pooled {kind}", f"pooled {kind} without clients"]

    def fitted(data: FederatedData, check: Check) -> list[Predict]:
        check()
        train, validation, classes = _rows(data, "train"), _rows(data, "validation"), _classes(data)
        penalties = penalties_of(classes)
        return [
            _guesses(train, classes),
            _guesses(Rows(train.x, train.y, np.asarray([0, len(train.y)])), classes),
            own_regressions(train, validation, classes, penalties).outputs,
            pooled_regression(train, validation, classes, penalties).outputs,
            pooled_regression(train, validation, classes, penalties, dummies=False).outputs,
        ]

    def so_far(count: int) -> list[Candidate]:
        return [_candidate(name, [found[i][k] for i in range(count)], draws) for k, name in enumerate(names)]

    work = [lambda check, data=data: fitted(data, check) for data in draws.data]  # pyright: ignore[reportUnknownLambdaType]
    found: dict[int, list[Predict]] = {}
    began, told = time.monotonic(), False
    with threadpool_limits(max(1, len(cores()) // workers_for(work)), "blas"):
        for draw, predicts in side_by_side(work):
            found[draw] = predicts
            if not told and all(i in found for i in range(EARLY)) and draws.count > EARLY:
                told = True
                if time.monotonic() - began > _SLOW:
                    early(so_far(EARLY))
    return so_far(draws.count)


def trees(draws: Draws) -> list[Candidate]:
    """Gradient boosting on every division: own trees and pooled trees, see `boosting`.

    Nothing without LightGBM, or where a sample is no row of numbers; no own trees where no client has rows enough.
    """
    if not _tabular(draws) or not has_lightgbm():
        return []
    grow = {"own trees": own_trees} if _growing(draws) else {}
    grow["pooled trees"] = pooled_trees

    def grown(data: FederatedData, check: Check) -> dict[str, Predict]:
        rows = _rows(data, "train"), _rows(data, "validation"), _classes(data)
        made: dict[str, Predict] = {}
        for name, one in grow.items():
            check()
            made[name] = one(*rows)
        return made

    work = [lambda check, data=data: grown(data, check) for data in draws.data]  # pyright: ignore[reportUnknownLambdaType]
    found = dict(side_by_side(work))
    return [_candidate(name, [found[draw][name] for draw in range(draws.count)], draws) for name in grow]


def notes_on_trees(draws: Draws) -> tuple[str, ...]:
    """Notes for the reader: which trees are missing, and for how many clients own trees are a regression."""
    if not _tabular(draws):
        return ()
    if not has_lightgbm():
        return ("install idiolect[trees] to compare with gradient boosting",)
    growing, clients = _growing(draws), draws.first.num_clients
    if not growing:
        return (f"own trees are left out: no client has {LEAST} training rows",)
    if growing < clients:
        return (
            f"own trees: {growing} of {clients} clients have the {LEAST} training rows that trees take; the others "
            "keep their own regression",
        )
    return ()


def _tabular(draws: Draws) -> bool:
    return len(draws.first.feature_shape) == 1


def _growing(draws: Draws) -> int:
    """How many clients have trees of their own, in the division where they are most."""
    return max(int(grows(_rows(one, "train"), _rows(one, "validation"), _classes(one)).sum()) for one in draws.data)


def _classes(data: FederatedData) -> int:
    return data.num_outputs if data.task == "classification" else 0


def _rows(data: FederatedData, name: str) -> Rows:
    part = data.stored(name)
    return Rows(part.x.reshape(part.count, -1), part.y, part.offsets)


def _candidate(name: str, predicts: Sequence[Predict], draws: Draws) -> Candidate:
    outputs = [
        tuple(predict(rows.x, rows.offsets) for rows in (_rows(data, part) for part in _PARTS))
        for data, predict in zip(draws.data, predicts, strict=False)  # fewer for an early answer
    ]
    labels = [tuple(data.stored(part).y for part in _PARTS) for data in draws.data[: len(outputs)]]
    return candidate(name, KINDS[name.split()[0]], outputs, labels)  # pyright: ignore[reportArgumentType]


def _guesses(train: Rows, classes: int) -> Predict:
    """Each client's mean or shares of the labels, or with one client in `train`, those of all."""
    owners = np.repeat(np.arange(len(train.sizes)), train.sizes)
    if classes:
        counts = np.zeros((len(train.sizes), classes))
        np.add.at(counts, (owners, train.y), 1)
        guess = np.log((counts + 1) / (train.sizes[:, None] + classes))
    else:
        sums = np.bincount(owners, weights=train.y.astype(np.float64), minlength=len(train.sizes))
        guess = sums / np.maximum(train.sizes, 1)

    def predict(x: Float[np.ndarray, "n d"], offsets: Int[np.ndarray, "_"]) -> Float[np.ndarray, "n ..."]:
        sizes = np.diff(offsets)
        return np.repeat(guess, sizes, axis=0) if len(guess) == len(sizes) else np.repeat(guess, len(x), axis=0)

    return predict
