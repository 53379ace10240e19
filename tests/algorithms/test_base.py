"""What a method is given before the first round, and when it can refuse."""

import warnings
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import graphs
from idiolect.algorithms.base import (
    Algorithm,
    Cohort,
    check,
    client_graph_of,
    diagnostics_of,
    relations_of,
    remarks_of,
    start_of,
)
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedper import FedPer
from idiolect.algorithms.fedu import DFedU, FedU
from idiolect.algorithms.mocha import Mocha, Tasks
from idiolect.algorithms.parts.averaging import Averaging
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


def cohort(present: list[bool]) -> Cohort:
    sizes = jnp.array([6.0, 1.0, 3.0])
    return Cohort(jnp.array([4, 0, 2]), sizes, jnp.array(present), 5, jnp.asarray(20.0), 2.5)


@pytest.mark.parametrize(
    ("weighting", "present", "expected"),
    [
        ("uniform", [True, True, True], [1, 1, 1]),
        ("uniform", [True, False, True], [1, 0, 1]),
        ("size", [True, True, True], [6, 1, 3]),
        ("size", [False, True, False], [0, 1, 0]),
    ],
)
def test_a_message_weighs_one_or_its_samples_and_padding_nothing(
    weighting: Any, present: list[bool], expected: list[float]
) -> None:
    np.testing.assert_array_equal(cohort(present).weights(weighting), expected)


class Method(Algorithm):
    """A method with hyper-parameters and nothing else."""

    value: Any
    other: Any = 1.0
    name: ClassVar[str] = "mine"

    def local(self, *_: Any) -> Any:
        """Never called."""

    def aggregate(self, *_: Any) -> Any:
        """Never called."""


def test_a_setting_that_a_method_does_not_have_is_answered_by_the_one_that_is_meant() -> None:
    class Mine(Averaging):
        name: ClassVar[str] = "mine"

        def local(self, view: Any, private: Any, client: Any, key: Any) -> Any:
            return view, private

    assert Mine(weighting="uniform").weighting == "uniform"
    with pytest.raises(ConfigError, match=r"^unknown setting of mine 'server_rates'; did you mean 'server_rate'\?$"):
        Mine(server_rates=0.1)  # type: ignore[call-arg]


def test_by_default_the_client_sees_all_and_the_server_says_nothing() -> None:
    method, shared = Method(1.0), {"w": jnp.arange(3.0)}
    assert method.view(shared, jnp.asarray(3)) is shared
    assert method.model_names == ("global",)
    assert not method.everyone


BOUNDS = {
    # bound: values that are allowed; those that are not, with what is said of them
    "positive": ([0.1, 3, 1e9], [(0, "greater than 0"), (-1.0, "greater than 0")]),
    "nonnegative": ([0, 0.0, 2.5], [(-1e-9, "not be negative")]),
    "share": ([0.0, 0.5, 1.0], [(-0.1, "not be negative"), (1.1, "not be greater than 1")]),
    "decay": ([0.0, 0.999], [(-0.1, "not be negative"), (1.0, "less than 1")]),
    "count": ([1, 7], [(0, "greater than 0"), (-2, "greater than 0"), (1.0, "a whole number"), ("1", "a whole")]),
    "whole": ([0, 7], [(-1, "not be negative"), (0.5, "a whole number")]),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_values_of_a_range(bound: str) -> None:
    allowed, refused = BOUNDS[bound]
    for value in allowed:
        check(Method(value), value=bound)
    for value, said in refused:
        with pytest.raises(ConfigError, match=rf"^mine: value = {value!r} must (be a |be |)?{said}"):
            check(Method(value), value=bound)


@pytest.mark.parametrize("bound", ["positive", "nonnegative", "share", "decay"])
@pytest.mark.parametrize(
    ("value", "said"),
    [(float("nan"), "a finite number"), (float("inf"), "a finite number"), ("1", "a number"), (True, "a number")],
)
def test_what_is_no_finite_number(bound: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^mine: value = .* must be {said}$"):
        check(Method(value), value=bound)


@pytest.mark.parametrize("make", [jnp.asarray, np.asarray, tuple])
def test_every_entry_is_checked(make: Any) -> None:
    check(Method(make([0.5, 1.0])), value="positive")
    check(Method(make([0.5, 1.0])), value="share")
    for bound, bad in (("positive", 0.0), ("nonnegative", -1.0), ("share", 2.0), ("decay", 1.0)):
        with pytest.raises(ConfigError):
            check(Method(make([0.5, bad])), value=bound)
        with pytest.raises(ConfigError):
            check(Method(make([bad, 0.5])), value=bound)


def test_a_name_is_one_of_the_allowed() -> None:
    check(Method("size"), value=("uniform", "size"))
    with pytest.raises(ConfigError, match=r"^mine: value = 'siz' is not one of 'uniform', 'size'$"):
        check(Method("siz"), value=("uniform", "size"))


def test_all_fields_are_checked_and_traced_values_are_left_to_who_made_them() -> None:
    with pytest.raises(ConfigError, match="other = -1"):
        check(Method(1.0, other=-1.0), value="positive", other="positive")

    @jax.jit
    def traced(value: Any) -> Any:
        check(Method(value), value="positive")
        return value

    assert traced(-1.0) == -1


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
