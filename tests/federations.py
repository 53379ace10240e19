"""Small federations with known answers, made with numpy."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect.algorithms.base import Start, start_of
from idiolect.client.client import Client, Federation
from idiolect.client.objective import Objective, objective_of
from idiolect.client.samples import to_device
from idiolect.data.federated import FederatedData, Split
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation

DIM = 5


def split_of(parts: list[tuple[np.ndarray, np.ndarray]]) -> Split:
    """The clients' (x, y), concatenated."""
    offsets = np.concatenate([[0], np.cumsum([len(y) for _, y in parts])])
    return Split(np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]), offsets)


def federation(train: Split, test: Split | None = None, **changes: Any) -> FederatedData:
    """A federation of these splits, without validation data; the test split is the training split unless given."""
    clients = len(train.offsets) - 1
    nothing = Split(train.x[:0], train.y[:0], np.zeros(clients + 1, np.int64))
    fields: dict[str, Any] = {
        "name": "small",
        "train": train,
        "validation": nothing,
        "test": test or train,
        "clients": tuple(f"c{i}" for i in range(clients)),
        "task": "regression",
    }
    return FederatedData(**fields | changes)


def client_of(data: FederatedData, objective: Objective, index: int, round: int = 0) -> Client:
    """One client of a federation, as the runtime presents it."""
    train = to_device(data.train)
    return Client(
        train.x,
        train.y,
        train.starts[index],
        train.sizes[index],
        jnp.asarray(index, jnp.int32),
        jnp.asarray(round, jnp.int32),
        objective,
        Federation(
            jnp.asarray(float(data.train.sizes.sum())),
            data.num_clients,
            data.num_clients,
            int(data.train.sizes.max()),
        ),
        train.outputs[index] if train.outputs is not None else None,
    )


def flat(params: Any) -> np.ndarray:
    """All parameters as one vector."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def rows(params: Any) -> np.ndarray:
    """Parameters of several clients, leaves (clients, ...), as one matrix."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(params)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def bits(state: State) -> list[bytes]:
    """Every number of a state, for comparisons to the last bit."""
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((state.shared, state.private))]


def start_with(params: Any, data: FederatedData | None = None) -> Start:
    """What a method's `init` is given: these parameters, on a federation or on the smallest that there is."""
    return start_of(data or federation(split_of([(np.zeros((1, 1), "f4"), np.zeros(1, "f4"))])), params)


def run(simulation: Simulation, rounds: int = 1, seed: int = 0) -> State:
    """The state after `rounds` rounds from the seed."""
    return simulation.advance(simulation.init(seed), rounds)


class Quadratic(eqx.Module):
    """theta -> (theta - c)' A (theta - c) / 2 for a sample x = [A | c]; theta lies in two leaves."""

    head: jax.Array
    tail: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        gap = jnp.concatenate([self.head, self.tail]) - x[:, DIM]
        return 0.5 * gap @ x[:, :DIM] @ gap


def output_itself(output: jax.Array, target: jax.Array) -> jax.Array:
    """The loss of a model whose output is the loss already."""
    return output


@dataclass(frozen=True)
class Quadratics:
    """A federation in which f_i(theta) = (theta - c_i)' A_i (theta - c_i) / 2 on every mini-batch, exactly.

    a: (clients, d, d), eigenvalues in [mu, smooth] with both ends attained; c: (clients, d).
    """

    a: np.ndarray
    c: np.ndarray
    mu: float
    smooth: float
    data: FederatedData
    objective: Objective
    params: Quadratic

    @property
    def clients(self) -> int:
        return len(self.c)

    @property
    def sizes(self) -> np.ndarray:
        return self.data.train.sizes

    def tree(self, vector: np.ndarray) -> Quadratic:
        """A vector as the model's parameters."""
        vector = jnp.asarray(vector, self.data.train.x.dtype)
        return Quadratic(vector[:2], vector[2:])

    def client(self, index: int) -> Client:
        return client_of(self.data, self.objective, index)

    def prox(self, index: int, w: np.ndarray, weight: float) -> np.ndarray:
        """argmin f_i(theta) + weight / 2 ||theta - w||^2 = (A + weight I)^-1 (A c + weight w)."""
        eye = np.eye(DIM)
        return np.linalg.solve(self.a[index] + weight * eye, self.a[index] @ self.c[index] + weight * w)

    def moreau_hessian(self, index: int, weight: float) -> np.ndarray:
        """weight A (A + weight I)^-1, the Hessian of F_i, whose minimiser is c_i."""
        return weight * self.a[index] @ np.linalg.inv(self.a[index] + weight * np.eye(DIM))

    def optimum(self, weights: Any = None) -> np.ndarray:
        """argmin sum_i weights_i f_i, by default with equal weights."""
        share = np.ones(self.clients) if weights is None else np.asarray(weights)
        total, pulls = (np.einsum("k,k...->...", share, v) for v in (self.a, np.einsum("kij,kj->ki", self.a, self.c)))
        return np.linalg.solve(total, pulls)

    def simulation(self, algorithm: Any, **options: Any) -> Simulation:
        return Simulation(self.data, self.objective, self.params, algorithm, **options)


