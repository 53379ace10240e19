"""One round: what each part gets, which draws it makes, what is kept of what clients return, and where it stops."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.fedavg import FedAvg
from idiolect.client.samples import to_device
from idiolect.core import tree
from idiolect.core.random import stream
from idiolect.runtime.round import (
    State,
    client_of,
    client_step,
    cohort_of,
    draws,
    first_draws,
    first_private,
    first_shared,
    models_of,
    server_step,
)
from tests.federations import bits, classification, run, start_with
from tests.tiers import second

SEED = jax.random.key(5)


def number(value: int) -> jax.Array:
    return jnp.asarray(value, jnp.int32)


class Echo(Algorithm):
    """Returns what it was given."""

    name = "echo"
    title = "Echo"
    summary = "returns what it was given"
    source = "a test"

    def init(self, start, key):
        return start.params, key

    def init_private(self, start, key):
        return start.capacity, key

    def local(self, view, private, client, key):
        return (view, client.id, key), (private, client.round)

    def aggregate(self, shared, cohort, messages):
        return shared + messages.sum() / cohort.total_size

    def evaluated(self, view, private, client, key):
        return {"own": (view, private, client.id, key)}


def samples():
    return to_device(classification().data.train)


def same(key: Any, *purpose: Any) -> bool:
    return bool((jax.random.key_data(key) == jax.random.key_data(stream(SEED, *purpose))).all())


def test_before_the_first_round_server_and_client_draw_from_streams_of_their_own():
    start = start_with(jnp.ones(2))
    params, key = first_shared(Echo(), start, SEED)
    assert params is start.params
    assert same(key, "init")
    capacity, key = first_private(Echo(), start, SEED, number(7))
    assert capacity == start.capacity
    assert same(key, "private", 0, number(7))
    assert same(first_draws(SEED, number(7)), "private", 0, number(7))


def test_a_step_and_the_models_have_the_draws_of_the_round_and_the_client():
    client = classification().simulation(Echo()).plan.client(samples(), number(3), number(9))
    (view, told, key), (private, round) = client_step(Echo(), 1.0, 2.0, client, SEED)
    assert (view, int(told), private, int(round)) == (1.0, 3, 2.0, 9)
    assert same(key, "local", number(9), number(3))
    assert same(draws(SEED, client), "local", number(9), number(3))
    view, private, told, key = models_of(Echo(), 1.0, 2.0, client, SEED)["own"]
    assert (view, private, int(told)) == (1.0, 2.0, 3)
    assert same(key, "local", number(9), number(3))


@pytest.mark.parametrize(("present", "expected"), [((True, False), 10 + 8 / 61), ((False, False), 10.0)])
def test_the_server_s_state_changes_only_if_a_client_is_present(present, expected):
    cohort = cohort_of(samples(), jnp.asarray([3, 0]), jnp.asarray(present), 5, 2.5)
    after = server_step(Echo(), jnp.asarray(10.0), cohort, jnp.asarray([5.0, 3.0]))
    np.testing.assert_allclose(after, expected, rtol=1e-6)


def test_the_cohort_is_what_its_clients_announce():
    data = classification().data
    cohort = cohort_of(to_device(data.train), jnp.asarray([3, 0]), jnp.asarray([True, False]), 5, 2.5)
    np.testing.assert_array_equal(cohort.sizes, data.train.sizes[[3, 0]])
    assert (cohort.population, float(cohort.total_size), cohort.expected) == (5, 61.0, 2.5)


def test_a_site_with_its_own_rows_is_the_client_of_the_simulation():
    problem = classification()
    data = replace(problem.data, train=replace(problem.data.train, outputs=np.asarray([3, 4, 5, 6, 7])))
    simulation = replace(problem, data=data).simulation(Echo())
    federation = simulation.plan.client(simulation.arrays, number(0), number(0)).federation
    own = to_device(data.select(lambda index: index == 3).train)
    here = client_of(own, number(0), number(2), simulation.objective, federation, number(3))
    there = client_of(simulation.arrays, number(3), number(2), simulation.objective, federation)
    assert [int(v) for v in (here.id, here.round, here.size, here.outputs)] == [3, 2, 4, 6]
    assert [int(v) for v in (there.id, there.round, there.size, there.outputs)] == [3, 2, 4, 6]
    for ours, theirs in zip(here.draw(SEED, 3), there.draw(SEED, 3), strict=True):
        np.testing.assert_array_equal(ours, theirs)


CLIENTS, KEY = 5, jax.random.key(4)
IDS = jnp.asarray([4, 1, 3])


class Probe(Algorithm):
    """A method that only writes down what the runtime gives it, and is cheap to compile."""

    name: ClassVar[str] = "probe"
    summary: ClassVar[str] = "test"
    source: ClassVar[str] = "test"

    def init(self, start, key):
        zeros = jnp.zeros(CLIENTS)
        return {"draw": zeros, "sizes": zeros, "mean": jnp.zeros(()), "drawn": jax.random.normal(key)}

    def init_private(self, start, key):
        return {"rounds": jnp.zeros((), jnp.int32), "own": jax.random.normal(key)}

    def local(self, view, private, client, key):
        message = {"draw": jax.random.normal(key), "own": private["own"], "id": client.id, "size": client.size}
        return message, private | {"rounds": private["rounds"] + 1}

    def aggregate(self, shared, cohort, messages):
        """Scatter each message to the row its own client id names."""
        rows = jnp.where(cohort.present, messages["id"], CLIENTS)
        zeros = jnp.zeros(CLIENTS)
        return shared | {
            "mean": tree.weighted_mean(messages["draw"], cohort.weights("size")),
            "draw": zeros.at[rows].set(messages["draw"], mode="drop"),
            "sizes": zeros.at[rows].set(cohort.sizes * (cohort.ids == messages["id"]), mode="drop"),
        }


class Faulty(Algorithm):
    """Counts rounds and messages; who is in `bad` returns NaN from round `since` on, the server in round `ends`."""

    name: ClassVar[str] = "faulty"
    summary: ClassVar[str] = "test"
    source: ClassVar[str] = "test"
    bad: tuple[int, ...] = eqx.field(static=True, default=())
    since: int = eqx.field(static=True, default=0)
    ends: int = eqx.field(static=True, default=-1)
    keeps: bool = eqx.field(static=True, default=False)

    def init(self, start, key):
        return {"rounds": jnp.zeros((), jnp.int32), "sum": jnp.zeros(())}

    def init_private(self, start, key):
        return jnp.zeros(())

    def local(self, view, private, client, key):
        hit = jnp.isin(client.id, jnp.asarray(self.bad, jnp.int32)) & (client.round >= self.since)
        sent, own = (jnp.where(hit & (which == self.keeps), jnp.nan, 1.0) for which in (False, True))
        return sent, private + 10 * client.id + own

    def aggregate(self, shared, cohort, messages):
        added = jnp.sum(jnp.where(cohort.present, messages, 0))
        spoilt = jnp.where(shared["rounds"] == self.ends, jnp.inf, added)
        return {"rounds": shared["rounds"] + 1, "sum": shared["sum"] + spoilt}


class Telling(Algorithm):
    """The server's state is what it is told of a cohort of three; models are what each client is given."""

    name: ClassVar[str] = "telling"
    summary: ClassVar[str] = "test"
    source: ClassVar[str] = "test"

    def init(self, start, key):
        return {name: jnp.zeros(3) for name in ("ids", "sizes", "present")} | {"whole": jnp.zeros(3)}

    def local(self, view, private, client, key):
        return jnp.zeros(()), private

    def aggregate(self, shared, cohort, messages):
        whole = jnp.asarray([cohort.population, cohort.total_size, cohort.expected])
        return {"ids": cohort.ids, "sizes": cohort.sizes, "present": cohort.present, "whole": whole}

    def view(self, shared, client_id):
        return shared["whole"] + client_id

    def models(self, view, private, client, key):
        return {"view": view, "own": private, "client": client.id, "round": client.round, "draw": key}

    def evaluated(self, view, private, client, key):
        return self.models(view, private, client, key) | {"more": client.size}


