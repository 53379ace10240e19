"""Gradient boosting as a bar: LightGBM on each client's rows, or on all rows with the client as a category.

LightGBM is the extra `idiolect[trees]`. Settings: 15 leaves, rate .05, 20 rows per leaf, at most 500 trees; training
stops where the validation loss has not fallen for 30 trees. A feature has at most 255 bins, and 63 where all clients
together have more than 20,000 training rows: the loss is as low, in three quarters of the time. One thread grows a
model; `trees` of `baselines` grows those of several divisions side by side.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from idiolect.study.advice.regressions import Rows, mixed, own_regressions, penalties_of

LEAST, SCORED = 100, 10
"""Training and validation rows from which a client has trees of its own."""
_TREES, _PATIENCE = 500, 30
_BINS, _FEWER, _LARGE = 255, 63, 20_000

Predict = Callable[[Shaped[np.ndarray, "n d"], Shaped[np.ndarray, "_"]], Float[np.ndarray, "n ..."]]
"""From rows and their clients' offsets to outputs: numbers (n,), or logarithms of probabilities (n, classes)."""


def has_lightgbm() -> bool:
    """Whether LightGBM is installed."""
    try:
        return find_spec("lightgbm") is not None
    except ValueError:  # a module that was taken out of `sys.modules`
        return False


def grows(train: Rows, validation: Rows, classes: int) -> np.ndarray:
    """Return (clients,) whether each client has rows enough, and two classes, for trees of its own."""
    enough = (train.sizes >= LEAST) & (validation.sizes >= SCORED)
    if classes:
        pairs = zip(train.offsets[:-1], train.offsets[1:], strict=True)
        enough &= np.asarray([len(np.unique(train.y[first:last])) >= 2 for first, last in pairs])
    return enough


def pooled_trees(train: Rows, validation: Rows, classes: int) -> Predict:
    """Grow trees on all clients' training rows; the client is a category, which splits may use.

    Early stopping uses all validation rows. classes: 0 for a regression.
    """

    def with_client(x: Shaped[np.ndarray, "n d"], offsets: Shaped[np.ndarray, "_"]) -> Shaped[np.ndarray, "n p"]:
        owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return np.concatenate([x, owners[:, None].astype(x.dtype)], axis=1)

    x, scored = (with_client(part.x, part.offsets) for part in (train, validation))
    predict = _grown(x, train.y, scored, validation.y, classes, _bins(train), category=train.x.shape[1])
    return lambda x, offsets: predict(with_client(x, offsets))


def own_trees(train: Rows, validation: Rows, classes: int) -> Predict:
    """Grow trees on each client's rows; a client with too few, see `grows`, has its own regression instead."""
    able = grows(train, validation, classes)
    others = np.flatnonzero(~able)
    fits = None
    if len(others):
        fits = own_regressions(_of(train, others), _of(validation, others), classes, penalties_of(classes))
    grown: dict[int, Any] = {}
    for client in np.flatnonzero(able).tolist():
        mine, scored = _of(train, np.asarray([client])), _of(validation, np.asarray([client]))
        grown[client] = _grown(mine.x, mine.y, scored.x, scored.y, classes, _bins(train))

    def predict(x: Shaped[np.ndarray, "n d"], offsets: Shaped[np.ndarray, "_"]) -> Float[np.ndarray, "n ..."]:
        outputs = np.zeros((len(x), classes) if classes else len(x))
        if fits is not None:
            rest = _of(Rows(x, np.arange(len(x)), offsets), others)
            outputs[rest.y] = fits.outputs(rest.x, rest.offsets)
        for client, one in grown.items():
            rows = slice(int(offsets[client]), int(offsets[client + 1]))
            if rows.stop > rows.start:
                outputs[rows] = one(x[rows])
        return outputs

    return predict


def _bins(train: Rows) -> int:
    """Bins of a feature. train: of all clients."""
    return _BINS if len(train.y) <= _LARGE else _FEWER


def _of(rows: Rows, clients: np.ndarray) -> Rows:
    """The rows of some clients."""
    sizes = rows.sizes[clients]
    if len(clients) == len(rows.sizes):
        return rows
    places = [np.arange(int(rows.offsets[i]), int(rows.offsets[i + 1])) for i in clients.tolist()]
    chosen = np.concatenate(places).astype(np.int64)
    return Rows(rows.x[chosen], rows.y[chosen], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def _grown(
    x: Shaped[np.ndarray, "n d"],
    y: Shaped[np.ndarray, "n"],
    scored_x: Shaped[np.ndarray, "m d"],
    scored_y: Shaped[np.ndarray, "m"],
    classes: int,
    bins: int,
    category: int | None = None,
) -> Any:
    """From rows to outputs, of trees that are grown until the loss on the scored rows stops falling."""
    import lightgbm  # an extra

    goal = {0: "regression", 1: "binary", 2: "binary"}.get(classes, "multiclass")
    settings: dict[str, Any] = {
        "objective": goal,
        "num_leaves": 15,
        "learning_rate": 0.05,
        "min_data_in_leaf": 20,
        "seed": 0,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
        "num_threads": 1,
        "max_bin": bins,
    }
    if goal == "multiclass":
        settings["num_class"] = classes
    categories: Any = "auto" if category is None else [category]
    rows = lightgbm.Dataset(x, y, categorical_feature=categories, params=settings, free_raw_data=True)
    scored = lightgbm.Dataset(scored_x, scored_y, reference=rows, params=settings)
    stopping = lightgbm.early_stopping(_PATIENCE, verbose=False)
    trees = lightgbm.train(settings, rows, _TREES, valid_sets=[scored], callbacks=[stopping])
    counts = np.bincount(y, minlength=classes) if classes else np.zeros(0, np.int64)

    def predict(rows: Shaped[np.ndarray, "n d"]) -> Float[np.ndarray, "n ..."]:
        raw = np.asarray(trees.predict(rows, raw_score=True, num_iteration=trees.best_iteration))
        return mixed(raw.reshape(len(rows), -1), counts) if classes else raw

    return predict
