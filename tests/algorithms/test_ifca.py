"""IFCA against FedAvg, against the true groups, and against Lloyd's guarantee."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Cohort
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.ifca import IFCA, Groups, Vote
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.data import from_arrays, hold_out
from idiolect.runtime.devices import Devices
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.newcomers import personalize
from idiolect.runtime.program import Program, member_of
from idiolect.runtime.simulate import Simulation
from idiolect.study.spec.assemble import problem_of
from tests.contract import ignores_padding, is_the_same_however_executed, keeps_nothing
from tests.federations import classification, flat, quadratics, rows, run
from tests.tiers import second

EXACT: dict[str, Any] = {"local_steps": 1, "batch_size": 0}
W = np.array([1.0, -0.5, 2.0])
ROWS = 40


def regressions(signs, intercept=0.0, own=0.0, seed=0):
    """Noiseless y = s_i W x + b_i, s_i = 1 or -1, b_i = intercept + own * a normal draw."""
    rng = np.random.default_rng(seed)

    def client(sign):
        x = rng.normal(size=(ROWS, 3)).astype("f4")
        return x, (sign * (x @ W) + intercept + own * rng.normal()).astype("f4")

    clients = {f"c{i:02}": client(sign) for i, sign in enumerate(signs)}
    return from_arrays(clients, task="regression", test=0.0, validation=0.0)


def simulated(data, **settings):
    problem = problem_of(data, {"name": "linear", "init": "zeros"})
    return problem.simulation(IFCA(**{"rate": 0.2, "local_steps": 10, "batch_size": 0} | settings))


def chosen(simulation, state):
    """Each client's group."""
    return np.asarray(Evaluator(simulation).client_models(state, ("personal",))["personal"].group)


