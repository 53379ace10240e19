"""PFLEGO against Proposition 1, Algorithm 1 written out, and a count of the passes through the body."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from idiolect.algorithms.base import Cohort
from idiolect.algorithms.pflego import PFLEGO
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.models.parts import separate
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests import parted
from tests.contract import ignores_padding, is_the_same_however_executed
from tests.federations import client_of, federation, flat, rows, run, split_of, start_with
from tests.parted import HEAD, SIZES, descend, own, slopes
from tests.tiers import second

TOTAL, CLIENTS, SAMPLED = sum(SIZES), len(SIZES), 2
ALPHA = np.asarray(SIZES) / TOTAL


def pflego(**changes):
    return PFLEGO(**{"head": HEAD, "rate": 0.3, "head_rate": 0.2, "local_steps": 1} | changes)


def exact(problem, body, heads):
    """The gradient of eq. (1) with respect to theta and to each W_i."""

    def total(body, heads):
        models = [tree.merged(tree.gather(heads, i), body) for i in range(CLIENTS)]
        return sum(ALPHA[i] * parted.loss(problem, models[i], i) for i in range(CLIENTS))

    return jax.jit(jax.grad(total, (0, 1)))(body, heads)


@cache
def drawn_heads():
    """A head of its own for each client."""
    _, head = parted.start(parted.problem())
    return jax.tree.map(lambda leaf: jax.random.normal(jax.random.key(3), (CLIENTS, *leaf.shape)), head)


@cache
def stochastic_steps(head_step):
    """{cohort of size r: (theta_{t-1} - theta_t, W_{t-1} - W_t)} for rho = 1, tau = 1: the stochastic gradient."""
    problem, algorithm = parted.problem(), pflego(rate=1.0, head_step=head_step)
    body, _ = parted.start(problem)
    heads, shared = drawn_heads(), algorithm.init(start_with(problem.params), jax.random.key(0))
    announced = replace(problem.client(0).federation, cohort=SAMPLED)

    @jax.jit
    def one(index, head):
        client = replace(problem.client(0), start=offsets[index], size=sizes[index], federation=announced)
        return algorithm.local(shared.params, head, client, jax.random.key(0))

    offsets, sizes = (jnp.asarray(a, jnp.int32) for a in (problem.data.train.offsets[:-1], SIZES))
    messages, moved = jax.vmap(one)(jnp.arange(CLIENTS), heads)
    steps = {}
    for chosen in combinations(range(CLIENTS), SAMPLED):
        ids = jnp.asarray(chosen)
        counts = sizes[ids].astype(jnp.float32)
        cohort = Cohort(ids, counts, jnp.ones(SAMPLED, bool), CLIENTS, jnp.asarray(float(TOTAL)), SAMPLED)
        after = algorithm.aggregate(shared, cohort, tree.gather(messages, ids)).params
        inside = np.isin(np.arange(CLIENTS), chosen)[:, None]
        steps[chosen] = flat(body) - flat(after), inside * (rows(heads) - rows(moved))
    return steps


def test_the_round_is_an_unbiased_step_on_everything_with_the_weights_of_eq_5():
    """Proposition 1: over all cohorts, the mean stochastic gradient is the exact one."""
    problem = parted.problem()
    for_body, for_heads = exact(problem, parted.start(problem)[0], drawn_heads())
    steps = list(stochastic_steps("eq5").values())
    assert len(steps) == 6
    np.testing.assert_allclose(np.mean([body for body, _ in steps], axis=0), flat(for_body), atol=1e-5)
    np.testing.assert_allclose(np.mean([heads for _, heads in steps], axis=0), rows(for_heads), atol=1e-5)
    assert max(np.abs(body - flat(for_body)).max() for body, _ in steps) > 0.1  # no single one is


def test_the_step_of_the_algorithm_box_is_one_over_alpha_too_long_on_the_heads():
    problem = parted.problem()
    for_body, for_heads = exact(problem, parted.start(problem)[0], drawn_heads())
    steps = list(stochastic_steps("algorithm").values())
    np.testing.assert_allclose(np.mean([body for body, _ in steps], axis=0), flat(for_body), atol=1e-5)
    mean = np.mean([heads for _, heads in steps], axis=0)
    np.testing.assert_allclose(mean * ALPHA[:, None], rows(for_heads), atol=1e-5)
    assert np.abs(mean - rows(for_heads)).max() > 0.1


def test_with_all_clients_it_is_one_centralised_gradient_step():
    problem = parted.problem()
    body, head = parted.start(problem)
    heads = jax.tree.map(lambda leaf: jnp.stack([leaf] * CLIENTS), head)
    for_body, for_heads = exact(problem, body, heads)
    state = run(problem.simulation(pflego(head_step="eq5")))
    np.testing.assert_allclose(flat(state.shared.params), flat(descend(body, 0.3, for_body)), atol=1e-6)
    np.testing.assert_allclose(rows(state.private), rows(descend(heads, 0.3, for_heads)), atol=1e-6)


@pytest.mark.parametrize(
    "changes", [{}, {"head_step": "eq5", "cache": False}, second({"server_optimizer": "adam", "rate": 0.05})]
)
def test_five_rounds_are_algorithm_1(changes):
    """Line by line, clients drawn independently, so that rounds differ in size; who is not drawn keeps its head."""
    problem, algorithm = parted.problem(), pflego(local_steps=4, **changes)
    simulation = problem.simulation(algorithm, cohort=1.5, sampling="binomial", rounds=5)
    state, drawn = run(simulation, 5), parted.cohorts(simulation, 5)
    assert {len(cohort) for cohort in drawn} == {1, 2}
    assert {i for cohort in drawn for i in cohort} == {1, 2, 3}
    body, head = parted.start(problem)
    heads, factor = [head] * CLIENTS, CLIENTS / 1.5
    server = optax.adam(0.05) if changes.get("server_optimizer") else optax.sgd(0.3)
    memory = server.init(body)
    for cohort in drawn:
        slope = jax.tree.map(jnp.zeros_like, body)
        for i in cohort:
            for _ in range(3):
                heads[i] = descend(heads[i], 0.2, slopes(problem, body, heads[i], i)[1])
            for_body, for_head = slopes(problem, body, heads[i], i)
            step = algorithm.rate * factor * (ALPHA[i] if algorithm.head_step == "eq5" else 1)
            heads[i] = descend(heads[i], step, for_head)
            slope = descend(slope, -factor * ALPHA[i], for_body)
        updates, memory = server.update(slope, memory, body)
        body = optax.apply_updates(body, updates)
    np.testing.assert_allclose(flat(state.shared.params), flat(body), atol=2e-5)
    for i in range(CLIENTS):
        np.testing.assert_allclose(flat(own(state, i)), flat(heads[i]), atol=2e-5)
    models = Evaluator(simulation).client_params(state, ("personal", "adapted"))
    for i in range(CLIENTS):
        caught_up = heads[i]
        for _ in range(3):
            caught_up = descend(caught_up, 0.2, slopes(problem, body, caught_up, i)[1])
        for name, head in {"personal": heads[i], "adapted": caught_up}.items():
            np.testing.assert_allclose(flat(tree.gather(models[name], i)), flat(tree.merged(head, body)), atol=2e-5)


def test_the_published_weights_are_larger_by_the_share_of_the_cohorts_samples():
    """n_i / sum of the sampled n instead of n_i / n; the factor I/r stays."""
    messages, ids = {"w": jnp.asarray([[1.0], [3.0]])}, jnp.arange(2)
    cohort = Cohort(ids, jnp.asarray([10.0, 30.0]), jnp.ones(2, bool), 8, jnp.asarray(200.0), 4.0)
    moves = {}
    for weighting in ("size", "cohort"):
        algorithm = PFLEGO(rate=0.1, weighting=weighting, head="none")
        shared = algorithm.init(start_with({"w": jnp.zeros(1)}), jax.random.key(0))
        moves[weighting] = float(algorithm.aggregate(shared, cohort, messages).params["w"][0])
    assert moves["size"] == pytest.approx(-0.1 * 8 / 4 * (10 * 1 + 30 * 3) / 200)
    assert moves["cohort"] == pytest.approx(-0.1 * 8 / 4 * (10 * 1 + 30 * 3) / 40)


class Counted(eqx.Module):
    """A model that reports each pass through its body."""

    first: jax.Array
    second: jax.Array

    def __call__(self, x):
        return self.second @ jnp.tanh(counted(self.first @ x))


PASSES = {"forward": 0, "backward": 0}


def note(name):
    jax.debug.callback(lambda: PASSES.update({name: PASSES[name] + 1}))


@jax.custom_vjp
def counted(h):
    note("forward")
    return h


def _forward(h):
    note("forward")
    return h, None


def _backward(_, slope):
    note("backward")
    return (slope,)


counted.defvjp(_forward, _backward)


def test_the_body_sees_two_forward_passes_and_one_backward_pass_whatever_tau():
    """Client 0 fills two tiles, client 1 a part of one: each pays for what it has."""
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(n, 3)).astype("f4"), rng.integers(0, 2, n).astype("i4")) for n in (300, 6)]
    data = federation(split_of(parts), task="classification", classes=("a", "b"))
    params = Counted(jnp.asarray(rng.normal(size=(4, 3)), "f4"), jnp.asarray(rng.normal(size=(2, 4)), "f4"))
    objective = objective_of(params, "classification")
    body, head = separate(params, HEAD)

    def passes(**changes):
        """(forward, backward) of each client."""
        algorithm = pflego(**changes)
        local = jax.jit(lambda i: algorithm.local(body, head, client_of(data, objective, i), jax.random.key(0)))
        for index in (0, 1):
            PASSES.update(forward=0, backward=0)
            jax.block_until_ready(local(jnp.asarray(index)))
            jax.effects_barrier()
            yield PASSES["forward"], PASSES["backward"]

    assert list(passes(local_steps=1)) == [(2, 2), (1, 1)]
    for tau in (2, 9):
        assert list(passes(local_steps=tau)) == [(4, 2), (2, 1)]
    assert list(passes(local_steps=9, cache=False)) == [(18, 2), (9, 1)]


def test_no_leaf_of_the_head_leaves_the_client():
    problem, algorithm = parted.problem(), pflego(local_steps=2)
    shared = algorithm.init(start_with(problem.params), jax.random.key(0))
    private = algorithm.init_private(start_with(problem.params), jax.random.key(0))
    paths, _, kept = parted.sent(algorithm, problem.client(0), shared, private)
    assert paths == [".first", ".bias"]
    assert [leaf.shape for leaf in jax.tree.leaves(kept)] == [(3, 4)]
    assert [leaf.shape for leaf in jax.tree.leaves(shared)] == [(4, 3), (4,)]


@pytest.mark.parametrize("changes", [{"head": "none"}, second({"head": "all"})])
def test_either_part_may_be_empty(changes):
    """Without a head it is full-batch SGD on one model; without a body, each client descends alone."""
    problem = parted.problem()
    state = run(problem.simulation(pflego(local_steps=3, **changes)), 2)
    body, head = separate(problem.params, changes["head"])
    assert len(jax.tree.leaves(state.shared.params)) == len(jax.tree.leaves(body))
    if changes["head"] == "none":
        whole = body
        for _ in range(2):
            for_each = [slopes_of(problem, whole, i) for i in range(CLIENTS)]
            for i in range(CLIENTS):
                whole = descend(whole, 0.3 * ALPHA[i], for_each[i])
        np.testing.assert_allclose(flat(state.shared.params), flat(whole), atol=1e-5)
    else:
        alone = head
        for rate in (0.2, 0.2, 0.3) * 2:
            alone = descend(alone, rate, slopes_of(problem, alone, 2))
        np.testing.assert_allclose(flat(own(state, 2)), flat(alone), atol=1e-5)


def slopes_of(problem, params, index):
    return tree.merged(*slopes(problem, *parted.split_of(params), index)[::-1])


@pytest.mark.second
def test_execution_and_padding_change_nothing():
    """Quadratics in two leaves, of which `tail` is the head."""
    method = PFLEGO(head="tail", rate=0.05, head_rate=0.1, local_steps=3, server_optimizer="adam")
    is_the_same_however_executed(method)
    ignores_padding(method, rounds=2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("head_rate", -0.1),
        ("rate", 0.0),
        ("local_steps", 0),
        ("head_step", "eq3"),
        ("weighting", "uniform"),
        ("head_init", "ones"),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"pflego: {key} = "):
        PFLEGO(**{key: value})


def test_an_unknown_server_optimiser_or_head_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'adam'"):
        PFLEGO(server_optimizer="adan")
    problem = parted.problem()
    with pytest.raises(ConfigError, match="head = 'third' is no part of the model"):
        Simulation(problem.data, problem.objective, problem.params, PFLEGO(head="third")).init(0)
