"""Two methods unlike pFedMe against the contract: FedU (clients mix) and PFLEGO (the head stays private)."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from idiolect import Local, tree
from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.solvers import sgd
from idiolect.data import from_arrays
from idiolect.objective import objective_of
from idiolect.simulate import Simulation

CLIENTS, FEATURES, HIDDEN = 4, 3, 5


class FedU(Algorithm):
    """FedU, Algorithm 1: the server keeps every client's model and mixes the sampled ones over a graph."""

    name: ClassVar[str] = "fedu"
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    model_names: ClassVar[tuple[str, ...]] = ("personal",)

    edges: Array  # (N, N) symmetric weights a_kl
    rate: float = 0.1
    coupling: float = 0.5
    local_steps: int = eqx.field(static=True, default=2)
    batch_size: int = eqx.field(static=True, default=100)

    def init(self, params: Any, key: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.stack([leaf] * CLIENTS), params)

    def view(self, shared: Any, client_id: Any) -> Any:
        return tree.gather(shared, client_id)

    def local(self, view: Any, private: Any, client: Any, key: Any) -> Any:
        trained = sgd(client, view, key, rate=self.rate, steps=self.local_steps, batch_size=self.batch_size)
        return trained, private

    def aggregate(self, shared: Any, cohort: Any, messages: Any) -> Any:
        step = self.rate * self.local_steps * self.coupling
        a = self.edges[cohort.ids][:, cohort.ids]

        def mix(old: Any, new: Any) -> Any:
            pull = jnp.einsum("kl,kl...->k...", a, new[:, None] - new[None, :])
            return old.at[cohort.ids].set(new - step * pull)

        return jax.tree.map(mix, shared, messages)

    def models(self, view: Any, private: Any, client: Any, key: Any) -> Any:
        return {"personal": view}


def is_head(path: Any, leaf: Any) -> bool:
    return "layers[1]" in jax.tree_util.keystr(path)


def split(params: Any) -> tuple[Any, Any]:
    """(body, head), by a predicate over the model tree; each has None in the other's place."""
    flags = jax.tree_util.tree_map_with_path(is_head, params)
    head, body = eqx.partition(params, flags)
    return body, head


class PFLEGO(Algorithm):
    """PFLEGO, Algorithm 1 with eq. (5)'s weights: only a gradient of the body travels, the head stays."""

    name: ClassVar[str] = "pflego"
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    model_names: ClassVar[tuple[str, ...]] = ("personal",)

    rate: float = 0.1
    cohort: int = eqx.field(static=True, default=CLIENTS)
    total: int = eqx.field(static=True, default=1)

    def init(self, params: Any, key: Any) -> Any:
        return split(params)[0]

    def init_private(self, params: Any, key: Any) -> Any:
        return split(params)[1]

    def local(self, view: Any, private: Any, client: Any, key: Any) -> Any:
        _, slope = client.full_value_and_grad(eqx.combine(view, private))
        body, head = split(slope)
        share = client.size / self.total * CLIENTS / self.cohort
        return body, tree.add_scaled(private, -self.rate * share, head)

    def aggregate(self, shared: Any, cohort: Any, messages: Any) -> Any:
        alpha = cohort.weights("size") / cohort.total_size * cohort.population / self.cohort
        return jax.tree.map(lambda w, g: w - self.rate * jnp.tensordot(alpha, g, axes=1), shared, messages)

    def models(self, view: Any, private: Any, client: Any, key: Any) -> Any:
        return {"personal": eqx.combine(view, private)}


def federation() -> Any:
    rng = np.random.default_rng(0)
    sizes = (8, 20, 13, 31)
    return from_arrays(
        {
            f"c{i}": (rng.normal(size=(n, FEATURES)).astype("f4"), rng.normal(size=n).astype("f4"))
            for i, n in enumerate(sizes)
        },
        task="regression",
    )


def simulation(algorithm: Algorithm, cohort: int | None = None) -> Simulation:
    data = federation()
    model = eqx.nn.MLP(FEATURES, "scalar", HIDDEN, 1, key=jax.random.key(1))
    params = eqx.filter(model, eqx.is_inexact_array)
    return Simulation(data, objective_of(model, "regression"), params, algorithm, cohort=cohort)


def test_fedu_without_coupling_is_local_training() -> None:
    edges = jnp.ones((CLIENTS, CLIENTS))
    fedu = simulation(FedU(edges, coupling=0.0), cohort=2)
    local = simulation(Local(rate=0.1, local_steps=2, batch_size=100), cohort=2)
    a, b = fedu.advance(fedu.init(3), 5), local.advance(local.init(3), 5)
    for x, y in zip(jax.tree.leaves(a.shared), jax.tree.leaves(b.private), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


def test_fedu_mixes_sampled_neighbours_only_and_keeps_the_mean() -> None:
    edges = jnp.asarray(np.diag([0.3, 0.0, 0.5], 1) + np.diag([0.3, 0.0, 0.5], -1), jnp.float32)
    mixed, apart = simulation(FedU(edges, coupling=0.4)), simulation(FedU(edges, coupling=0.0))
    a, b = mixed.advance(mixed.init(0), 1).shared, apart.advance(apart.init(0), 1).shared
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert not np.allclose(x, y)
        pairs = [(0, 1), (2, 3)]  # the graph has two parts: each keeps its own mean
        for i, j in pairs:
            np.testing.assert_allclose(x[i] + x[j], y[i] + y[j], rtol=1e-5, atol=1e-6)
        step = 0.1 * 2 * 0.4
        np.testing.assert_allclose(x[0], y[0] - step * 0.3 * (y[0] - y[1]), rtol=1e-5, atol=1e-6)


def test_pflego_with_all_clients_is_one_centralised_gradient_step() -> None:
    data = federation()
    total = int(data.train.sizes.sum())
    sim = simulation(PFLEGO(rate=0.1, total=total))
    start = sim.init(0)
    body, heads = jax.tree.map(jnp.array, (start.shared, start.private))

    def loss(everything: tuple[Any, Any]) -> Array:
        body, heads = everything
        value = jnp.zeros(())
        for i in range(CLIENTS):
            x, y = data.train.client(i)
            params = eqx.combine(body, tree.gather(heads, i))
            outputs = sim.objective.outputs(params, jnp.asarray(x))
            value = value + 0.5 * jnp.sum((outputs - y) ** 2) / total
        return value

    slope = jax.grad(loss)((body, heads))
    expected = tree.add_scaled((body, heads), -0.1, slope)
    after = sim.advance(start, 1)
    for x, y in zip(jax.tree.leaves((after.shared, after.private)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_pflego_sends_no_head() -> None:
    sim = simulation(PFLEGO(total=1))
    state = sim.init(0)
    client = sim.client(sim.arrays, jnp.asarray(0), jnp.asarray(0))
    message, _ = sim.algorithm.local(state.shared, tree.gather(state.private, 0), client, jax.random.key(0))
    sent = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(message)]
    assert sent
    assert not any("layers[1]" in path for path in sent)