@pytest.mark.parametrize(
    ("weighting", "settings"),
    [
        ("size", {"start": "random"}),
        second("uniform", {"start": "random", "most_groups": 1}),
        second("size", {}),
        second("uniform", {"start": "random"}),
        second("size", {"start": "random", "most_groups": 1}),
        second("uniform", {}),
    ],
)
def test_one_group_is_fedavg(settings, weighting):
    problem = quadratics((3, 1, 6, 2, 4), noise=1.0) if settings != {"start": "random"} else None
    common = {"rate": 0.1, "local_steps": 3, "batch_size": 4, "weighting": weighting}
    if problem is None:  # random draws need layers
        data = regressions([1, -1, 1])
        problem = problem_of(data, {"name": "linear", "init": "pytorch"})
    expected = run(problem.simulation(FedAvg(**common), cohort=2), 5).shared.params
    state = run(problem.simulation(IFCA(groups=1.0, **common, **settings), cohort=2), 5)
    np.testing.assert_allclose(rows(state.shared.params)[0], flat(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.second
def test_groups_that_nobody_leaves_are_separate_fedavgs():
    """From models near each group's own, the choice never changes."""
    signs = np.array([1, -1, -1, 1, -1])
    data = regressions(signs, intercept=0.5)
    problem = problem_of(data, {"name": "linear", "init": "zeros"})
    settings = {"rate": 0.05, "local_steps": 3, "batch_size": 0}
    simulation = problem.simulation(IFCA(start="random", most_groups=2, **settings))
    first = jax.tree.map(lambda leaf: 0.3 * jnp.ones_like(leaf) * jnp.asarray(W[: leaf.size]), problem.params)
    stack = jax.tree.map(lambda leaf: jnp.stack([leaf, -leaf]), first)
    copied = jax.tree.map(jnp.array, stack)  # a state's buffers are donated
    state = replace(simulation.init(0), shared=Groups(copied, jnp.asarray(True)))
    found = rows(simulation.advance(state, 6).shared.params)
    for group, sign in enumerate((1, -1)):
        others = [data.clients[i] for i in np.flatnonzero(signs != sign)]
        theta = tree.gather(stack, group)
        alone = Simulation(hold_out(data, others), problem.objective, theta, FedAvg(**settings))
        np.testing.assert_allclose(found[group], flat(run(alone, 6).shared.params), rtol=1e-5, atol=1e-6)


def regression(data, members):
    """(w, b) of some clients' pooled rows, which it fits exactly, in double precision."""
    x, y = (
        np.concatenate(part).astype(float) for part in zip(*(data.train.client(int(i)) for i in members), strict=True)
    )
    design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(design @ found, y, atol=1e-5)
    return found


OPPOSITE = [1, -1] * 6
UNEQUAL = [1, 1, -1, 1, 1, 1, -1, 1, 1, 1, 1, -1]


@pytest.mark.parametrize("signs", [OPPOSITE, second(UNEQUAL)])
@pytest.mark.parametrize("intercept", [0.0, second(5.0)])
def test_two_opposite_groups_are_recovered(signs, intercept):
    """theta_0 becomes (W, b), theta_1 (-W, b), in the units of the data; group 0 is that of the first client."""
    data = regressions(signs, intercept)
    simulation = simulated(data)
    state = simulation.advance(simulation.init(0), 1)
    np.testing.assert_array_equal(chosen(simulation, state), np.asarray(signs) < 0)  # after a single round
    state = simulation.advance(state, 15)
    np.testing.assert_array_equal(chosen(simulation, state), np.asarray(signs) < 0)
    expected = [regression(data, np.flatnonzero(np.asarray(signs) == sign)) for sign in (1, -1)]
    np.testing.assert_allclose(rows(state.shared.params)[:2], expected, atol=1e-3)
    assert not rows(state.shared.params)[2:].any()  # beyond `groups`: never chosen


@pytest.mark.parametrize("signs", [OPPOSITE, UNEQUAL])
def test_intercepts_of_their_own_do_not_hide_the_groups(signs):
    for seed in range(3):
        simulation = simulated(regressions(signs, own=1.0, seed=seed))
        state = run(simulation, 10)
        np.testing.assert_array_equal(chosen(simulation, state), np.asarray(signs) < 0)


def test_the_first_cohort_makes_the_groups():
    """Clients that were not in it choose from then on."""
    data = regressions(UNEQUAL + OPPOSITE)
    problem = problem_of(data, {"name": "linear", "init": "zeros"})
    simulation = problem.simulation(IFCA(rate=0.2, local_steps=10, batch_size=0), cohort=8)
    state = run(simulation, 20, seed=1)
    groups = chosen(simulation, state)
    signs = np.asarray(UNEQUAL + OPPOSITE)
    np.testing.assert_array_equal(groups, groups[0] ^ (signs != signs[0]))
    assert {*groups.tolist()} == {0, 1}


def test_the_order_of_clients_only_renames_the_groups():
    signs = np.asarray(UNEQUAL)
    data = regressions(signs, own=0.5)
    order = np.random.default_rng(3).permutation(12)
    other = from_arrays(
        {f"c{place:02}": data.train.client(int(i)) for place, i in enumerate(order)},
        task="regression",
        test=0.0,
        validation=0.0,
    )
    plain, mixed = (rows(run(simulated(each), 5).shared.params)[:2] for each in (data, other))
    if signs[order[0]] != signs[0]:
        mixed = mixed[::-1]
    np.testing.assert_allclose(mixed, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.second
@pytest.mark.parametrize("settings", [{}, {"start": "random", "most_groups": 1, "groups": 1.0}])
def test_execution_and_padding_change_nothing(settings):
    method = IFCA(**{"rate": 0.1, "local_steps": 3, "batch_size": 4, "groups": 3.0} | settings)
    is_the_same_however_executed(method)
    ignores_padding(method, rounds=3)


def test_clients_keep_nothing():
    keeps_nothing(IFCA(rate=0.1, local_steps=3, batch_size=4))


@pytest.mark.parametrize("weighting", ["size", "uniform"])
def test_a_group_is_the_mean_of_those_that_chose_it_and_an_empty_one_stays(weighting):
    method = IFCA(start="random", groups=3.0, most_groups=3, weighting=weighting)
    old = {"w": jnp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])}
    sent = np.array([[1.0, 0.0], [0.0, 1.0], [4.0, 4.0], [np.nan, np.nan]], "f4")
    slots = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]], "f4")
    sizes = np.array([1.0, 7.0, 3.0, 9.0], "f4")
    cohort = Cohort(
        jnp.arange(4), jnp.asarray(sizes), jnp.asarray([True, True, True, False]), 9, jnp.asarray(50.0), 4
    )
    after = method.aggregate(
        Groups(old, jnp.asarray(True)), cohort, Vote({"w": jnp.asarray(sent)}, jnp.asarray(slots))
    )
    first = [3.25, 3.0] if weighting == "size" else [2.5, 2.0]
    np.testing.assert_allclose(after.params["w"], [first, [3.0, 4.0], [0.0, 1.0]], rtol=1e-6)


@pytest.mark.parametrize("groups", [2.0, second(3.0)])
def test_the_objective_never_rises(groups):
    """Exact steps of at most 1 / L within groups, then each client's least loss: Lloyd's argument."""
    problem = quadratics((3, 1, 6, 2, 4, 5, 2), noise=0.5)
    simulation = problem.simulation(IFCA(rate=1 / problem.smooth, groups=groups, **EXACT))
    state, values = simulation.advance(simulation.init(0), 1), []

    def objective(state):
        theta = rows(state.shared.params)[: int(groups)].astype(float)
        losses = []
        for x in (problem.data.train.client(i)[0].astype(float) for i in range(problem.clients)):
            gaps = theta[:, None] - x[None, :, :, 5]
            losses.append(0.5 * np.einsum("kni,nij,knj->kn", gaps, x[:, :, :5], gaps).mean(axis=1))
        return float(np.min(losses, axis=1) @ problem.sizes / problem.sizes.sum())

    for _ in range(12):
        values.append(objective(state))
        state = simulation.advance(state, 1)
    assert (np.diff(values) <= 1e-6).all()
    assert values[-1] < values[0] - 1e-3


