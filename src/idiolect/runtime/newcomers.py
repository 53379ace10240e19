"""New clients: what a trained federation gives to clients that took no part in training."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, PyTree, UInt32

from idiolect.algorithms.base import Algorithm, Cohort, Start
from idiolect.client.client import Client
from idiolect.client.predictor import Models
from idiolect.core import tree
from idiolect.core.errors import ConfigError, DataError, require
from idiolect.core.random import MOST_SEED
from idiolect.data.federated import FederatedData, GeneratedSplit
from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores, Evaluator
from idiolect.runtime.round import State, draws, first_draws
from idiolect.runtime.simulate import Simulation


class Trained(eqx.Module):
    """What all new clients see, which nothing changes.

    view: of the trained state; seed: the bits of the run's key; samples: the run's training samples; most: how
    many of its own samples a new client may use.
    """

    view: PyTree
    seed: UInt32[Array, "words"]
    samples: Array
    most: Int[Array, ""]


class Joined(eqx.Module):
    """A new client's number, which names its random draws, and its private state."""

    number: Int[Array, "*clients"]
    private: PyTree


class Joining(Algorithm):
    """A trained method as new clients see it: each continues by itself, and the shared state does not change.

    clients, cohort: N and S of the run, which the method still announces.
    """

    name: ClassVar[str] = "personalization"
    title: ClassVar[str] = "New clients"
    summary: ClassVar[str] = "clients that join after training"
    source: ClassVar[str] = "each method's own rule"

    method: Algorithm
    clients: int = eqx.field(static=True)
    cohort: float = eqx.field(static=True)

    def offered(self, start: Start) -> tuple[str, ...]:
        """The method's."""
        return self.method.offered(start)

    def local(self, view: Trained, private: Joined, client: Client, key: PRNGKeyArray) -> tuple[None, Joined]:
        """Message: none; the private state after the method's round for a new client."""
        del key
        after = self.method.new_round(view.view, private.private, *self._own(view, private, client))
        return None, Joined(private.number, after)

    def aggregate(self, shared: Trained, cohort: Cohort, messages: None) -> Trained:
        """Nothing arrives, nothing changes."""
        return shared

    def models(self, view: Trained, private: Joined, client: Client, key: PRNGKeyArray) -> Models:
        """The method's models of a new client."""
        del key
        return self.method.new_models(view.view, private.private, *self._own(view, private, client))

    def _own(self, view: Trained, private: Joined, client: Client) -> tuple[Client, PRNGKeyArray]:
        """The client as one of the run's federation, with at most `most` samples; its key, that of its own number."""
        federation = replace(client.federation, samples=view.samples, clients=self.clients, cohort=self.cohort)
        known = replace(client.window(0, jnp.minimum(client.size, view.most)), id=private.number)
        return replace(known, federation=federation), draws(jax.random.wrap_key_data(view.seed), known)


@dataclass(frozen=True, eq=False)
class Newcomers:
    """New clients after their own rounds. rounds: how many each made; state, evaluator: theirs, not the run's."""

    data: FederatedData
    rounds: int
    state: State
    evaluator: Evaluator

    def scores(self, names: Sequence[str] | None = None, splits: Sequence[str] = ("test",)) -> list[ClientScores]:
        """Every new client's scores; a client without samples in a split has NaN.

        Raises `DataError` if no new client has any there.
        """
        return self.evaluator(self.state, names, splits)


