"""A small federation, a model in two layers, and the steps of its parts written out with plain gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from idiolect.client.client import Client
from idiolect.core import tree
from idiolect.models.parts import separate
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation
from tests.federations import Problem, classification

SIZES = (9, 1, 14, 4)
HEAD = "second"  # of tests.federations.Tanh; its body is first, bias
KEY = jax.random.key(5)


def problem(l2: float = 0.1, sizes: tuple[int, ...] = SIZES) -> Problem:
    return classification(sizes, l2=l2)


def loss(problem: Problem, params: Any, index: int) -> jax.Array:
    """l_i over all the samples of a client, from its definition."""
    x, y = (jnp.asarray(a) for a in problem.data.train.client(index))
    losses = jax.vmap(lambda x, y: -jax.nn.log_softmax(params(x))[y])(x, y)
    return losses.mean() + 0.5 * problem.objective.l2 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))


def slopes(problem: Problem, body: Any, head: Any, index: int) -> tuple[Any, Any]:
    """Exact gradients of l_i with respect to (body, head)."""
    return _slopes(problem, body, head)[index]


def _slopes(problem: Problem, body: Any, head: Any) -> list[tuple[Any, Any]]:
    if problem.objective.l2 not in _COMPILED:

        def all_clients(body: Any, head: Any) -> list[tuple[Any, Any]]:
            whole = lambda index: lambda body, head: loss(problem, tree.merged(head, body), index)  # noqa: E731
            return [jax.grad(whole(index), (0, 1))(body, head) for index in range(len(SIZES))]

        _COMPILED[problem.objective.l2] = jax.jit(all_clients)
    return _COMPILED[problem.objective.l2](body, head)


_COMPILED: dict[Any, Any] = {}


def descend(params: Any, rate: float, slope: Any) -> Any:
    return jax.tree.map(lambda p, g: p - rate * g, params, slope)


def start(problem: Problem) -> tuple[Any, Any]:
    """(body, head) of the initial model."""
    return separate(problem.params, HEAD)


def own(state: State, index: int) -> Any:
    """One client's private state."""
    return tree.gather(state.private, index)


def cohorts(simulation: Simulation, rounds: int) -> list[list[int]]:
    """The clients that take part, round by round, in the run of seed 0."""
    key = jax.random.key(0)
    capacity = simulation.sampling.capacity(key, rounds)
    draws = (simulation.sampling.draw(key, round, capacity) for round in range(rounds))
    return [[int(i) for i in np.asarray(ids)[np.asarray(present)]] for ids, present in draws]


def sent(algorithm: Any, client: Client, shared: Any, private: Any) -> tuple[list[str], Any, Any]:
    """(the paths of the leaves that leave the client, message, private state)."""
    view = algorithm.view(shared, client.id)
    message, private = jax.jit(lambda: algorithm.local(view, private, client, KEY))()
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(message)]
    return paths, message, private


def split_of(params: Any) -> tuple[Any, Any]:
    """(body, head) of a whole model."""
    return separate(params, HEAD)


def mean(trees: list[Any], weights: list[int]) -> Any:
    """The weighted mean of parameter trees."""
    share = np.asarray(weights, np.float32) / sum(weights)
    return jax.tree.map(lambda *leaves: jnp.asarray(sum(map(np.multiply, share, leaves))), *trees)
