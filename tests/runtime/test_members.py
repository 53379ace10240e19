"""Members: one alone has no axis, several share what does not differ, equal ones share what is compiled."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.registry import build
from idiolect.client.predictor import Shared
from idiolect.client.samples import tiles_of
from idiolect.core import tree
from idiolect.data import from_arrays
from idiolect.runtime import members
from idiolect.runtime.devices import Devices
from idiolect.runtime.members import Axis, Member, alone, made_once, together
from idiolect.runtime.program import member_of
from idiolect.study.spec.assemble import problem_of
from tests.federations import bits, classification, run
from tests.tiers import second


@pytest.fixture(scope="module")
def problem():
    return classification()


def simulation(problem, rate=0.1, **options):
    return problem.simulation(FedAvg(rate=rate), cohort=3, **options)


def pair(problem, rates=(0.1, 0.2), block=2, quick=False):
    """Two runs that differ in nothing but their rates, and their compiled functions."""
    runs = [simulation(problem, rate) for rate in rates]
    parts = [member_of(one, ("test",)) for one in runs]
    return runs, *together(parts, parts[0], (), Axis(block, Devices(jax.local_devices()[:1]), quick))


def test_one_member_alone_has_no_axis_and_two_have_one(problem):
    one = simulation(problem)
    compiled, given = one.compiled
    state = one.init(0)
    ids, present = compiled.draw(given, state, None, 3)
    assert (ids.shape, present.shape, given.own) == ((3,), (3,), [])
    assert compiled.one(compiled.joined([state]), 0).round.shape == ()
    runs, both, arguments = pair(problem)
    states = both.joined([sim.first_state(0) for sim in runs])
    assert both.draw(arguments, states, None, 3)[0].shape == (2, 3)
    assert states.round.shape == (2,)
    assert bits(both.one(states, 1)) == bits(runs[1].init(0))


def test_only_what_differs_between_members_is_stacked(problem):
    _, _, given = pair(problem)
    np.testing.assert_array_equal(given.own, [np.asarray([0.1, 0.2], "f4")])
    _, _, equal = pair(problem, rates=(0.1, 0.1))
    assert equal.own == []
    assert len(equal.common) == len(given.common) + 1


@pytest.mark.parametrize(("block", "quick"), [second(1, False), second(2, False), (2, True)])
def test_each_of_two_members_is_its_own_run(problem, block, quick):
    runs, both, given = pair(problem, block=block, quick=quick)
    states = both.until(given, both.joined([sim.first_state(0) for sim in runs]), 4, 3)
    for place, sim in enumerate(runs):
        for got, expected in zip(jax.tree.leaves(both.one(states, place)), jax.tree.leaves(run(sim, 4)), strict=True):
            if not jnp.issubdtype(got.dtype, jax.dtypes.prng_key):
                np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


def test_equal_plans_share_what_is_compiled_and_other_ones_do_not(problem):
    first = simulation(problem).compiled[0]
    assert simulation(problem, rate=0.7).compiled[0] is first  # a number is an argument
    assert simulation(problem, block=2).compiled[0] is not first
    runs, both, _ = pair(problem)
    assert pair(problem, rates=(0.3, 0.4))[1] is both
    assert pair(problem, block=1)[1] is not both
    assert pair(problem, quick=True)[1] is not both
    assert runs[0].compiled[0] is first


def test_a_quick_compiler_is_told_its_options(problem, monkeypatch):
    """An option that XLA does not know is an error of its, so options that it takes are shown to arrive."""
    monkeypatch.setattr(
        members, "compiler_options", lambda devices, quick: {"xla_no_such_option": True} if quick else {}
    )
    runs, both, given = pair(problem, rates=(0.5, 0.6), block=3, quick=True)
    states = both.joined([sim.first_state(0) for sim in runs])
    with pytest.raises(Exception, match="xla_no_such_option"):
        both.until(given, states, 1, 3)


def test_a_compiler_is_told_for_how_many_devices(problem, monkeypatch):
    told = list[int]()
    monkeypatch.setattr(members, "compiler_options", lambda devices, quick: told.append(devices) or {})
    sim = simulation(problem, rate=0.123, block=7)
    compiled, given = sim.compiled
    compiled.draw(given, sim.init(0), None, 3)
    assert told == [len(sim.devices.all)]


def test_a_state_is_consumed_by_rounds_and_not_by_what_only_reads(problem):
    one = simulation(problem)
    compiled, given = one.compiled
    state = one.init(0)
    compiled.draw(given, state, None, 3)
    after = compiled.until(given, state, 1, 3)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.shared))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(after.shared))


def test_a_client_is_scored_with_its_own_models_wherever_it_stands(problem):
    """Sums of a subset of clients, in any order, are those of these clients among all."""
    sim = simulation(problem)
    state = run(sim, 2)
    member = member_of(sim, ("test",))

    def losses(ids):
        held, numbers = member.scored["test"][0], np.asarray(ids, np.int32)
        tiles = jax.tree.map(lambda part: part[None], tiles_of(problem.data.test, sim.tile, numbers))
        part = replace(member, ids=numbers, scored={"test": (held, tiles)})
        compiled, given = alone(part)
        of = replace(state, private=None), tree.gather(state.private, numbers)
        found = compiled.score(given, of, None, ("global",), ("test",))
        return np.asarray(found["global"]["test"][0].loss)

    everyone = losses(range(problem.data.num_clients))
    np.testing.assert_allclose(losses([3, 1]), everyone[[3, 1]], rtol=1e-6)


@pytest.mark.parametrize("name", [second("ditto"), second("pfedme"), "ifca"])
@pytest.mark.parametrize("block", [1, second(2)])
def test_models_that_are_kept_and_models_made_in_turn_have_the_same_scores(problem, name, block):
    """A shared model, one of each client, and one of each group."""
    sim = problem.simulation(build({"name": name}), cohort=3, block=block)
    state = run(sim, 2)
    compiled, given = alone(member_of(sim, ("test",)))
    of = replace(state, private=None), state.private
    arguments = given, of, None, sim.offered, ("test",)
    found, models = compiled.score(*arguments, True)
    for model in models.values():
        assert {leaf.shape[0] for leaf in jax.tree.leaves(model)} == {problem.data.num_clients}
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(compiled.score(*arguments)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [second("fedavg"), "ditto", second("pfedme")])
def test_no_more_than_one_clients_models_are_held_while_scores_are_computed(name):
    """The compiled program's memory, beside its arguments and results, does not grow with the clients."""
    used: dict[int, int] = {}
    for clients in (4, 12):
        data = from_arrays({f"c{i}": (np.ones((8, 200), "f4"), np.arange(8) % 2) for i in range(clients)})
        sim = problem_of(data, {"name": "mlp", "hidden": [100]}).simulation(build({"name": name}))
        assert sim.plan.block == 1
        state, (compiled, given) = sim.init(0), alone(member_of(sim, ("test",)))
        of = replace(state, private=None), state.private
        program = compiled.score.lower(given, of, None, sim.offered, ("test",), False).compile()
        used[clients] = program.memory_analysis().temp_size_in_bytes
    model = 4 * (200 * 100 + 100 + 100 * 2 + 2)
    assert used[12] - used[4] < model


def test_what_all_clients_have_in_common_is_made_once():
    made = []

    def make(client):
        made.append(client.shape)
        own = {"w": client * jnp.ones(3)}
        return {"own": own, "all": Shared({"w": jnp.ones(2)}), "group": Shared(own, client.astype(jnp.int32))}

    models = made_once(make, 1, jnp.arange(4.0))
    assert models["own"]["w"].shape == (4, 3)
    assert models["all"].model["w"].shape == (2,)
    assert models["group"].model["w"].shape == (4, 3)
    assert made == [(), ()]  # it is traced for all, and once more for the first


def test_a_hub_needs_no_samples_to_make_a_view(problem):
    sim = simulation(problem)
    compiled, given = alone(Member(sim.plan))
    shared = sim.first_state(0).shared
    view = compiled.view(given, shared, jnp.asarray(2, jnp.int32))
    assert [leaf.tolist() for leaf in jax.tree.leaves(view)] == [leaf.tolist() for leaf in jax.tree.leaves(shared)]
