"""The graph itself: what it refuses, its Laplacian, its parts, its limit."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiolect import graphs
from idiolect.core.errors import ConfigError
from idiolect.graphs import Graph


def of(offsets, neighbours, weights, hub=None):
    hub = None if hub is None else np.array(hub, float)
    return Graph(np.array(offsets), np.array(neighbours, np.int64), np.array(weights, float), hub)


@st.composite
def matrices(draw):
    """Symmetric weights with zeros among them, often in several components."""
    count = draw(st.integers(1, 9))
    cell = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    upper = np.zeros((count, count))
    rows, columns = np.triu_indices(count, 1)
    upper[rows, columns] = draw(st.lists(cell, min_size=len(rows), max_size=len(rows)))
    hub = draw(st.one_of(st.none(), st.lists(cell, min_size=count, max_size=count).map(np.array)))
    return upper + upper.T, hub


@settings(max_examples=60, deadline=None, derandomize=True)
@given(matrices())
def test_the_laplacian_is_networkx_s_and_positive_semidefinite_with_rows_that_sum_to_zero(case):
    matrix, hub = case
    graph = graphs.from_dense(matrix, hub=hub)
    whole = matrix if hub is None else np.block([[matrix, hub[:, None]], [hub[None], np.zeros((1, 1))]])
    laplacian = graph.laplacian().toarray()
    reference = nx.from_numpy_array(whole)
    np.testing.assert_allclose(laplacian, nx.laplacian_matrix(reference).toarray(), rtol=1e-12)
    scale = max(whole.sum(), 1)
    np.testing.assert_allclose(laplacian.sum(axis=1), 0, atol=1e-12 * scale)
    assert np.linalg.eigvalsh(laplacian).min() >= -1e-12 * scale
    w = np.random.default_rng(0).normal(size=len(whole))
    form = 0.5 * (whole * (w[:, None] - w[None]) ** 2).sum()  # eq. (3)
    np.testing.assert_allclose(w @ laplacian @ w, form, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(graph.degrees, whole.sum(axis=1), rtol=1e-12)
    clients = {frozenset(part) - {len(matrix)} for part in nx.connected_components(reference)} - {frozenset()}
    assert {frozenset(part.tolist()) for part in graph.components} == clients
    assert len(graph.components) == len(clients)
    assert graph.num_edges == np.count_nonzero(matrix) // 2


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 1, 2], [1, 0], [0.2, 0.1]), r"a\[0, 1\] = 0.2 but a\[1, 0\] = 0.1; weights must be symmetric"),
        (([0, 1, 1], [1], [0.2]), r"a\[0, 1\] = 0.2 but a\[1, 0\] = 0;"),
        (([0, 1, 2], [1, 0], [-0.2, -0.2]), r"a\[0, 1\] = -0.2 must not be negative"),
        (([0, 1, 2], [1, 0], [1.0, np.nan]), r"a\[1, 0\] = nan must be a finite number"),
        (([0, 1, 2], [1, 0], [1.0, 0.0]), r"a\[1, 0\] = 0 stands for no relation"),
        (([0, 1, 2], [0, 1], [1.0, 3.0]), r"a\[0, 0\] = 1 relates a client to itself"),
        (([0, 2, 4], [1, 1, 0, 0], [1.0, 1, 1, 1]), r"a\[0, 1\] = 1 is given twice"),
        (([0, 1, 2], [2, 0], [1.0, 1.0]), r"client numbers 0\.\.1"),
        (([0, 1, 2], [-1, 0], [1.0, 1.0]), r"client numbers 0\.\.1"),
        (([0, 1, 1], [1, 0], [1.0, 1.0]), "rise from 0 to the number of entries"),
        (([0, 3, 2], [1, 0], [1.0, 1.0]), "rise from 0 to the number of entries"),
        (([1, 1, 2], [1, 0], [1.0, 1.0]), "rise from 0 to the number of entries"),
        (([0, 1, 2], [1, 0], [1.0]), "2 neighbours but 1 weights"),
        (([0], [], []), "it has no clients"),
        (([0, 0, 0], [], [], [1.0]), "2 clients but 1 weights to the hub"),
        (([0, 0, 0], [], [], [1.0, -1.0]), "hub must be finite and not negative"),
        (([0, 0, 0], [], [], [1.0, np.nan]), "hub must be finite and not negative"),
    ],
)
def test_what_is_no_graph_is_refused_and_the_pair_named(parts, message):
    with pytest.raises(ConfigError, match=message):
        of(*parts)


def test_a_graph_is_frozen_and_keeps_its_own_arrays():
    weights = np.ones(2)
    graph = Graph(np.array([0, 1, 2]), np.array([1, 0]), weights)
    weights[0] = 5.0
    assert graph.weights.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 2.0
    with pytest.raises(AttributeError):
        graph.hub = np.ones(2)  # pyright: ignore
    assert repr(graph) == "Graph(clients=2, edges=1)"


def test_parts_and_isolated_clients_are_named():
    graph = graphs.from_edges([(0, 3, 1.0), (3, 5, 1.0), (1, 4, 1.0)], 7)
    assert [part.tolist() for part in graph.components] == [[0, 3, 5], [1, 4], [2], [6]]
    said = graph.disconnected([f"ward{k}" for k in range(7)])
    assert said == (
        "the graph has 4 components, which learn nothing from each other; without any neighbour: 'ward2', 'ward6'"
    )
    assert graphs.from_edges([], 9).disconnected().endswith("neighbour: 0, 1, 2, 3, 4 and 4 more")
    assert graphs.ring(7).disconnected() == ""


def test_a_hub_connects_who_has_a_weight_to_it():
    assert graphs.from_edges([], 4, hub=np.array([1.0, 1, 1, 1])).disconnected() == ""
    halves = graphs.from_edges([], 4, hub=np.array([1.0, 0, 1, 1]))
    assert [part.tolist() for part in halves.components] == [[0, 2, 3], [1]]
    assert len(graphs.from_edges([], 2, hub=np.zeros(2)).components) == 2


def test_the_limit_of_mixing_is_two_over_the_largest_eigenvalue():
    graph = graphs.random(12, density=0.4, seed=3)
    rho = np.linalg.eigvalsh(nx.laplacian_matrix(nx.from_numpy_array(graph.adjacency().toarray())).toarray())[-1]
    limit = graph.mixing_limit(0.1, 5, 0.3)
    np.testing.assert_allclose(limit.value, 0.1 * 5 * 0.3 * rho, rtol=1e-12)
    np.testing.assert_allclose(graph.mixing_limit(0.1, 5, limit.coupling).value, 2, rtol=1e-12)
    assert graphs.from_edges([], 3).mixing_limit(0.1, 5, 0.3) == (0, np.inf)
