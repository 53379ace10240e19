"""Small federations for boosted trees, and LightGBM on the same bins, intercepts and rules."""

from typing import Any

import jax
import lightgbm
import numpy as np

from idiolect.algorithms.parts.boosting import Boosting
from idiolect.client.objective import objective_of
from idiolect.client.samples import with_spare_rows
from idiolect.core import tree
from idiolect.data.federated import FederatedData
from idiolect.data.schema.columns import Category, Column, Number
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.models import build as build_model
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests.federations import federation, split_of

SIZES = (120, 80, 150, 60, 90, 200, 40)
Parts = list[tuple[np.ndarray, np.ndarray]]


def parts_of(
    task: str,
    sizes: tuple[int, ...] = SIZES,
    missing: float = 0.0,
    seed: int = 0,
    spread: float = 0.7,
    dtype: Any = np.float64,
) -> Parts:
    """Each client's rows: interactions, a feature with four values, and an effect that only odd clients have."""
    rng, parts = np.random.default_rng(seed), []
    for i, n in enumerate(sizes):
        x = rng.normal(size=(n, 5))
        x[:, 1] = rng.integers(0, 4, n)
        score = (
            np.sin(2 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0) + spread * rng.normal() + 0.8 * (x[:, 3] if i % 2 else 0)
        )
        x[rng.random((n, 5)) < missing] = np.nan
        if task == "regression":
            y = (score + rng.normal(size=n)).astype(dtype)
        elif task == "two":
            y = (score + rng.logistic(size=n) > 0.8).astype(np.int32)
        else:
            y = np.digitize(score + rng.logistic(size=n), [0.0, 1.2]).astype(np.int32)
        parts.append((x.astype(dtype), y))
    return parts


def with_words(parts: Parts, task: str, kinds: int, seed: int = 1) -> Parts:
    """The rows with a column of so many categories, one feature each, before their features.

    Each category has its effect; some rows are of none.
    """
    rng, widened = np.random.default_rng(seed), []
    effect, share = rng.normal(size=kinds) * 2, rng.dirichlet(np.full(kinds, 3.0))
    for x, y in parts:
        code = np.where(rng.random(len(y)) < 0.05, -1, rng.choice(kinds, len(y), p=share))
        more = np.where(code >= 0, effect[code], 0.0)
        ones = (code[:, None] == np.arange(kinds)).astype(x.dtype)
        labels = y + more if task == "regression" else (y + 0.5 * more + rng.logistic(size=len(y)) * 0.3 > 0.5)
        widened.append((np.concatenate([ones, x], axis=1), labels.astype(y.dtype)))
    return widened


def schema_of(words: int, numbers: int) -> Schema:
    """Of a table with a column of so many categories, and then so many columns of numbers."""
    columns: list[Column] = [Category(name="c", categories=tuple(f"{k:03}" for k in range(words)))]
    columns += [Number(name=f"x{k}", fill=0.0) for k in range(numbers)]
    return Schema(client="client", label=Target(name="y"), columns=tuple(columns))


def data_of(parts: Parts, task: str, words: int = 0) -> FederatedData:
    """A federation whose test rows are its training rows. words: features of the first column, one of categories."""
    schema = schema_of(words, parts[0][0].shape[1] - words) if words else None
    classes = {"regression": (), "two": ("a", "b"), "three": ("a", "b", "c")}[task]
    kind = "regression" if task == "regression" else "classification"
    return federation(split_of(parts), task=kind, classes=classes, schema=schema)


def simulation_of(parts: Parts, task: str, method: Boosting, words: int = 0, **options: Any) -> Simulation:
    """The method on a federation; the model is not used. words: see `data_of`."""
    x = np.concatenate([x for x, _ in parts])
    data = data_of([(np.nan_to_num(x), y) for x, y in parts], task, words)
    model = build_model(
        "linear" if task == "regression" else "mlr",
        data.feature_shape,
        data.num_outputs,
        data.task,
        jax.random.key(0),
    )
    params = jax.tree.map(lambda a: a, model)
    simulation = Simulation(data, objective_of(model, data.task), params, method, **options)
    if np.isnan(x).any():  # a federation refuses missing values, a method need not
        simulation.arrays = simulation.arrays._replace(x=jax.numpy.asarray(with_spare_rows(x)))
    return simulation


def forests_of(simulation: Simulation, state: Any) -> list[Any]:
    """Each client's model."""
    (name,) = simulation.algorithm.model_names
    made = Evaluator(simulation).client_models(state, (name,))[name]
    return [jax.jit(tree.gather)(made, i).forest for i in range(simulation.data.num_clients)]


def outputs_of(forests: list[Any], parts: Parts) -> list[np.ndarray]:
    """Each client's outputs on its rows."""
    return [np.asarray(jax.jit(jax.vmap(forest))(x)) for forest, (x, _) in zip(forests, parts, strict=True)]


def binned_rows(edges: Any, parts: Parts, words: int = 0) -> np.ndarray:
    """All rows' bins as numbers, NaN where a value is missing.

    words: features of the first column, one of categories, whose number takes their place.
    """
    x = np.concatenate([x for x, _ in parts])
    columns = [np.searchsorted(np.asarray(e), column) for e, column in zip(edges, x.T, strict=True)]
    bins = np.where(np.isnan(x), np.nan, np.column_stack(columns))
    if not words:
        return bins
    ones = x[:, :words]
    code = np.where(ones.any(axis=1), ones.argmax(axis=1), np.nan)
    return np.concatenate([code[:, None], bins[:, words:]], axis=1)


def rounds_for(simulation: Simulation, state: Any, trees: int) -> Any:
    """The state after as many rounds as so many trees take."""
    while int(state.shared.model.done) < trees:
        assert int(state.round) < 40 * trees
        state = simulation.advance(state, 1)
    return state


def lightgbm_scores(
    features: np.ndarray,
    labels: np.ndarray,
    start: np.ndarray,
    *,
    objective: str,
    trees: int,
    clients: np.ndarray | None = None,
    among: np.ndarray | None = None,
    words: bool = False,
    **settings: Any,
) -> np.ndarray:
    """LightGBM's scores of these rows after some trees, from given scores.

    words: the first feature is a category.
    clients: each row's, as a category. among: the rows that the trees are grown on, all by default.
    """
    categories: Any = [0] if words else "auto"
    if clients is not None:
        features, categories = np.column_stack([features, clients]), [*[0] * words, features.shape[1]]
    parameters = {
        "objective": objective,
        "verbosity": -1,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "max_bin": 2000,
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "boost_from_average": False,
        "enable_bundle": False,
        **settings,
    }
    among = np.arange(len(labels)) if among is None else among
    held = (features[among], labels[among])
    rows = lightgbm.Dataset(*held, init_score=start[among], categorical_feature=categories, params=parameters)
    booster = lightgbm.train(parameters, rows, num_boost_round=trees)
    return start + np.asarray(booster.predict(features, raw_score=True))
