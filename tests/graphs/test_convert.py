import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from idiolect import graphs
from idiolect.core.errors import ConfigError
from idiolect.graphs import convert
from idiolect.graphs.convert import all_pairs, check_weight, of_pairs, pairs_at


@pytest.mark.parametrize("count", [2, 3, 11])
def test_the_nth_pair_is_the_nth_of_the_list(count):
    low, high = all_pairs(count)
    listed = [(k, m) for k in range(count) for m in range(k + 1, count)]
    assert list(zip(low, high, strict=True)) == listed
    found = pairs_at(np.arange(len(listed)), count)
    assert list(zip(*found, strict=True)) == listed


def test_a_list_of_pairs_too_long_to_keep_is_refused(monkeypatch):
    monkeypatch.setattr(convert, "LARGEST", 30)
    assert of_pairs(*all_pairs(6), 1.0, 6).num_edges == 15
    with pytest.raises(ConfigError, match="all pairs of 7 clients are 21 edges, too many to keep; use star"):
        all_pairs(7)
    with pytest.raises(ConfigError, match="16 edges are too many"):
        of_pairs(np.arange(16), np.arange(1, 17), 1.0, 17)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_a_weight_must_be_positive(weight):
    with pytest.raises(ConfigError, match=r"weight = .* must be a finite number > 0"):
        check_weight(weight)


MATRIX = np.array([[0, 0.5, 0, 2], [0.5, 0, 0, 0], [0, 0, 0, 1], [2, 0, 1, 0]])
EDGES = [(1, 0, 0.5), (0, 3, 2.0), (2, 3, 1.0)]


def dense(graph):
    return graph.adjacency().toarray()


def test_every_source_gives_the_same_graph():
    weighted = nx.Graph()
    weighted.add_nodes_from(range(4))
    weighted.add_weighted_edges_from(EDGES)
    made = [
        graphs.from_dense(MATRIX, 4),
        graphs.from_dense(MATRIX.tolist()),
        graphs.from_scipy(sp.csr_array(MATRIX), 4),
        graphs.from_scipy(sp.coo_matrix(MATRIX)),
        graphs.from_edges(EDGES, 4),
        graphs.from_networkx(weighted, 4),
    ]
    for graph in made:
        np.testing.assert_array_equal(dense(graph), MATRIX)
        assert graph.offsets.tolist() == [0, 2, 3, 4, 6]
        assert graph.neighbours.tolist() == [1, 3, 0, 3, 0, 2]
        assert graph.hub is None


def test_entries_in_pieces_are_summed_as_scipy_means_them():
    halves = sp.csr_array((np.full(4, 0.5), [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    np.testing.assert_array_equal(dense(graphs.from_scipy(halves)), [[0, 1], [1, 0]])
    assert halves.nnz == 4  # the caller's matrix is the caller's


def test_nodes_with_names_follow_the_clients_order():
    named = nx.Graph()
    named.add_edge("b", "a", weight=0.5)
    named.add_edge("b", "d", distance=7.0)  # without the attribute: 1
    graph = graphs.from_networkx(named, clients=["a", "b", "c", "d"])
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0.5
    expected[1, 3] = expected[3, 1] = 1
    np.testing.assert_array_equal(dense(graph), expected)
    with pytest.raises(ConfigError, match=r"node 'b' is no client; name the nodes 0\.\.2, or give clients="):
        graphs.from_networkx(named)
    apart = graphs.from_networkx(named, clients=["a", "b", "c", "d"], weight="distance")
    assert dense(apart)[1].tolist() == [1, 0, 0, 7]


def test_a_hub_can_stand_beside_any_graph():
    hub = np.array([1.0, 0, 2, 0])
    for graph in (
        graphs.from_dense(MATRIX, hub=hub),
        graphs.from_edges(EDGES, 4, hub=hub),
        graphs.from_scipy(sp.csr_array(MATRIX), hub=hub),
        graphs.from_networkx(nx.from_numpy_array(MATRIX), hub=hub),
    ):
        np.testing.assert_array_equal(dense(graph), np.block([[MATRIX, hub[:, None]], [hub[None], np.zeros((1, 1))]]))


def test_rounding_is_averaged_out_and_more_is_refused():
    nearly = MATRIX.copy()
    nearly[0, 1] *= 1 + 1e-15
    graph = dense(graphs.from_dense(nearly))
    assert (graph == graph.T).all()
    np.testing.assert_allclose(graph, MATRIX, rtol=1e-14)
    wrong = MATRIX.copy()
    wrong[0, 1] = 0.6
    with pytest.raises(ConfigError, match=r"a\[0, 1\] = 0.6 but a\[1, 0\] = 0.5; weights must be symmetric"):
        graphs.from_dense(wrong)


def changed(row, column, value):
    matrix = MATRIX.copy()
    matrix[row, column] = matrix[column, row] = value
    return matrix


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.from_dense(changed(0, 2, -1.0)), r"a\[0, 2\] = -1 must not be negative"),
        (lambda: graphs.from_dense(changed(0, 2, np.nan)), r"a\[0, 2\] = nan must be a finite number"),
        (lambda: graphs.from_dense(changed(2, 2, 3.0)), r"a\[2, 2\] = 3 relates a client to itself"),
        (lambda: graphs.from_dense(MATRIX, 5), "has 4 clients, the federation 5"),
        (lambda: graphs.from_dense(MATRIX[:2]), r"must be square, its shape is \(2, 4\)"),
        (lambda: graphs.from_dense(MATRIX[0]), r"must be square, its shape is \(4,\)"),
        (lambda: graphs.from_scipy(MATRIX), "takes a scipy sparse matrix, not ndarray"),
        (lambda: graphs.from_scipy(sp.csr_array(MATRIX), 3), "has 4 clients, the federation 3"),
        (lambda: graphs.from_edges([(0, 4, 1.0)], 4), r"no client 4; clients are 0\.\.3"),
        (lambda: graphs.from_edges([(-1, 2, 1.0)], 4), "no client -1"),
        (lambda: graphs.from_edges([(2, 2, 1.0)], 4), "relates client 2 to itself"),
        (lambda: graphs.from_edges([(0, 1, 1.0), (3, 2, 1.0), (2, 3, 2.0)], 4), "clients 3 and 2 is given more"),
        (lambda: graphs.from_edges([(0, 1, np.inf)], 4), r"a\[0, 1\] = inf must be a finite number"),
        (lambda: graphs.from_networkx(nx.path_graph(4), 5), "4 nodes, but the federation has 5 clients"),
        (lambda: graphs.from_networkx(nx.DiGraph([(0, 1)])), "directed graph"),
        (lambda: graphs.from_networkx(nx.MultiGraph([(0, 1)])), "multigraph"),
        (lambda: graphs.from_networkx(nx.Graph([(0, 0)])), "relates client 0 to itself"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda connected: graphs.from_edges([(0, 2, 1.0)], 4, connected=connected),
        lambda connected: graphs.from_dense(np.zeros((4, 4)), connected=connected),
        lambda connected: graphs.from_scipy(sp.csr_array((4, 4)), connected=connected),
        lambda connected: graphs.from_networkx(nx.empty_graph(4), connected=connected),
    ],
)
def test_a_graph_in_parts_is_refused_on_request(make):
    assert len(make(False).components) > 1
    with pytest.raises(ConfigError, match=r"components, which learn nothing .* without any neighbour: .*1"):
        make(True)
