"""What every method keeps of the contract, with its defaults."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.client.objective import objective_of
from idiolect.client.predictor import Shared
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.models import build as build_model
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests.modalities import FLAT, problem
from tests.tiers import by_method

KEEPS = [name for name, cls in ALGORITHMS.items() if cls.init_private is not Algorithm.init_private]
# Their papers have the clients send the very models that they go on from, to be averaged.
SENDS_ITS_MODEL = ["one-shot", "l2gd"]
PRIVATE = [name for name in KEEPS if name not in SENDS_ITS_MODEL]
FIRST = ("ditto", "fedper", "pflego", "scaffold")


def numbers(part: Any) -> list[Any]:
    """The leaves that hold parameters or the like."""
    return [leaf for leaf in jax.tree.leaves(part) if eqx.is_inexact_array(leaf)]


def same(leaf: np.ndarray) -> np.ndarray:
    """Whether each two clients have the same numbers, (N, N)."""
    flat = leaf.reshape(len(leaf), -1)
    return (flat[:, None] == flat).all(axis=2)


def trainable(name: str) -> Simulation:
    """A method with its defaults on a small classification, with the first model of the zoo that it takes."""
    rng = np.random.default_rng(0)
    clients = {f"c{i}": (rng.normal(size=(30, 5)).astype("f4"), np.tile([0, 1, 2], 10)) for i in range(4)}
    data = from_arrays(clients, task="classification")
    for kind in ("mlp", "mlr"):
        model = build_model(kind, data.feature_shape, data.num_outputs, data.task, jax.random.key(1))
        params = eqx.filter(model, eqx.is_inexact_array)
        try:
            return Simulation(data, objective_of(model, data.task), params, build(name))
        except ConfigError:
            continue
    return problem(fusion="attention", **FLAT).simulation(build(name))


def one_round(name: str) -> tuple[Any, Any, Any]:
    """(private state before, message, private state after) of one client's first round."""
    sim = trainable(name)
    state, rng = sim.init(0), np.random.default_rng(1)
    blur = lambda leaf: leaf + 0.1 * rng.normal(size=leaf.shape).astype(leaf.dtype)  # noqa: E731
    private = jax.tree.map(lambda x: blur(x) if eqx.is_inexact_array(x) else x, tree.gather(state.private, 1))
    client = sim.plan.client(sim.arrays, jnp.asarray(1), jnp.asarray(0))
    view = sim.algorithm.view(state.shared, jnp.asarray(1))
    message, after = eqx.filter_jit(sim.algorithm.local)(view, private, client, jax.random.key(0))
    return private, message, after


@pytest.mark.parametrize("name", by_method(PRIVATE, first=FIRST))
def test_what_is_private_is_in_no_message(name: str) -> None:
    """No leaf of the private state, before or after the round, is among the numbers that are sent."""
    private, message, after = one_round(name)
    sent = np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in numbers(message))])
    secrets = [leaf for leaf in numbers((private, after)) if np.any(np.asarray(leaf))]
    if not secrets:
        pytest.skip(f"{name} keeps nothing with its defaults")
    for leaf in secrets:
        assert not np.isin(np.ravel(leaf), sent).all()


@pytest.mark.parametrize("name", by_method(ALGORITHMS))
def test_a_model_is_shared_if_and_only_if_all_clients_have_it(name: str) -> None:
    """In a state in which no two clients have the same; and every method makes the models that it offers."""
    sim, rng = trainable(name), np.random.default_rng(2)
    state = sim.init(0)
    blur = lambda leaf: leaf + 0.1 * rng.normal(size=leaf.shape).astype(leaf.dtype)  # noqa: E731
    blurred = jax.tree.map(lambda x: blur(x) if eqx.is_inexact_array(x) else x, (state.shared, state.private))
    state = replace(state, shared=blurred[0], private=blurred[1])
    assert sim.offered[: len(sim.algorithm.model_names)] == sim.algorithm.model_names
    for model, made in Evaluator(sim).client_models(state, sim.offered).items():
        alike = np.all([same(np.asarray(leaf)) for leaf in numbers(made)], axis=0)
        groups = np.asarray(made.group) if isinstance(made, Shared) and made.group is not None else None
        if groups is None:
            assert alike.all() == isinstance(made, Shared), model
        else:  # shared by the clients of a group, and by nobody else
            np.testing.assert_array_equal(alike, groups[:, None] == groups)


@pytest.mark.parametrize("name", SENDS_ITS_MODEL)
def test_a_method_that_sends_its_model_sends_nothing_else(name: str) -> None:
    _, message, after = one_round(name)
    kept = {np.asarray(leaf).tobytes() for leaf in numbers(after)}
    sent = [leaf for leaf in numbers(message) if leaf.ndim]  # one-shot adds whether it is the first time
    assert sent
    assert all(np.asarray(leaf).tobytes() in kept for leaf in sent)
