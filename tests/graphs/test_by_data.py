"""Graphs from training sizes, labels and models, against loops over pairs."""

import numpy as np
import pytest

from idiolect import graphs
from idiolect.core.errors import ConfigError
from tests.federations import classification, quadratics


def dense(graph):
    return graph.adjacency().toarray()


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
    monkeypatch.setattr("idiolect.graphs.by_data.DISTANCES", rows)
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
def test_what_is_out_of_range_is_named(make, message):
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
