"""The compiled runtime: what may not change a result does not, and what is random derives from the seed alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.pfedme import PFedMe
from idiolect.core.errors import ConfigError, DivergedError
from idiolect.data.federated import Split
from idiolect.runtime.devices import default_block, map_blocks
from idiolect.runtime.simulate import Simulation
from tests.federations import bits, classification, flat, quadratics, run, split_of


@pytest.fixture(scope="module")
def problem():
    return classification()


@pytest.fixture(scope="module")
def method():
    return PFedMe(rate=0.05, inner_rate=0.1, prox_weight=3.0, local_steps=3, inner_steps=2, batch_size=4)


@pytest.fixture(scope="module")
def simulation(problem, method):
    """pFedMe with 3 of 5 clients a round; several tests share its compilation."""
    return problem.simulation(method, cohort=3, rounds=7)


def close(state, other):
    np.testing.assert_allclose(flat(state.shared), flat(other.shared), rtol=1e-5, atol=1e-6)


def test_every_method_meets_the_same_cohorts(problem, method):
    assert problem.simulation(method, cohort=2).sampling == problem.simulation(FedAvg(), cohort=2).sampling
    with pytest.raises(ConfigError, match="cohort = 6 is larger than the 5 clients"):
        problem.simulation(method, cohort=6)


# ---- what may not change a result


def test_map_blocks_is_the_loop():
    x, y = jnp.arange(7.0), jnp.arange(14.0).reshape(7, 2)
    expected = [(a * b.sum(), b + a) for a, b in zip(x, y, strict=True)]
    for block in (0, 1, 2, 3, 7, 100):
        got = map_blocks(lambda a, b: (a * b.sum(), b + a), block, x, y)
        np.testing.assert_array_equal(got[0], [e[0] for e in expected])
        np.testing.assert_array_equal(got[1], [e[1] for e in expected])


def test_untrained_clients_change_nothing(problem, method, simulation):
    """Bit-identical one client at a time; to float rounding in blocks."""
    apart = {"cohort": 3, "block": 1}
    cohort = run(problem.simulation(method, **apart), 3)
    everyone = run(problem.simulation(method, **apart, train="all"), 3)
    assert bits(cohort) == bits(everyone)
    close(run(simulation, 3), everyone)


def test_block_size_changes_nothing_but_rounding(problem, method, simulation):
    whole = run(simulation, 2)  # block 3 and more: one vmap; block 1: see the test above
    close(run(problem.simulation(method, cohort=3, block=2), 2), whole)
    assert np.abs(flat(whole.shared) - flat(problem.params)).max() > 1e-2


def test_debug_mode_is_the_compiled_run_to_rounding(problem):
    algorithm = FedAvg(rate=0.2, local_steps=1, batch_size=4)
    compiled, debug = (problem.simulation(algorithm, cohort=2, debug=debug) for debug in (False, True))
    close(run(debug), run(compiled))


def test_the_order_of_the_clients_changes_nothing_on_full_batches(problem):
    order = [3, 0, 4, 2, 1]
    algorithm = FedAvg(rate=0.2, local_steps=2, batch_size=30)
    moved = split_of([problem.data.train.client(i) for i in order])
    data = type(problem.data)(**vars(problem.data) | {"train": moved})
    shuffled = Simulation(data, problem.objective, problem.params, algorithm)
    state, other = run(problem.simulation(algorithm), 2), run(shuffled, 2)
    np.testing.assert_allclose(flat(state.shared.params), flat(other.shared.params), atol=1e-6)


def test_a_repeated_run_is_bit_identical(problem, method, simulation):
    first = bits(run(simulation, 4))
    assert bits(run(simulation, 4)) == first
    assert bits(run(problem.simulation(method, cohort=3, rounds=7), 4)) == first
    assert bits(run(simulation, 4, seed=1)) != first


def test_three_rounds_and_four_are_seven(simulation):
    state = simulation.advance(run(simulation, 3), 4)
    assert bits(state) == bits(run(simulation, 7))
    assert int(state.round) == 7


def test_seeds_batched_are_seeds_apart(simulation):
    seeds = (0, 1, 2)
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(simulation.init(seed) for seed in seeds))
    advance = jax.jit(jax.vmap(lambda s: simulation.plan.rounds_until(s, simulation.arrays, s.round + 1, 3)))
    batch = advance(advance(batch))
    for row, seed in enumerate(seeds):
        close(jax.tree.map(lambda leaf, row=row: leaf[row], batch), run(simulation, 2, seed))


def test_the_initial_parameters_survive_a_run_and_can_be_given(problem, simulation):
    before = flat(problem.params)
    other = jax.tree.map(lambda leaf: leaf + 1, problem.params)
    np.testing.assert_array_equal(flat(simulation.init(0, other).shared), flat(other))
    run(simulation, 1)
    np.testing.assert_array_equal(flat(problem.params), before)


def test_the_data_may_first_be_asked_for_inside_a_compiled_function(problem):
    simulation = problem.simulation(FedAvg())
    jax.jit(lambda: simulation.arrays.x.sum())()
    assert isinstance(np.asarray(simulation.arrays.x), np.ndarray)


def test_large_models_are_mapped_in_small_blocks():
    sizes = [default_block(n) for n in (7850, 79_510, 1_000_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


# ---- divergence


def test_divergence_in_training_names_round_client_and_stage():
    problem = quadratics()
    x = problem.data.train.x.copy()
    first = int(problem.data.train.offsets[2])
    x[first : first + 6, :, :5] *= 200  # client c2 alone is too steep for the rate
    train = Split(x, problem.data.train.y, problem.data.train.offsets)
    data = type(problem.data)(**vars(problem.data) | {"train": train})
    algorithm = PFedMe(rate=0.1, prox_weight=1.0, inner_rate=0.1, local_steps=2, inner_steps=4, batch_size=4)
    simulation = Simulation(data, problem.objective, problem.params, algorithm)
    with pytest.raises(DivergedError, match=r"pfedme diverged .* round \d+, client 'c2', stage: local training") as e:
        run(simulation, 100)
    assert (e.value.client, e.value.stage) == ("c2", "local training")
    assert e.value.round > 1
    good = run(simulation, e.value.round - 1)  # the round before is the last good one
    assert np.isfinite(flat(good.shared)).all()
    with pytest.raises(DivergedError):
        simulation.advance(good, 1)


@pytest.mark.second
def test_divergence_on_the_server_names_the_aggregation():
    problem = quadratics()
    algorithm = PFedMe(rate=0.1, prox_weight=1.0, server_step=3e38, local_steps=1, inner_steps=1, batch_size=4)
    far = eqx.tree_at(lambda p: p.head, problem.params, jnp.array([5.0, 5.0]))
    simulation = Simulation(problem.data, problem.objective, far, algorithm)
    with pytest.raises(DivergedError, match="in round 1, stage: aggregation") as e:
        run(simulation)
    assert (e.value.round, e.value.client, e.value.stage) == (1, None, "aggregation")


def test_capacities_are_roomy_where_more_rows_cost_little(monkeypatch):
    """33 samples at most: 36 rows, but 33 for a wide first layer, and for tiles of few rows."""
    small, wide = classification((5, 33, 17)), classification((5, 33, 17), features=500, hidden=10)
    method = FedAvg(rate=0.1, local_steps=2)
    assert small.simulation(method).plan.capacity == 36
    assert wide.simulation(method).plan.capacity == 33
    monkeypatch.setattr("idiolect.client.samples.CACHE", 1)
    assert small.simulation(method).plan.capacity == 33