@pytest.fixture(scope="module")
def problem():
    return classification()


def three(simulation, present=(True, True, True), round=0):
    """One round of these three clients: the next state, and what they keep."""
    everyone = simulation.train == "all"
    state = replace(simulation.init(4), private=None, round=jnp.asarray(round, jnp.int32))
    trained = jnp.arange(CLIENTS) if everyone else IDS
    go = jax.jit(lambda *given: simulation.plan.one_round(*given))
    return go(state, simulation.arrays, IDS, jnp.asarray(present), trained / 4)


@pytest.mark.parametrize(
    "options",
    [{}, second({"block": 1}), second({"block": 2}), second({"block": CLIENTS}), {"train": "all", "block": 2}],
)
def test_a_client_sees_its_own_stream_data_and_state_whatever_the_execution(problem, options):
    simulation = problem.simulation(Probe(), cohort=3, **options)
    state = run(simulation, 3, seed=4)
    cohorts = [set(simulation.sampling.draw(KEY, t, 3)[0].tolist()) for t in range(3)]
    rounds = [sum(i in cohort for cohort in cohorts) for i in range(CLIENTS)]
    np.testing.assert_array_equal(state.private["rounds"], rounds)
    last = [i in cohorts[2] for i in range(CLIENTS)]
    draws = [jax.random.normal(stream(KEY, "local", 2, i)) for i in range(CLIENTS)]
    np.testing.assert_array_equal(state.shared["draw"], np.where(last, draws, 0))
    np.testing.assert_array_equal(state.shared["sizes"], np.where(last, problem.data.train.sizes, 0))
    mean = np.average(draws, weights=np.where(last, problem.data.train.sizes, 0))
    np.testing.assert_allclose(state.shared["mean"], mean, rtol=1e-5)
    own = [jax.random.normal(stream(KEY, "private", 0, i)) for i in range(CLIENTS)]
    np.testing.assert_allclose(state.private["own"], own, rtol=1e-6)
    np.testing.assert_allclose(state.shared["drawn"], jax.random.normal(stream(KEY, "init")), rtol=1e-6)
    assert int(state.round) == 3