def test_the_choice_is_the_least_loss_on_all_training_samples():
    problem = classification((9, 1, 30, 4, 300), l2=0.2)
    rng = np.random.default_rng(0)
    stack = jax.tree.map(
        lambda leaf: jnp.asarray(leaf + rng.normal(size=(4, *leaf.shape)).astype("f4")), problem.params
    )

    def f(params, index):
        x, y = (jnp.asarray(part) for part in problem.data.train.client(index))
        losses = jax.vmap(lambda a, b: -jax.nn.log_softmax(params(a))[b])(x, y)
        return losses.mean() + 0.1 * tree.squared_norm(params)

    everyone = jax.jit(jax.vmap(f, in_axes=(0, None)), static_argnums=1)
    for groups in (2.0, 4.0):
        method = IFCA(groups=groups)
        for index in range(5):
            losses = np.asarray(everyone(stack, index))[: int(groups)]
            assert int(jax.jit(method.choice)(stack, problem.client(index))) == losses.argmin()


@pytest.mark.second
def test_numbers_of_groups_are_a_batch_axis_of_one_program():
    """Each run in the batch is that of its own program, the first cohort's division included."""
    data = regressions(UNEQUAL, own=1.0)
    runs = [simulated(data, groups=float(groups)) for groups in (1, 2, 3)]
    program = Program(runs, [member_of(one, ()) for one in runs], devices=Devices(rows=3))
    capacity = program.capacity([0] * 3, 4)
    states = program.start(runs, [0] * 3, [one.params for one in runs])
    states = program.advance([0, 1, 2], states, 4, capacity)
    for row, one in enumerate(runs):
        expected = rows(run(one, 4).shared.params)
        np.testing.assert_allclose(rows(tree.gather(states.shared.params, row)), expected, rtol=1e-4, atol=1e-5)
        assert len({theta.tobytes() for theta in expected[: row + 1]}) == row + 1  # all in use, and different


def test_random_starts_are_drawn_for_all_groups_but_the_first():
    data = regressions([1, -1])
    simulation = simulated(data, start="random")
    first, again = (rows(simulation.init(seed).shared.params) for seed in (0, 1))
    np.testing.assert_array_equal(first[0], flat(simulation.params))
    np.testing.assert_array_equal(again[0], first[0])
    assert len({row.tobytes() for row in [*first, *again[1:]]}) == 7
    with pytest.raises(ConfigError, match="has no Linear"):
        quadratics().simulation(IFCA(start="random")).init(0)


def test_a_new_client_chooses_by_its_own_training_samples():
    data = hold_out(regressions([*UNEQUAL, -1, -1, 1]), ["c12", "c13", "c14"])
    simulation = simulated(data)
    state = run(simulation, 10)
    joined = personalize(simulation, state, data.held_out)
    models = joined.evaluator.client_models(joined.state, ("personal",))["personal"]
    np.testing.assert_array_equal(models.group, [1, 1, 0])
    np.testing.assert_array_equal(rows(models.model), rows(state.shared.params)[[1, 1, 0]])
    assert joined.rounds == 0


def test_a_client_trains_the_model_it_chose_and_sends_its_choice():
    data = regressions([1, -1])
    simulation = simulated(data, rate=0.1, local_steps=2, batch_size=5, most_groups=2)
    stack = jax.tree.map(
        lambda leaf: jnp.stack([jnp.ones_like(leaf) * jnp.asarray(s * W[: leaf.size]) for s in (1, -1)]),
        simulation.params,
    )
    client = simulation.plan.client(simulation.arrays, jnp.asarray(1), jnp.asarray(0))
    key = stream(jax.random.key(0), "local", 0, 1)
    vote, private = jax.jit(simulation.algorithm.local)(stack, None, client, key)
    np.testing.assert_array_equal(vote.group, [0, 1])
    expected = FedAvg(rate=0.1, local_steps=2, batch_size=5).train(tree.gather(stack, 1), client, key)
    np.testing.assert_allclose(flat(vote.model), flat(expected), rtol=1e-5, atol=1e-6)
    assert private is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": 0.0}, "ifca: groups = 0.0 must be greater than 0"),
        ({"groups": 1.5}, "ifca: groups = 1.5 must be a whole number"),
        ({"groups": 5.0}, "groups = 5.0 must not be greater than most_groups = 4; raise most_groups"),
        ({"groups": jnp.array([1.0, 6.0])}, "must not be greater than most_groups"),
        ({"most_groups": 0}, "ifca: most_groups = 0"),
        ({"start": "cold"}, "ifca: start = 'cold' is not one of 'warm', 'random'"),
        ({"weighting": "none"}, "ifca: weighting"),
        ({"rate": -1.0}, "ifca: rate"),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        IFCA(**settings)
