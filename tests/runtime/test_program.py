"""Sweeps: each member of a batch of runs is the run that `Simulation` makes of it."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from idiolect.algorithms.fedu import FedU
from idiolect.algorithms.mocha import Mocha
from idiolect.algorithms.pfedme import PFedMe
from idiolect.algorithms.pflego import PFLEGO
from idiolect.algorithms.scaffold import Scaffold
from idiolect.client.objective import objective_of
from idiolect.core.errors import ConfigError, DivergedError
from idiolect.core.random import model_key
from idiolect.core.tree import gather
from idiolect.data import from_arrays
from idiolect.models import build
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.program import Program, member_of, signature
from idiolect.runtime.simulate import Simulation

SEEDS = (0, 3)
SMALL = {"local_steps": 2, "batch_size": 4}
SETTINGS = {
    "pfedme": [PFedMe(rate=r, prox_weight=w, inner_steps=2, **SMALL) for r, w in ((0.1, 2.0), (0.05, 9.0))],
    "fedu": [FedU(rate=0.1, coupling=c, graph="ring", **SMALL) for c in (0.0, 0.3)],
    "pflego": [PFLEGO(rate=r, head_rate=0.1, local_steps=3, server_optimizer="adam") for r in (0.1, 0.01)],
    "scaffold": [Scaffold(rate=r, server_rate=s, **SMALL) for r, s in ((0.1, 1.0), (0.02, 0.5))],
    "mocha": [Mocha(coupling=c, shrinkage=s) for c, s in ((1.0, 0.1), (0.2, 1.0))],
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    sizes = (12, 20, 33, 8)
    return from_arrays(
        {f"c{i}": (rng.normal(size=(n, 6)).astype("f4") + i, rng.integers(0, 3, n)) for i, n in enumerate(sizes)},
        validation=0.25,
    )


def model_of(data, seed, name="mlp"):
    spec = {"name": "mlr"} if name == "mlr" else {"name": "mlp", "hidden": [5]}
    return build(spec, data.feature_shape, data.num_outputs, data.task, model_key(seed))


def eachof(data, methods, l2=0.0, **options):
    model = model_of(data, 0, "mlr" if isinstance(methods[0], Mocha) else "mlp")
    l2 = l2 if isinstance(l2, tuple) else (l2,) * len(methods)
    options = {"cohort": 3, "rounds": 4} | options
    return [
        Simulation(data, objective_of(model, data.task, s), eqx.filter(model, eqx.is_inexact_array), m, **options)
        for m, s in zip(methods, l2, strict=True)
    ]


def initial(data, simulations):
    kind = "mlr" if isinstance(simulations[0].algorithm, Mocha) else "mlp"
    return {seed: eqx.filter(model_of(data, seed, kind), eqx.is_inexact_array) for seed in SEEDS}


def swept(data, simulations, rounds=4, block=None):
    """A program over all pairs of a simulation and a seed: (program, rows, states)."""
    params = initial(data, simulations)
    runs = [(sim, seed) for sim in simulations for seed in SEEDS]
    each = [sim for sim, _ in runs]
    program = Program(each, [member_of(sim) for sim in each], block=block)
    rows = range(len(runs))
    states = program.start(each, [seed for _, seed in runs], [params[seed] for _, seed in runs])
    return program, rows, program.advance(rows, states, rounds, program.capacity(SEEDS, rounds)), runs


def assert_same(state, other, exactly=False):
    pairs = zip(
        jax.tree.leaves((state.shared, state.private)), jax.tree.leaves((other.shared, other.private)), strict=True
    )
    for a, b in pairs:
        assert a.dtype == b.dtype
        if exactly:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    assert int(state.round) == int(other.round)


MEMBERS = [("pfedme", 4), ("fedu", 4), ("pflego", 2), ("scaffold", 1), ("mocha", 1)]


@pytest.mark.parametrize(
    ("name", "block"), [MEMBERS[0], *(pytest.param(*member, marks=pytest.mark.second) for member in MEMBERS[1:])]
)
def test_each_member_is_the_run_with_its_seed_and_hyper_parameters(data, name, block):
    l2 = (0.0, 0.05) if name == "pfedme" else 0.01
    simulations = eachof(data, SETTINGS[name], l2)
    program, rows, states, runs = swept(data, simulations, block=block)
    names = simulations[0].algorithm.model_names
    scores = program.scores(rows, states, ("validation",), names)
    again, models = program.scores_and_models(rows, states, ("validation",), names)
    params = initial(data, simulations)
    finals = []
    for row, (sim, seed) in enumerate(runs):
        alone = sim.advance(sim.init(seed, params[seed]), 4)
        assert_same(gather(states, row), alone)
        single = Evaluator(sim)(alone, splits=("validation",)) if row % len(SEEDS) == 0 else scores[row]
        assert [one.pooled for one in again[row]] == [one.pooled for one in scores[row]]
        expected = Evaluator(sim).client_params(alone, names)
        for mine, its in zip(jax.tree.leaves(gather(models, row)), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(mine, its, rtol=2e-4, atol=2e-5)
        for mine, its in zip(scores[row], single, strict=True):
            assert (mine.model, mine.split) == (its.model, its.split)
            np.testing.assert_array_equal(mine.count, its.count)
            assert mine.pooled == pytest.approx(its.pooled)
            np.testing.assert_allclose(mine.loss, its.loss, rtol=1e-3)
        finals.append(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(alone.shared)]))
    for i, one in enumerate(finals):  # else members could be mixed up unseen
        assert all(np.abs(one - other).max() > 1e-3 for other in finals[:i])


@pytest.mark.second
def test_seeds_alone_in_blocks_of_one_are_the_same_to_the_last_bit(data):
    simulations = eachof(data, SETTINGS["scaffold"][:1], block=1)
    _, _, states, runs = swept(data, simulations, block=1)
    params = initial(data, simulations)
    for row, (sim, seed) in enumerate(runs):
        assert_same(gather(states, row), sim.advance(sim.init(seed, params[seed]), 4), exactly=True)


@pytest.mark.second
def test_binomial_cohorts_are_those_of_the_single_runs(data):
    simulations = eachof(data, SETTINGS["pfedme"], sampling="binomial", cohort=1.5)
    _, _, states, runs = swept(data, simulations)
    params = initial(data, simulations)
    for row, (sim, seed) in enumerate(runs):
        assert_same(gather(states, row), sim.advance(sim.init(seed, params[seed]), 4))


@pytest.mark.parametrize("block", [8])
def test_a_member_that_diverges_stops_no_other_and_names_where(data, block):
    good, bad = Scaffold(rate=0.1, **SMALL), Scaffold(rate=1e30, **SMALL)
    simulations = eachof(data, [good, bad])
    program, _, states, runs = swept(data, simulations, block=block)
    params = initial(data, simulations)
    for row, (sim, seed) in enumerate(runs):
        if sim is simulations[0]:
            assert_same(gather(states, row), sim.advance(sim.init(seed, params[seed]), 4))
            program.like.raise_fault(gather(states, row))
        else:
            with pytest.raises(DivergedError) as mine:
                program.like.raise_fault(gather(states, row))
            with pytest.raises(DivergedError) as its:
                sim.advance(sim.init(seed, params[seed]), 4)
            assert str(mine.value) == str(its.value)
            assert mine.value.client is not None


def test_what_cannot_share_a_program_has_another_signature(data):
    first = PFedMe(**SMALL)

    def of(method, **options):
        sim = eachof(data, [method], **options)[0]
        return signature(sim, member_of(sim))

    same = of(replace(first, rate=0.7), l2=0.1)
    assert of(first) == same
    others = [replace(first, local_steps=3), replace(first, tolerance=0.1), Scaffold(**SMALL)]
    assert all(of(other) != same for other in others)
    assert of(first, cohort=2) != same
    ring, other = (FedU(graph=g, **SMALL) for g in ("ring", "complete"))
    assert of(ring) == of(replace(ring, coupling=0.2))  # two graph objects with the same content
    assert of(ring) != of(other)


def test_bad_blocks_and_seeds_are_refused(data):
    sim = eachof(data, SETTINGS["scaffold"][:1])[0]
    with pytest.raises(ConfigError, match="block = 0 must be at least 1"):
        Program([sim], [member_of(sim)], block=0)
    with pytest.raises(ConfigError, match="seed = -1 must be"):
        Program([sim], [member_of(sim)]).start([sim], [-1], [sim.params])