def test_an_empty_binomial_round_leaves_the_state_as_it_was(problem):
    simulation = problem.simulation(Probe(), cohort=1, sampling="binomial", rounds=12)
    key = jax.random.key(0)
    capacity = simulation.sampling.capacity(key, 12)
    present = [simulation.sampling.draw(key, t, capacity) for t in range(12)]
    cohorts = [set(ids[real].tolist()) for ids, real in present]
    assert any(not cohort for cohort in cohorts)
    assert any(len(cohort) > 1 for cohort in cohorts)
    state, counts = simulation.init(0), np.zeros(CLIENTS, int)
    for cohort in cohorts:
        before = bits(state)
        state = simulation.advance(state, 1)
        assert (bits(state) == before) == (not cohort)
        counts += [i in cohort for i in range(CLIENTS)]
        np.testing.assert_array_equal(state.private["rounds"], counts)


@pytest.mark.parametrize("block", [1, 2])
def test_a_client_has_its_rows_and_what_the_server_announces(problem, block):
    outputs = np.asarray([3, 4, 5, 6, 7])
    data = replace(problem.data, train=replace(problem.data.train, outputs=outputs))
    simulation = replace(problem, data=data).simulation(Probe(), cohort=2.5, sampling="binomial", block=block)
    plan = simulation.plan
    client = plan.client(simulation.arrays, jnp.asarray(3), jnp.asarray(7))
    x, y = data.train.client(3)
    rows = slice(int(client.start), int(client.start) + int(client.size))
    np.testing.assert_array_equal(client.x[rows], x)
    np.testing.assert_array_equal(client.y[rows], y)
    assert [int(v) for v in (client.size, client.id, client.round, client.outputs)] == [4, 3, 7, 6]
    assert client.objective is plan.objective
    told = client.federation
    assert (float(told.samples), told.clients, told.cohort) == (61.0, CLIENTS, 2.5)
    assert (told.capacity, told.tile) == (30, simulation.tile)
    assert told.sizes == (simulation.sizes if block == 1 else ())
    assert len(simulation.sizes) > 1
    bare = problem.simulation(Probe())
    assert bare.plan.client(bare.arrays, jnp.asarray(0), jnp.asarray(0)).outputs is None


@pytest.mark.parametrize("block", [1, 2, 8])
def test_a_map_over_clients_is_the_loop_and_has_the_plans_numbers(problem, block):
    simulation = problem.simulation(FedAvg(rate=jnp.asarray(0.25)), block=block)
    rows, seen = jnp.arange(5.0), {"shift": jnp.asarray(3.0)}

    def mapped(plan, seen, row, other):
        return plan.algorithm.rate * row + seen["shift"], other

    found = jax.jit(lambda *given: simulation.plan.map(mapped, *given))(seen, rows, -rows)
    np.testing.assert_array_equal(found[0], 0.25 * np.arange(5) + 3)
    np.testing.assert_array_equal(found[1], -np.arange(5.0))


def test_the_server_is_told_of_the_cohort(problem):
    simulation = problem.simulation(Telling(), cohort=2.5, sampling="binomial")
    state, _ = three(simulation, (True, True, False))
    np.testing.assert_array_equal(state.shared["ids"], IDS)
    np.testing.assert_array_equal(state.shared["sizes"], problem.data.train.sizes[np.asarray(IDS)])
    np.testing.assert_array_equal(state.shared["present"], [1, 1, 0])
    np.testing.assert_array_equal(state.shared["whole"], [CLIENTS, 61, 2.5])
    nobody, _ = three(simulation, (False, False, False))
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(nobody.shared))
    assert int(nobody.round) == 1


