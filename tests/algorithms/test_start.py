"""What a method is given before the first round, and when it can refuse."""

import warnings
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import graphs
from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.fedu import FedU
from idiolect.algorithms.start import start_of
from idiolect.core.errors import ConfigError
from idiolect.graphs import GraphWarning
from idiolect.runtime.program import Program, member_of, signature
from tests.federations import classification, federation, quadratics, split_of


class Announced(Algorithm):
    """A method whose server's state is what it was told; it refuses what it is asked to."""

    name: ClassVar[str] = "announced"
    refuse: str = "nothing"

    def check_start(self, start):
        if self.refuse == "check":
            raise ConfigError("refused by check_start")

    def init(self, start, key):
        if self.refuse == "init":
            raise ConfigError("refused by init")
        return {"sizes": jnp.asarray(start.sizes), "params": start.params}

    def init_private(self, start, key):
        if self.refuse == "private":
            raise ConfigError("refused by init_private")

    def local(self, view, private, client, key):
        return jnp.zeros(()), private

    def aggregate(self, shared, cohort, messages):
        return shared


def test_it_holds_what_the_federation_announces():
    problem = classification((9, 1, 30))
    start = start_of(problem.data, problem.params)
    np.testing.assert_array_equal(start.sizes, [9, 1, 30])
    assert (start.clients, start.capacity, start.num_outputs) == (3, 30, 3)
    assert (start.task, start.feature_shape) == ("classification", (3,))
    assert start.params is problem.params


@pytest.mark.parametrize(("refuse", "by"), [("check", "check_start"), ("init", "init"), ("private", "init_private")])
def test_whatever_a_method_refuses_is_refused_before_a_run(refuse, by):
    problem = classification()
    with pytest.raises(ConfigError, match=rf"refused by {by}(\n|$)"):
        problem.simulation(Announced(refuse=refuse))
    shapes = jax.eval_shape(lambda: problem.params)
    assert type(problem)(problem.data, problem.objective, shapes).simulation(Announced()).offered == ("global",)


def test_a_graph_is_built_once_and_warns_once():
    data = quadratics().data
    start, apart = start_of(data, None), graphs.from_edges([(0, 1, 1.0)], 4)
    with pytest.warns(GraphWarning, match="3 components"):
        assert start.graph(apart) is apart
    with warnings.catch_warnings(action="error"):
        assert start.graph(apart) is apart
        assert start.graph("ring") is start.graph("ring")
    with pytest.raises(ConfigError, match="the graph has 7 clients, small has 4"):
        start.graph(graphs.ring(7))


def labelled(*labels):
    return federation(
        split_of([(np.zeros((3, 2), "f4"), np.asarray(y, "i4")) for y in labels]), task="classification"
    )


def test_runs_on_different_graphs_share_no_program():
    """The graph is an array of the state that `init` makes, so a program belongs to the graphs it was made for."""

    def signed(*labels):
        problem = classification()
        data = type(problem.data)(**vars(labelled(*labels)) | {"classes": ("a", "b", "c")})
        params = jax.tree.map(lambda leaf: leaf[:, :2] if leaf.shape == (4, 3) else leaf, problem.params)
        simulation = type(problem)(data, problem.objective, params).simulation(FedU(graph="by_labels"))
        return signature(simulation, member_of(simulation, ()))[-1]  # what the graphs say of it

    first, second = [0, 0, 1], [1, 1, 2]
    one, same, other = (signed(first, second, third) for third in ([2, 2, 0], [0, 2, 2], [2, 2, 2]))
    assert one == same
    assert one != other


def test_each_member_of_a_program_starts_from_its_own_sizes():
    problems = [classification(sizes) for sizes in ((9, 1, 5), (4, 5, 6))]
    simulations = [p.simulation(Announced()) for p in problems]
    program = Program(simulations, [member_of(s, ()) for s in simulations])
    states = program.start(simulations, [0, 0], [p.params for p in problems])
    np.testing.assert_array_equal(states.shared["sizes"], [[9, 1, 5], [4, 5, 6]])
