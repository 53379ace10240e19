"""One round: each part gets what the contract names, and the draws of (seed, purpose, round, client)."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Algorithm
from idiolect.client.samples import to_device
from idiolect.core.random import stream
from idiolect.runtime.round import (
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
from tests.federations import classification, start_with

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