@pytest.mark.parametrize("train", ["cohort", "all"])
def test_what_clients_keep_stands_in_the_order_of_the_cohort(problem, train):
    simulation = problem.simulation(Faulty(), train=train)
    state, kept = three(simulation)
    np.testing.assert_array_equal(kept, [40 + 1 + 1, 10 + 1 + 0.25, 30 + 1 + 0.75])
    assert state.private is None
    assert float(state.shared["sum"]) == 3
    np.testing.assert_array_equal(jax.random.key_data(state.seed), jax.random.key_data(KEY))


@pytest.mark.parametrize(
    ("method", "options", "present", "fault"),
    [
        (Faulty(), {}, (True, True, True), (7, -1, 0)),
        (Faulty((3, 1)), {}, (True, True, True), (7, 1, 1)),
        (Faulty((1, 4)), {}, (True, True, True), (7, 4, 1)),
        (Faulty((3,)), {}, (True, True, False), (7, -1, 0)),
        (Faulty((3, 1)), {}, (True, False, True), (7, 3, 1)),
        (Faulty((1,), keeps=True), {}, (True, True, True), (7, 1, 1)),
        (Faulty((0, 2)), {"train": "all"}, (True, True, True), (7, -1, 0)),
        (Faulty((3,)), {"train": "all"}, (True, True, True), (7, 3, 1)),
        (Faulty(ends=0), {}, (True, True, True), (7, -1, 2)),
        (Faulty((3,), ends=0), {}, (True, True, True), (7, 3, 1)),
        (Faulty(ends=0), {}, (False, False, False), (7, -1, 0)),
    ],
)
def test_a_fault_is_the_first_clients_that_took_part_or_else_the_servers(problem, method, options, present, fault):
    state, _ = three(problem.simulation(method, **options), present, round=7)
    assert tuple(state.fault.tolist()) == fault
    assert int(state.round) == 8


@pytest.mark.parametrize(("method", "stops"), [(Faulty(), 5), (Faulty((2,), since=3), 4), (Faulty(ends=1), 2)])
def test_rounds_go_on_until_the_end_or_a_fault(problem, method, stops):
    simulation = problem.simulation(method)
    go = jax.jit(lambda state, end: simulation.plan.rounds_until(state, simulation.arrays, end, CLIENTS))
    state = go(simulation.init(0), 5)
    assert int(state.round) == int(state.shared["rounds"]) == stops
    assert bits(go(state, int(state.round))) == bits(state)
    assert int(go(state, 7).round) == (7 if stops == 5 else stops)


def test_models_are_of_the_draws_and_the_round_that_come(problem):
    simulation = problem.simulation(Telling())
    state = replace(simulation.init(4), round=jnp.asarray(6, jnp.int32))
    seen = State({"whole": jnp.arange(3.0)}, None, state.round, state.seed, state.fault), simulation.arrays
    names = ("view", "own", "client", "round", "draw", "more")
    models = simulation.plan.models(names, seen, jnp.asarray(2), jnp.asarray(0.5))
    assert tuple(models) == names
    np.testing.assert_array_equal(models["view"], [2, 3, 4])
    assert [float(models[name]) for name in ("own", "client", "round", "more")] == [0.5, 2, 6, 30]
    draws = (models["draw"], stream(KEY, "local", 6, 2))
    np.testing.assert_array_equal(*map(jax.random.key_data, draws))
    assert [*simulation.plan.models(("round",), seen, jnp.asarray(2), None)] == ["round"]


class Traced(FedAvg):
    """FedAvg that writes down which functions of idiolect called its `local`."""

    name: ClassVar[str] = "traced"
    calls: ClassVar[list[tuple[str, str]]] = []

    def local(self, view, private, client, key):
        frames = [(Path(f.filename).name, f.function) for f in inspect.stack(0) if "/idiolect/" in f.filename]
        Traced.calls[:] = frames[::-1]
        return super().local(view, private, client, key)


# How a function is mapped over clients and members is no step of a round.
MAPS = {"devices.py"}
MAPPED = {"map", "mapped", "<lambda>", "one", "advance", "next_round"}


@pytest.mark.second
def test_a_round_is_six_calls_in_three_files_from_the_simulation_to_the_method(problem):
    """As docs/contract.md says: these are the functions that a reader opens."""
    simulation = problem.simulation(Traced(rate=0.1), cohort=2, debug=True)
    run(simulation, 1)
    calls = [(file, name) for file, name in Traced.calls if file not in MAPS]
    first, *rest = calls
    steps = [first, *((file, name) for file, name in rest if name not in MAPPED)]
    assert steps == [
        ("simulate.py", "advance"),
        ("members.py", "until"),
        ("round.py", "rounds_until"),
        ("round.py", "one_round"),
        ("round.py", "client_step"),
    ]
    assert {file for file, _ in calls} == {"simulate.py", "members.py", "round.py"}