def quadratics(
    sizes: tuple[int, ...] = (3, 1, 6, 2), seed: int = 0, dtype: Any = np.float32, noise: float = 0.0
) -> Quadratics:
    """Random strongly convex quadratics; with noise, each sample has its own centre around c_i."""
    rng = np.random.default_rng(seed)
    mu, smooth = 0.5, 3.0
    a, centres = [], []
    for size in sizes:
        basis = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
        eigenvalues = np.concatenate([[mu, smooth], rng.uniform(mu, smooth, DIM - 2)])
        a.append(basis @ np.diag(eigenvalues) @ basis.T)
        centres.append(rng.normal(size=DIM) + noise * rng.normal(size=(size, DIM)))
    return quadratics_of(np.stack(a), centres, rng.normal(size=DIM), dtype)


def quadratics_of(a: np.ndarray, centres: list[np.ndarray], start: np.ndarray, dtype: Any = np.float32) -> Quadratics:
    """These quadratics: a (clients, d, d); each client's samples' centres (n_i, d); the initial parameters (d,)."""
    parts = []
    for matrix, centre in zip(a, centres, strict=True):
        x = np.concatenate([np.broadcast_to(matrix, (len(centre), DIM, DIM)), centre[:, :, None]], axis=2)
        parts.append((x.astype(dtype), np.zeros(len(centre), dtype)))
    first = jnp.asarray(start, dtype)
    params = Quadratic(first[:2], first[2:])
    objective = objective_of(params, "regression", loss=output_itself)
    eigenvalues, c = np.linalg.eigvalsh(a), np.stack([centre.mean(axis=0) for centre in centres])
    ends = float(eigenvalues.min()), float(eigenvalues.max())
    return Quadratics(a, c, *ends, federation(split_of(parts)), objective, params)


class Tanh(eqx.Module):
    """A small model that is not linear: W2 tanh(W1 x + b)."""

    first: jax.Array
    bias: jax.Array
    second: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.second @ jnp.tanh(self.first @ x + self.bias)


@dataclass(frozen=True)
class Problem:
    """A classification task with its objective and initial parameters."""

    data: FederatedData
    objective: Objective
    params: Tanh

    def client(self, index: int, round: int = 0) -> Client:
        return client_of(self.data, self.objective, index, round)

    def sgd(self, client: Client, key: Any, w: Any, rate: float, steps: int, order: Any = "fresh") -> Any:
        """Mini-batch SGD with batches of 4, written as a Python loop."""
        batches = batches_of(client, key, steps, order)
        for step in range(steps):
            w = _descend(client.objective.l2, w, jax.tree.map(lambda a, step=step: a[step], batches), rate)
        return w

    def simulation(self, algorithm: Any, **options: Any) -> Simulation:
        return Simulation(self.data, self.objective, self.params, algorithm, **options)


@eqx.filter_jit
def batches_of(client: Client, key: Any, steps: int, order: Any) -> Any:
    """The mini-batches of 4 of a round, compiled."""
    return client.batches(key, steps, 4, order)


@eqx.filter_jit
def _descend(l2: float, w: Any, batch: Any, rate: Any) -> Any:
    """One step on the mean cross-entropy of a batch, from its definition."""

    def loss(w: Any) -> Any:
        losses = jax.vmap(lambda x, y: -jax.nn.log_softmax(w(x))[y])(batch.x, batch.y)
        return jnp.sum(losses * batch.weight) / jnp.sum(batch.weight) + 0.5 * l2 * sum(
            jnp.sum(leaf**2) for leaf in jax.tree.leaves(w)
        )

    return jax.tree.map(lambda p, g: p - rate * g, w, jax.grad(loss)(w))


def labelled(sizes: tuple[int, ...], rng: np.random.Generator, dtype: Any = np.float32, features: int = 3) -> Split:
    """Clients with some features and 3 classes, each with its own centre and its own labelling rule."""
    parts = []
    for size in sizes:
        x = rng.normal(size=(size, features)) + rng.normal(size=features)
        y = (x @ rng.normal(size=(features, 3))).argmax(axis=1)
        parts.append((x.astype(dtype), y.astype(np.int32)))
    return split_of(parts)


def classification(
    sizes: tuple[int, ...] = (9, 1, 30, 4, 17),
    seed: int = 0,
    l2: float = 0.0,
    dtype: Any = np.float32,
    features: int = 3,
    hidden: int = 4,
) -> Problem:
    """A classification federation and a two-layer model."""
    rng = np.random.default_rng(seed)
    train, test = labelled(sizes, rng, dtype, features), labelled(sizes[::-1], rng, dtype, features)
    data = federation(train, test, task="classification", classes=("a", "b", "c"))
    shapes = ((hidden, features), (hidden,), (3, hidden))
    params = Tanh(*(jnp.asarray(0.5 * rng.normal(size=shape), dtype) for shape in shapes))
    return Problem(data, objective_of(params, "classification", l2=l2), params)
