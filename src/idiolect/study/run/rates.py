"""Learning rates that fit the data: multiples of 1 / L, L the largest curvature of the clients' losses."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.client.objective import Batch
from idiolect.core import tree
from idiolect.data.federated import FederatedData
from idiolect.models import LinearRegression, MultinomialLogistic
from idiolect.study.spec.assemble import Problem

WHOLE = 512
"""The most training rows of any client for which a step takes all rows of a client."""
BATCH = 64
"""Rows of a step otherwise."""

_STEPS = 20  # power iterations: the largest eigenvalue to a few per cent, which is all that a step size needs
_CLIENTS, _ROWS = 64, 64
"""Clients and rows of each on which the curvature of a model that is not linear is measured."""
_LIKE_RATE = ("inner_rate", "adapt_rate", "finetune_rate", "personal_rate", "head_rate", "recon_rate")
"""Rates of a client's own gradient steps. Where the default is None the method takes `rate` already."""


def whole_or_batch(largest: int) -> int:
    """The batch size of a method that sets none: 0 (all rows of a client) up to `WHOLE` rows, else `BATCH`.

    largest: training rows of the client that has most. Gradients of all rows are exact and allow the largest rate.
    """
    return 0 if largest <= WHOLE else BATCH


def safe_rate(data: FederatedData, linear: bool) -> float:
    """A learning rate with which no client diverges: 1 / L, L the largest eigenvalue of any client's z z' mean.

    z: a sample's features and 1, for the bias; L bounds the curvature of a linear model's squared error, and of its
    cross-entropy too. For other models 0.1, which is only a guess.
    """
    if not linear:
        return 0.1
    train = data.stored("train")
    largest = 1.0
    for client in range(data.num_clients):
        x = train.client(client)[0].reshape(int(train.sizes[client]), -1).astype(np.float64)
        z = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        if len(z):  # the smaller of two products with the same largest eigenvalue; an SVD takes far longer
            gram = z.T @ z if len(z) > z.shape[1] else z @ z.T
            largest = max(largest, float(np.linalg.eigvalsh(gram)[-1]) / len(z))
    return 1 / largest


def curvature(problem: Problem, batch: int) -> float:
    """Return L, at least 1: the curvature that a step on a mini-batch of a client's training rows meets.

    Linear models: lambda + m / B, lambda the largest eigenvalue of any client's mean z z', z a row's features and 1,
    m the largest mean |z|^2, B the batch size (0: all rows, no second term). Steps of 1 / L are then stable in mean
    square; both bound squared error and cross-entropy. Other models: the largest eigenvalue of the loss's Hessian at
    the initial parameters, by power iterations on up to 64 rows of up to 64 clients. The L2 weight is added.
    """
    data, l2 = problem.data, float(problem.l2)
    if isinstance(problem.module, LinearRegression | MultinomialLogistic):
        largest = 1 / safe_rate(data, True)
        if batch:
            largest += _mean_square(data) / batch
        return largest + l2
    train = data.stored("train")
    chosen = sorted(range(data.num_clients), key=lambda i: (-int(train.sizes[i]), i))[:_CLIENTS]
    values = [_top(problem, *(jax.tree.map(lambda a: a[:_ROWS], part) for part in train.client(i))) for i in chosen]
    return max(1.0, *values)


def _mean_square(data: FederatedData) -> float:
    train = data.stored("train")
    squares = np.sum(train.x.reshape(len(train.x), -1).astype(np.float64) ** 2, axis=1) + 1
    sums = np.bincount(train.owners, weights=squares, minlength=data.num_clients)
    return float(np.max(sums / np.maximum(train.sizes, 1)))


def _top(problem: Problem, x: Any, y: Any) -> float:
    """The largest eigenvalue, in size, of the Hessian of the mean loss of these rows at the initial parameters."""
    objective = problem.objective
    batch = Batch(jax.tree.map(jnp.asarray, x), jnp.asarray(y), jnp.ones(len(y)))
    return float(_power(jax.grad(lambda params: objective.loss(params, batch)), problem.params))


def _power(gradient: Any, params: PyTree) -> Float[Array, ""]:
    leaves, form = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(0), max(len(leaves), 1))
    start = jax.tree.unflatten(form, [jax.random.normal(k, a.shape) for k, a in zip(keys, leaves, strict=False)])

    def step(v: PyTree, _: None) -> tuple[PyTree, Float[Array, ""]]:
        unit = jax.tree.map(lambda a: a / jnp.sqrt(tree.squared_norm(v) + 1e-30), v)
        after = jax.jvp(gradient, (params,), (unit,))[1]
        return after, jnp.sqrt(tree.squared_norm(after))

    return jax.jit(lambda v: jax.lax.scan(step, v, None, length=_STEPS)[1][-1])(start)


def rates_of(spec: Mapping[str, Any], smooth: float) -> dict[str, float]:
    """The rates that a method's specification leaves open. smooth: L, see `curvature`.

    `rate` and the other rates of clients' gradient steps are 1 / L. Steps with a proximal term (pFedMe's inner ones,
    Ditto's personal ones) have the curvature L + prox_weight. pFedMe's `rate` descends a function of curvature at
    most prox_weight: 1 / prox_weight. L2GD's stays below its paper's bound. Rates of the server keep their defaults,
    so do methods without `rate`. All are rounded to three digits.
    """
    known = hyperparameters(ALGORITHMS[spec["name"]])
    if "rate" not in known or not ALGORITHMS[spec["name"]].by_curvature:
        return {}
    has = {**known, **spec}
    rates = {"rate": 1 / smooth} | {key: 1 / smooth for key in _LIKE_RATE if known.get(key) is not None}
    if spec["name"] == "pfedme":
        weight = float(has["prox_weight"])
        rates |= {"rate": 1 / max(weight, 1e-3), "inner_rate": 1 / (smooth + weight)}
    elif spec["name"] == "l2gd":
        rates["rate"] = min(1 / smooth, float(has["probability"]) / (2 * max(float(has["coupling"]), 1e-6)))
    elif "personal_rate" in known and "prox_weight" in known and "rate" not in spec:
        rates["personal_rate"] = 1 / (smooth + float(has["prox_weight"]))
    return {key: float(f"{value:.3g}") for key, value in rates.items() if key not in spec}
