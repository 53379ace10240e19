"""What reports ask of a method: its own answer if it has one, else the default."""

import jax.numpy as jnp
import numpy as np

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedper import FedPer
from idiolect.algorithms.fedu import DFedU, FedU
from idiolect.algorithms.mocha import Mocha, Tasks
from idiolect.algorithms.optional import client_graph_of, diagnostics_of, relations_of, remarks_of
from idiolect.algorithms.start import start_of
from tests.federations import classification


def test_a_method_without_the_functions_has_nothing_to_add():
    problem = classification()
    start = start_of(problem.data, problem.params)
    assert remarks_of(FedAvg(), problem.params) == ()
    assert diagnostics_of(FedAvg(), problem.params) == {}
    assert relations_of(FedAvg(), problem.params) is None
    assert client_graph_of(FedAvg(), start) is None


def test_a_method_with_them_is_asked():
    problem = classification()
    start = start_of(problem.data, problem.params)
    assert remarks_of(FedPer(head="all"), problem.params) == FedPer(head="all").remarks(problem.params) != ()
    shared = Mocha(relationship="learned").init(start, jnp.zeros(2, jnp.uint32))
    assert isinstance(shared, Tasks)
    assert {*diagnostics_of(Mocha(), shared)} == {*Mocha().diagnostics(shared)} != set()
    assert all(type(value) is float for value in diagnostics_of(Mocha(), shared).values())
    np.testing.assert_allclose(relations_of(Mocha(relationship="learned"), shared), np.eye(5), rtol=1e-6)


def test_the_graph_is_the_method_s_own_or_that_of_its_neighbours():
    problem = classification()
    start = start_of(problem.data, problem.params)
    for method in (FedU(graph="ring"), DFedU(graph="ring")):
        graph = client_graph_of(method, start)
        assert graph is not None
        assert graph.num_clients == 5
        assert len(graph.neighbours) == 10


def test_a_method_for_neighbours_has_the_graph_of_its_neighbours():
    problem = classification()
    start = start_of(problem.data, problem.params)

    class Neighbours(FedAvg):
        def peers(self, start):
            return start.graph("ring")

    graph = client_graph_of(Neighbours(), start)
    assert graph is not None
    assert len(graph.neighbours) == 10