def personalize(
    simulation: Simulation,
    state: State,
    data: FederatedData,
    *,
    params: PyTree | None = None,
    rounds: int | None = None,
    most: int | None = None,
    metrics: Sequence[Metric] | None = None,
) -> Newcomers:
    """Give each client of `data` the models that the run's method has for new clients (`Algorithm.new_view`, ...).

    Nothing of the run changes. A client's draws are those of (seed, purpose, round, its number); its number is that
    of the run's client with its name or else a hash of the name. So no client's models depend on the other new ones.

    simulation, state: the run's; params: its initial parameters, by default the simulation's. rounds: of each new
    client, by default as many as a known client has taken part in, in expectation: rounds * S / N, and one at least;
    none if the method keeps no private state. most: use only the first `most` training samples of each client.
    Raises `ConfigError` if the method has nothing for new clients, `DataError` for data of another shape, task or
    labels, `DivergedError` at the first NaN or infinity.
    """
    require(rounds is None or rounds >= 1, f"rounds = {rounds} must be at least 1: new clients train first")
    require(most is None or most >= 1, f"most = {most} must be at least one sample")
    check_like(simulation.data, data)
    method, sampling = simulation.algorithm, simulation.sampling
    joining = Joining(method, simulation.training.num_clients, sampling.size)
    own = Simulation(data, simulation.objective, simulation.params, joining, debug=simulation.debug)
    view = method.new_view(tree.copied(state.shared))
    numbers = jnp.asarray(numbers_of(simulation.training.clients, data.clients))
    params = simulation.params if params is None else params
    start = replace(simulation.start, params=params, capacity=int(data.train.sizes.max()))

    def private(number: Array) -> PyTree:
        return method.new_private(view, start, first_draws(state.seed, number))

    samples = jnp.asarray(float(simulation.training.train.sizes.sum()))
    limit = jnp.asarray(start.capacity if most is None else most, jnp.int32)
    shared = Trained(view, jax.random.key_data(state.seed), samples, limit)
    joined = Joined(numbers, jax.vmap(private)(numbers))
    first = State(shared, joined, state.round, state.seed, jnp.zeros(3, jnp.int32))
    if not jax.tree.leaves(joined.private):
        rounds = 0
    elif rounds is None:
        rounds = max(1, round(int(state.round) * sampling.size / simulation.training.num_clients))
    # Copies: the compiled loop donates the state's buffers, and those of the run must survive.
    after = own.devices.place(tree.copied(first))
    after = own.advance(after, rounds) if rounds else after
    return Newcomers(data, rounds, after, Evaluator(own, metrics=metrics))


def numbers_of(known: Sequence[str], names: Sequence[str]) -> Int[np.ndarray, "new"]:
    """Each name's place among the run's clients; for another name, a hash of it beyond their numbers."""
    places = {name: place for place, name in enumerate(known)}
    room = MOST_SEED - len(known)

    def number(name: str) -> int:
        return len(known) + int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") % room

    return np.array([places[name] if name in places else number(name) for name in names], np.int32)


def check_like(known: FederatedData, new: FederatedData) -> None:
    """Raise `DataError` unless the new data fit a model that was trained on the known data."""
    if isinstance(known.train, GeneratedSplit) or isinstance(new.train, GeneratedSplit):
        raise ConfigError("new clients need stored samples; these are generated")
    where = f"new clients ({new.name})"
    pairs: list[tuple[str, Any, Any]] = [
        ("task", known.task, new.task),
        ("feature shape", known.feature_shape, new.feature_shape),
        ("modalities", known.modalities, new.modalities),
        ("labels numbered by each client", known.own_labels, new.own_labels),
        ("scale of the labels", known.label_scale, new.label_scale),
    ]
    for what, expected, got in pairs:
        if expected != got:
            raise DataError(f"{where}: {what} is {got!r}, but the run's is {expected!r}; encode them as the run's")
    fits = len(new.classes) <= len(known.classes) if known.own_labels else new.classes == known.classes
    if not fits:
        raise DataError(
            f"{where}: the classes are {_listed(new.classes)}, but the run's are {_listed(known.classes)}; "
            "number the labels as the run's data do (from_arrays takes classes=)"
        )


def _listed(classes: Sequence[str]) -> str:
    return ", ".join(classes[:8]) + (f" and {len(classes) - 8} more" if len(classes) > 8 else "")
