"""FedU on quadratics: graphs, its minimiser, Algorithm 1 in numpy and where it stands still."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect import graphs
from idiolect.algorithms.fedu import FedU
from tests.federations import DIM

PATH = graphs.from_edges([(0, 1, 0.5), (1, 2, 1.0), (2, 3, 2.0)], 4)
PARTS = graphs.from_edges([(0, 2, 1.0), (1, 3, 0.5)], 4)
STAR = graphs.star(4)
MIXED = graphs.from_edges([(0, 1, 0.5), (1, 2, 1.0)], 4, hub=np.array([0.3, 0.0, 1.0, 2.0]))


def exact(graph=PATH, **changes):
    """FedU with exact gradients, so that a round is known in closed form."""
    return FedU(**{"rate": 0.05, "local_steps": 1, "batch_size": 0, "coupling": 1.0, "graph": graph} | changes)


def big(graph):
    """L kron I."""
    return np.kron(graph.laplacian().toarray(), np.eye(DIM))


def losses(problem, graph):
    """(A, c) of the sum of all clients' quadratics as one, with zeros for a hub."""
    vertices = problem.clients + (graph.hub is not None)
    a = np.zeros((vertices, DIM, vertices, DIM))
    for k in range(problem.clients):
        a[k, :, k] = problem.a[k]
    c = np.zeros((vertices, DIM))
    c[: problem.clients] = problem.c
    return a.reshape(vertices * DIM, -1), c.ravel()


def minimiser(problem, graph, coupling):
    """argmin of sum_k f_k(w_k) + (eta / 2) W'LW: (A + eta L)^-1 A c, one row a vertex, the hub last."""
    a, c = losses(problem, graph)
    return np.linalg.solve(a + coupling * big(graph), a @ c).reshape(-1, DIM)


def fixed_point(problem, graph, rate, steps, coupling):
    """W = M (c + D (W - c)) with D = (I - mu A)^R, M = I - mu R eta L: exactly where Algorithm 1 stands still."""
    a, c = losses(problem, graph)
    eye = np.eye(len(c))
    d, m = np.linalg.matrix_power(eye - rate * a, steps), eye - rate * steps * coupling * big(graph)
    return np.linalg.solve(eye - m @ d, m @ (eye - d) @ c).reshape(-1, DIM)


def spread(simulation):
    """A state in which every client has another model."""
    state, rng = simulation.init(0), np.random.default_rng(5)
    return eqx.tree_at(
        lambda s: s.shared.params,
        state,
        jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), leaf.dtype), state.shared.params),
    )


def without_loss(problem):
    """The same federation with f_k = 0: nothing is left but mixing."""
    return replace(
        problem, objective=replace(problem.objective, sample_loss=lambda output, target: jnp.zeros_like(output))
    )


def runner(simulation):
    """(state, rate, coupling, rounds) -> state: one compiled program for every step."""

    @jax.jit
    def go(state, rate, coupling, rounds):
        plan = simulation.plan
        changed = eqx.tree_at(lambda p: (p.algorithm.rate, p.algorithm.coupling), plan, (rate, coupling))
        return changed.rounds_until(state, simulation.arrays, state.round + rounds, plan.population)

    return go


def algorithm_1(problem, method, graph, shared, cohort, round):
    """One round of Algorithm 1 in plain numpy, with batches in cyclic order."""
    trained, size, eta = shared.copy(), method.batch_size, method.coupling
    steps = method.local_steps
    for k in cohort:
        x, _ = problem.data.train.client(k)
        batches = [x[i : i + size].astype(float) for i in range(0, len(x), size)]
        for r in range(steps):
            batch = batches[(round * steps + r) % len(batches)]
            slope = np.mean([s[:, :5] @ (trained[k] - s[:, 5]) for s in batch], axis=0)
            trained[k] -= method.rate * slope
    a, there = graph.adjacency().toarray(), [*cohort, *range(problem.clients, len(shared))]
    step = method.rate * steps * eta
    if method.mixing == "published":
        for k in sorted(there):
            trained[k] -= 0.5 * step * sum(a[k, m] * (trained[k] - trained[m]) for m in there)
        return trained
    after = trained.copy()
    for k in there:
        after[k] -= step * sum(a[k, m] * (trained[k] - trained[m]) for m in there)
    return after
