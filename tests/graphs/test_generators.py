"""Graphs by shape against networkx."""

import networkx as nx
import numpy as np
import pytest

from idiolect import graphs
from idiolect.core.errors import ConfigError
from tests.federations import classification, quadratics


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
    monkeypatch.setattr("idiolect.graphs.generators.LARGEST", 30)
    assert graphs.random(10, density=1 / 3).num_edges == 15
    with pytest.raises(ConfigError, match="random: 16 edges are too many to keep; use a lower density"):
        graphs.random(10, density=0.36)


def pairwise(count, weight):
    return np.array([[0.0 if k == m else weight(k, m) for m in range(count)] for k in range(count)])


@pytest.mark.parametrize("threshold", [0.0, 20.0])
def test_by_size_is_the_papers_weighted(threshold):
    sizes = np.array([12, 300, 40, 25, 90, 18])
    bound = threshold or np.median(sizes)
    large = [int(size >= bound) for size in sizes]
    expected = pairwise(6, lambda k, m: {0: 0.0, 1: 0.5, 2: 1.0}[large[k] + large[m]])
    np.testing.assert_array_equal(dense(graphs.by_size(sizes, threshold=threshold)), expected)
    assert 0 < sum(large) < 6


def test_by_size_with_equal_sizes_takes_all_as_large():
    np.testing.assert_array_equal(dense(graphs.by_size(np.full(4, 7))), dense(graphs.complete(4)))


@pytest.mark.parametrize(("full", "steps"), [(2, [0, 0.5, 1, 1]), (3, [0, 1 / 3, 2 / 3, 1])])
def test_by_labels_is_the_papers_similar(full, steps):
    held = [{0, 1}, {1, 2}, {0, 1, 2}, {3}, {3, 4}, {0, 1, 2}]
    counts = np.array([[7 * (label in labels) for label in range(5)] for labels in held])
    expected = pairwise(6, lambda k, m: steps[len(held[k] & held[m])])
    np.testing.assert_allclose(dense(graphs.by_labels(counts, full=full)), expected)
    with pytest.raises(ConfigError, match="2 components"):
        graphs.by_labels(counts, connected=True)


@pytest.mark.parametrize("rows", [2**22, 30])  # all distances at once; block by block
def test_nearest_is_the_union_of_each_client_s_nearest(rows, monkeypatch):
    monkeypatch.setattr("idiolect.graphs.generators.DISTANCES", rows)
    points = np.random.default_rng(0).normal(size=(25, 3))
    graph = dense(graphs.nearest(points, neighbours=4, weight=0.5))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2) + np.diag(np.full(25, np.inf))
    chosen = np.zeros((25, 25), bool)
    for k in range(25):
        chosen[k, np.argsort(distance[k])[:4]] = True
    np.testing.assert_array_equal(graph, 0.5 * (chosen | chosen.T))
    assert (chosen != chosen.T).any()


def test_of_equally_near_clients_the_first_are_taken():
    graph = dense(graphs.nearest(np.zeros((6, 2)), neighbours=2))
    first = np.zeros((6, 6), bool)
    for k in range(6):
        first[k, [m for m in range(6) if m != k][:2]] = True
    np.testing.assert_array_equal(graph, (first | first.T).astype(float))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.by_size(np.ones(4), threshold=-1.0), "by_size: threshold = -1.0 must not be negative"),
        (
            lambda: graphs.by_labels(np.ones((4, 2)), full=0),
            "by_labels: full = 0 must be a whole number of at least 1",
        ),
        (lambda: graphs.nearest(np.ones((4, 2)), neighbours=4), "neighbours = 4 must be a whole number from 1 to 3"),
        (lambda: graphs.nearest(np.ones((4, 2)), neighbours=0), "neighbours = 0 must be a whole number from 1 to 3"),
        (lambda: graphs.nearest(np.full((4, 2), np.nan), neighbours=1), "points must be finite"),
        (lambda: graphs.nearest(np.ones((4, 2)), neighbours=1, weight=0.0), "weight = 0.0 must be"),
    ],
)
def test_what_is_out_of_range_is_named_by_data(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_label_counts_are_each_client_s_training_labels():
    data = classification().data
    counts = graphs.label_counts(data)
    for k in range(data.num_clients):
        assert counts[k].tolist() == np.bincount(data.train.client(k)[1], minlength=3).tolist()
    np.testing.assert_allclose(graphs.label_shares(data), counts / data.train.sizes[:, None])


def test_labels_that_clients_do_not_share_make_no_graph():
    with pytest.raises(ConfigError, match="labels needs classes that clients have in common, but small is a regr"):
        graphs.label_counts(quadratics().data)
