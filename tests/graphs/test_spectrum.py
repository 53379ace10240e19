"""The sparse solvers against closed forms and the dense one."""

import networkx as nx
import numpy as np
import pytest

from idiolect import graphs
from idiolect.core.errors import ConfigError
from idiolect.graphs import spectrum


def ring_eigenvalues(count, weight=1.0):
    return np.sort(2 * weight * (1 - np.cos(2 * np.pi * np.arange(count) / count)))


@pytest.mark.parametrize(("count", "restarts", "factorised"), [(7, 100, 0), (300, 100, 0), (300, 1, 2)])
def test_a_ring_has_the_eigenvalues_of_a_cosine(count, restarts, factorised, monkeypatch):
    """Dense; by Lanczos; and where Lanczos gives up, by a factorisation."""
    near, calls = spectrum._near, []
    monkeypatch.setattr(spectrum, "_near", lambda *args: calls.append(1) or near(*args))
    monkeypatch.setattr(spectrum, "RESTARTS", restarts)
    graph = graphs.ring(count, weight=0.5)
    expected = ring_eigenvalues(count, 0.5)
    np.testing.assert_allclose(graph.eigenvalues(), expected, atol=1e-12)
    np.testing.assert_allclose(graph.lambda_2, expected[1], rtol=1e-6)
    np.testing.assert_allclose(graph.largest, expected[-1], rtol=1e-9)
    assert len(calls) >= factorised
    assert bool(calls) == bool(factorised)


@pytest.mark.parametrize("count", [6, 300])
def test_the_complete_graph_and_the_star_have_known_spectra(count):
    complete, star = graphs.complete(count, weight=0.5), graphs.star(count, weight=0.5)
    np.testing.assert_allclose([complete.lambda_2, complete.largest], [0.5 * count, 0.5 * count])
    np.testing.assert_allclose([star.lambda_2, star.largest], [0.5, 0.5 * (count + 1)])


@pytest.mark.parametrize("count", [2, 9, 300])
def test_a_path_has_simple_eigenvalues(count):
    """lambda_j = 4 sin(pi j / 2N)^2, no two alike."""
    graph = graphs.from_networkx(nx.path_graph(count))
    expected = 4 * np.sin(np.pi * np.array([1, count - 1]) / (2 * count)) ** 2
    np.testing.assert_allclose([graph.lambda_2, graph.largest], expected, rtol=1e-6)


def test_lanczos_agrees_with_the_dense_solver_where_a_graph_mixes_well():
    graph = graphs.random(400, density=0.05, seed=1)
    assert graph.num_clients > spectrum.DENSE
    every = graph.eigenvalues()
    np.testing.assert_allclose([graph.lambda_2, graph.largest], [every[1], every[-1]], rtol=1e-9)


def test_a_graph_in_parts_has_lambda_2_zero_and_the_largest_of_its_parts():
    pieces = nx.disjoint_union(nx.path_graph(200), nx.complete_graph(150))
    graph = graphs.from_networkx(pieces)
    assert graph.lambda_2 == 0
    np.testing.assert_allclose(graph.largest, 150)
    for seed in range(4):  # exactly 0, where a solver finds some 1e-16
        one, two = (graphs.random_normal(6, seed=2 * seed + side).adjacency().toarray() for side in (0, 1))
        assert graphs.from_dense(np.block([[one, np.zeros((6, 6))], [np.zeros((6, 6)), two]])).lambda_2 == 0


def test_the_same_graph_has_the_same_numbers():
    a, b = (graphs.random(400, density=0.05, seed=1) for _ in range(2))
    assert (a.largest, a.lambda_2) == (b.largest, b.lambda_2)


def test_a_graph_without_edges():
    for graph in (graphs.ring(1), graphs.from_edges([], 3)):
        assert (graph.lambda_2, graph.largest) == (0, 0)


def test_all_eigenvalues_of_a_large_graph_are_refused(monkeypatch):
    monkeypatch.setattr(spectrum, "MOST", 10)
    assert len(graphs.ring(10).eigenvalues()) == 10
    with pytest.raises(ConfigError, match=r"11 vertices need 0\.0 GB; use lambda_2 and largest"):
        graphs.ring(11).eigenvalues()
