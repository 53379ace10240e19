"""Related clients of different sizes, MOCHA's primal and dual by definition, and other solvers of its primal."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from idiolect.algorithms.mocha import Mocha
from idiolect.client.objective import objective_of
from idiolect.runtime.simulate import Simulation
from tests.federations import federation, split_of

SIZES = (6, 1, 25, 9)
CLIENTS, FEATURES = len(SIZES), 3
MEAN = (np.eye(CLIENTS) - 1 / CLIENTS) @ (np.eye(CLIENTS) - 1 / CLIENTS)


class Linear(eqx.Module):
    """weight x + bias."""

    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return self.weight @ x + self.bias


@dataclass(frozen=True)
class Problem:
    """Related clients. x: each client's samples with a 1 at the end; y: its targets, (samples, outputs)."""

    x: list[np.ndarray]
    y: list[np.ndarray]
    data: Any
    params: Linear

    def simulation(self, algorithm, **options):
        objective = objective_of(self.params, self.data.task)
        return Simulation(self.data, objective, self.params, algorithm, **options)

    def precision(self, algorithm):
        """lambda_1 Omega + lambda_2 I."""
        omega = MEAN if algorithm.relation is None else algorithm.relation
        return algorithm.coupling * omega + algorithm.shrinkage * np.eye(CLIENTS)

    def primal(self, loss, w, precision):
        """P(W) by definition; w: (clients, outputs, features + 1)."""
        values = {
            "hinge": lambda z, y: np.maximum(0, 1 - y * z),
            "logistic": lambda z, y: np.logaddexp(0, -y * z),
            "squared": lambda z, y: (z - y) ** 2 / 2,
        }[loss]
        data = sum(values(x @ own.T, y).sum() for x, y, own in zip(self.x, self.y, w, strict=True))
        return data + regulariser(w, precision)

    def dual(self, loss, a, precision):
        """-D(alpha) by definition; a: each client's dual variables."""
        values = {
            "hinge": lambda a, y: -y * a,
            "logistic": lambda a, y: xlogy(y * a, y * a) + xlogy(1 - y * a, 1 - y * a),
            "squared": lambda a, y: a**2 / 2 - a * y,
        }[loss]
        conjugate = sum(values(own, y).sum() for own, y in zip(a, self.y, strict=True))
        image = np.stack([own.T @ x for own, x in zip(a, self.x, strict=True)])
        return -conjugate - regulariser(image, np.linalg.inv(precision))

    def ridge(self, precision):
        """argmin P for the squared loss: one linear system in all clients' weights."""
        dim = FEATURES + 1
        big = np.kron(precision, np.eye(dim))
        for t, x in enumerate(self.x):
            big[t * dim : (t + 1) * dim, t * dim : (t + 1) * dim] += x.T @ x
        right = np.concatenate([x.T @ y for x, y in zip(self.x, self.y, strict=True)])
        return np.linalg.solve(big, right).reshape(CLIENTS, dim, -1).swapaxes(1, 2)

    def smooth_optimum(self, precision):
        """argmin P for the logistic loss, by scipy."""
        shape = (CLIENTS, self.y[0].shape[1], FEATURES + 1)

        def slope(flat):
            w = flat.reshape(shape)
            total = np.tensordot(precision, w, axes=1)
            for t, (x, y) in enumerate(zip(self.x, self.y, strict=True)):
                total[t] += (-y * expit(-y * (x @ w[t].T))).T @ x
            return total.ravel()

        start = np.zeros(int(np.prod(shape)))
        value = lambda flat: self.primal("logistic", flat.reshape(shape), precision)  # noqa: E731
        found = minimize(value, start, jac=slope, method="BFGS", options={"gtol": 1e-9, "maxiter": 10_000})
        return found.x.reshape(shape)


def regulariser(w, precision):
    """tr(W A W') / 2 for W with one row a client."""
    flat = w.reshape(CLIENTS, -1)
    return 0.5 * np.trace(flat.T @ precision @ flat)


def tasks(task="classification", seed=0, order=range(CLIENTS)):
    """Four related clients of different sizes: three classes, or a scalar target."""
    rng = np.random.default_rng(seed)
    classes = 3 if task == "classification" else 1
    common = rng.normal(size=(classes, FEATURES))
    parts = []
    for size in SIZES:
        x = rng.normal(size=(size, FEATURES)) + rng.normal(size=FEATURES)
        z = x @ (common + 0.3 * rng.normal(size=common.shape)).T + 0.5 * rng.normal(size=(size, classes))
        parts.append((x, z.argmax(1).astype(np.int32) if classes > 1 else z[:, 0]))
    parts = [parts[i] for i in order]
    names = {"task": task, "classes": ("a", "b", "c")} if classes > 1 else {}
    data = federation(split_of(parts), **names)
    params = Linear(jnp.asarray(rng.normal(size=common.shape)), jnp.asarray(rng.normal(size=classes)))
    x = [np.concatenate([x, np.ones((len(x), 1))], axis=1) for x, _ in parts]
    y = [np.where(np.arange(classes) == y[:, None], 1.0, -1.0) if classes > 1 else y[:, None] for _, y in parts]
    return Problem(x, y, data, params)


def weights(params):
    """Parameters of all clients as (clients, outputs, features + 1)."""
    weight, bias = np.asarray(params.weight), np.asarray(params.bias)
    return np.concatenate([weight.reshape(CLIENTS, -1, FEATURES), bias.reshape(CLIENTS, -1, 1)], axis=2)


def variables(state):
    """Each client's own dual variables."""
    for size, private in zip(SIZES, np.asarray(state.private), strict=True):
        np.testing.assert_array_equal(private[size:], 0)
    return [np.asarray(private[:size]) for size, private in zip(SIZES, state.private, strict=True)]


def positive(seed=3):
    """A random symmetric positive definite matrix with entries of both signs."""
    root = np.random.default_rng(seed).normal(size=(CLIENTS, CLIENTS))
    return root @ root.T + 0.1 * np.eye(CLIENTS)


SETTINGS = {"coupling": 0.7, "shrinkage": 0.3, "passes": 5}


@cache
def simulated(loss, task="classification", relation="any", block=None):
    """(problem, method, simulation, lambda_1 Omega + lambda_2 I), compiled once; for tests in double precision."""
    problem = tasks(task)
    algorithm = Mocha(loss=loss, relation=positive() if relation == "any" else None, **SETTINGS)
    return problem, algorithm, problem.simulation(algorithm, block=block), problem.precision(algorithm)


def diagnosed(simulation, state):
    """The diagnostics as numbers."""
    return {name: float(value) for name, value in simulation.algorithm.diagnostics(state.shared).items()}
