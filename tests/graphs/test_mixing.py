"""The mixing step against plain numpy, in all its ways of computing it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import graphs
from tests.federations import flat, rows
from tests.tiers import second

COUNT = 30


def models(count, seed=0, dtype=jnp.float32):
    """Two leaves of different shape for each of `count` rows."""
    rng = np.random.default_rng(seed)
    return {
        "w": jnp.asarray(rng.normal(size=(count, 3, 2)), dtype),
        "b": jnp.asarray(rng.normal(size=(count, 2)), dtype),
    }


def irregular(hub):
    """A client with many neighbours, some with few, one with none; unequal weights."""
    rng = np.random.default_rng(1)
    matrix = np.triu(rng.uniform(size=(COUNT, COUNT)) * (rng.uniform(size=(COUNT, COUNT)) < 0.15), 1)
    matrix[0, 1:25] = rng.uniform(size=24)
    matrix[7] = matrix[:, 7] = 0
    weights = rng.uniform(size=COUNT) * (rng.uniform(size=COUNT) < 0.7) if hub else None
    return graphs.from_dense(matrix + matrix.T, hub=weights)


def by_hand(graph, ids, present, w, step):
    """Algorithm 1, line 14, pair by pair; the hub is the last row and always there."""
    a = graph.adjacency().toarray()
    ids = [*ids, COUNT] if graph.hub is not None else ids
    there = [*present, True] if graph.hub is not None else present
    after = w.copy()
    for i, k in enumerate(ids):
        for j, m in enumerate(ids):
            if there[i] and there[j]:
                after[i] -= step * a[k, m] * (w[i] - w[j])
    return after[np.array(there)]


@pytest.mark.parametrize("hub", [second(False), True])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("count", [COUNT, 11])
def test_only_the_cohort_s_neighbours_count(hub, dense, count):
    graph, rng, step = irregular(hub), np.random.default_rng(2), 0.05
    m = models(count + hub)
    mix = jax.jit(lambda i, p: graphs.mix(graph, i, p, m, step, dense=dense))
    for _ in range(3):
        ids, present = rng.permutation(COUNT)[:count], rng.uniform(size=count) < 0.8
        kept = rows(mix(ids, present))[[*np.flatnonzero(present), *[count] * hub]]
        np.testing.assert_allclose(kept, by_hand(graph, ids, present, rows(m), step), atol=1e-6)


def test_the_product_and_the_walk_agree_in_single_precision():
    """150 clients, about 20 neighbours each: several groups of neighbours, a last short block of rows."""
    graph = graphs.random(150, density=0.15, seed=1)
    ids, everyone, m = jnp.arange(150), jnp.ones(150, bool), models(150)
    step = 1.9 / graph.largest
    mix = jax.jit(lambda dense: graphs.mix(graph, ids, everyone, m, step, dense=dense), static_argnums=0)
    product, walk = (rows(mix(dense)) for dense in (True, False))
    np.testing.assert_allclose(product, walk, atol=1e-6)
    exact = rows(m).astype(float) - step * graph.laplacian().toarray() @ rows(m).astype(float)
    np.testing.assert_allclose(walk, exact, atol=1e-6)
    assert np.abs(exact - rows(m)).max() > 0.5


def test_the_cheaper_way_is_chosen(monkeypatch):
    """A matrix product where the cohort is small or its graph is dense, else a walk."""
    walked = []
    real = graphs.mixing._walk
    monkeypatch.setattr(graphs.mixing, "_walk", lambda *args: walked.append(1) or real(*args))
    for graph, count, expected in (
        (graphs.ring(200), 200, True),
        (graphs.ring(200), 40, False),
        (graphs.complete(200), 200, False),
    ):
        walked.clear()
        jax.eval_shape(
            lambda m, g=graph, c=count: graphs.mix(g, jnp.arange(c), jnp.ones(c, bool), m, 0.1), models(count)
        )
        assert bool(walked) == expected


@pytest.mark.parametrize("hub", [False, True])
def test_in_place_each_sees_what_those_before_it_have_become(hub):
    graph, rng = irregular(hub), np.random.default_rng(3)
    ids, present = rng.permutation(COUNT)[:12], rng.uniform(size=12) < 0.8
    m, step = models(12 + hub), 0.1
    mix = jax.jit(lambda way: graphs.mix(graph, ids, present, m, step, in_place=way), static_argnums=0)
    ids, present = jnp.asarray(ids), jnp.asarray(present)
    got, at_once = rows(mix(True)), rows(mix(False))
    a, w = graph.adjacency().toarray(), rows(m).astype(float)
    there = [i for i in np.argsort(ids) if present[i]] + [12] * hub
    number = [*ids, COUNT]
    for i in there:
        w[i] -= step * sum(a[number[i], number[j]] * (w[i] - w[j]) for j in there)
    np.testing.assert_allclose(got[there], w[there], atol=1e-6)
    assert np.abs(got - at_once)[there].max() > 1e-2


def full(graph, m, step, dense, present=None):
    """All clients in the cohort, in order."""
    ids = jnp.arange(graph.num_clients)
    present = jnp.ones(len(ids), bool) if present is None else present
    return jax.jit(lambda m: graphs.mix(graph, ids, present, m, step, dense=dense))(m)


@pytest.mark.parametrize("dense", [False, True])
def test_a_row_that_does_not_exist_may_hold_anything(dense):
    m = jax.tree.map(lambda leaf: leaf.at[2].set(jnp.nan), models(6))
    present = jnp.arange(6) != 2
    got = rows(full(graphs.complete(6), m, 0.1, dense, present))
    assert np.isfinite(got[np.arange(6) != 2]).all()


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("graph", [graphs.from_edges([], 6), graphs.star(6)])
def test_without_edges_between_clients(graph, dense):
    hub = graph.hub is not None
    m = models(6 + hub)
    got = rows(full(graph, m, 0.1, dense))
    np.testing.assert_allclose(got, rows(m) - 0.1 * graph.laplacian().toarray() @ rows(m), atol=1e-6)


@pytest.mark.parametrize("dense", [False, True])
def test_the_leaves_keep_their_precision(dense):
    m = models(5, dtype=jnp.bfloat16)
    got = full(graphs.ring(5), m, jnp.float32(0.1), dense)
    assert {leaf.dtype for leaf in jax.tree.leaves(got)} == {jnp.dtype(jnp.bfloat16)}


@pytest.mark.parametrize("dense", [False, True])
def test_what_is_nearly_equal_is_not_lost_in_rounding(dense):
    """Models that differ in their last digits: the pull is their difference, not the noise of a large product."""
    graph = graphs.complete(100)
    base = {"w": 1 + 1e-4 * models(100)["w"]}
    got = rows(full(graph, base, 0.01, dense))
    mean = rows(base).astype(float).mean(axis=0)
    np.testing.assert_allclose(got, np.broadcast_to(mean, got.shape), atol=1e-6)  # step = 1 / N: consensus at once


def test_one_client_s_own_computation_is_a_row_of_the_server_s():
    """dFedU: what a client computes from its neighbours' messages alone."""
    graph, m, step = irregular(False), models(COUNT), 0.05
    server = rows(jax.jit(lambda m: graphs.mix(graph, jnp.arange(COUNT), jnp.ones(COUNT, bool), m, step))(m))
    for k in (0, 7):
        entries = slice(graph.offsets[k], graph.offsets[k + 1])
        own, others = (jax.tree.map(lambda leaf, i=i: leaf[i], m) for i in (k, graph.neighbours[entries]))
        alone = graphs.mixed(own, others, jnp.asarray(graph.weights[entries], jnp.float32), step)
        np.testing.assert_allclose(flat(alone), server[k], atol=1e-6)
