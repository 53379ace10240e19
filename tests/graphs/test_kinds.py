"""Graphs by shape against networkx."""

import networkx as nx
import numpy as np
import pytest

from idiolect import graphs
from idiolect.core.errors import ConfigError


def dense(graph):
    return graph.adjacency().toarray()


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_ring_complete_and_star_are_networkx_s(count):
    cycle = nx.cycle_graph(count) if count > 1 else nx.empty_graph(1)
    np.testing.assert_array_equal(dense(graphs.ring(count, weight=0.3)), 0.3 * nx.to_numpy_array(cycle))
    np.testing.assert_array_equal(
        dense(graphs.complete(count, weight=0.3)), 0.3 * nx.to_numpy_array(nx.complete_graph(count))
    )
    hub_last = [*range(1, count + 1), 0]
    np.testing.assert_array_equal(
        dense(graphs.star(count, weight=0.3)), 0.3 * nx.to_numpy_array(nx.star_graph(count), nodelist=hub_last)
    )


@pytest.mark.parametrize(("count", "density"), [(2, 0.0), (9, 0.0), (9, 0.5), (9, 1.0), (60, 0.1), (60, 0.95)])
def test_a_random_graph_is_connected_and_has_its_share_of_the_pairs(count, density):
    pairs = count * (count - 1) // 2
    for seed in range(5):
        graph = graphs.random(count, density=density, weight=0.7, seed=seed)
        assert graph.num_edges == max(count - 1, round(density * pairs))
        assert len(graph.components) == 1
        assert set(graph.weights) == {0.7}


def test_a_random_graph_is_seeded_and_draws_every_pair_about_as_often():
    assert np.array_equal(dense(graphs.random(20, seed=4)), dense(graphs.random(20, seed=4)))
    assert not np.array_equal(dense(graphs.random(20, seed=4)), dense(graphs.random(20, seed=5)))
    draws = 800
    often = sum(dense(graphs.random(6, density=0.6, seed=seed)) for seed in range(draws))[np.triu_indices(6, 1)]
    share = 9 / 15
    assert np.abs(often / draws - share).max() < 5 * np.sqrt(share * (1 - share) / draws)


def test_random_normal_is_normal_moved_to_the_unit_interval():
    weights = dense(graphs.random_normal(120, seed=2))[np.triu_indices(120, 1)]
    assert weights.min() == 0
    assert weights.max() == 1
    standard = (weights - weights.mean()) / weights.std()
    inside = [np.mean(np.abs(standard) < bound) for bound in (1, 2)]
    np.testing.assert_allclose(inside, [0.6827, 0.9545], atol=0.02)
    same = np.random.default_rng(2).normal(size=len(weights))
    np.testing.assert_allclose(weights, (same - same.min()) / np.ptp(same))


def test_the_published_threshold_sets_small_weights_to_zero():
    every, kept = (dense(graphs.random_normal(30, seed=1, threshold=t)) for t in (0.0, 0.25))
    np.testing.assert_array_equal(kept, np.where(every < 0.25, 0, every))
    assert 0 < np.count_nonzero(kept) < np.count_nonzero(every)
    assert dense(graphs.random_normal(2)).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ConfigError, match="components"):
        graphs.random_normal(4, threshold=1.0, connected=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.ring(4, weight=0.0), "weight = 0.0 must be"),
        (lambda: graphs.complete(4, weight=-1.0), "weight = -1.0 must be"),
        (lambda: graphs.star(4, weight=np.inf), "weight = inf must be"),
        (lambda: graphs.random(4, weight=-1.0), "weight = -1.0 must be"),
        (lambda: graphs.random(4, density=1.5), "random: density = 1.5 must lie between 0 and 1"),
        (lambda: graphs.random(4, seed=-1), "random: seed = -1 must be a whole number of at least 0"),
        (lambda: graphs.random_normal(4, threshold=-0.1), "random_normal: threshold = -0.1 must lie between 0 and 1"),
        (lambda: graphs.random_normal(4, seed=-1), "random_normal: seed = -1 must be a whole number of at least 0"),
    ],
)
def test_what_is_out_of_range_is_named(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_random_graph_too_dense_to_keep_is_refused(monkeypatch):
    monkeypatch.setattr("idiolect.graphs.kinds.LARGEST", 30)
    assert graphs.random(10, density=1 / 3).num_edges == 15
    with pytest.raises(ConfigError, match="random: 16 edges are too many to keep; use a lower density"):
        graphs.random(10, density=0.36)
