"""A method's functions for ONE site, compiled: its first state, a round, the step among neighbours, its scores."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from idiolect.algorithms import registry as methods
from idiolect.algorithms.base import Algorithm, Graphs, Start, start_of
from idiolect.client.client import Client, Federation, Together
from idiolect.client.objective import Objective
from idiolect.client.predictor import Models, unshared
from idiolect.client.samples import Samples, Tiles, most_rows, tiles_of, to_device
from idiolect.core import tree
from idiolect.data.federated import FederatedData
from idiolect.deploy.terms import Place, Terms
from idiolect.graphs import Graph, complete
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import measured, names_in
from idiolect.models.registry import loss_of
from idiolect.runtime.compiled import once
from idiolect.runtime.devices import Devices
from idiolect.runtime.round import client_of, client_step, devices_for, first_private, first_shared, models_of
from idiolect.runtime.scoring import Each, Pool, score_models
from idiolect.study.spec.assemble import problem_of

_one_after_the_other = threading.Lock()
"""Held by a call on several devices: sites in threads of one process must not begin theirs in different orders."""


@dataclass(frozen=True, eq=False)
class Programs:
    """What one site computes in one run. data: its own, of one client; federations differ only in announced numbers.

    round, id, seed and all samples are arguments of the compiled functions, so that sites of equal shapes in one
    process, and several seeds, share them.
    """

    algorithm: Algorithm
    objective: Objective
    start: Start
    metrics: tuple[Metric, ...]
    cohort: float
    tile: int

    def client(
        self, samples: Samples, place: "RoundNumbers", round: Int[Array, ""], together: Together | None = None
    ) -> Client:
        """The site as the method's client: the arrays hold only its own samples."""
        federation = Federation(
            place.samples, self.start.clients, self.cohort, self.start.capacity, self.tile, together=together
        )
        return client_of(samples, jnp.asarray(0), round, self.objective, federation, place.id)

    def first(self, params: PyTree, place: "RoundNumbers", seed: PRNGKeyArray) -> PyTree:
        """What the site keeps before its first round: its private state, and the view it has without a hub."""
        start = replace(self.start, params=params)
        private = first_private(self.algorithm, start, seed, place.id)
        return {"private": private, "view": self._view(start, place, seed)}

    def _view(self, start: Start, place: "RoundNumbers", seed: PRNGKeyArray) -> PyTree:
        return self.algorithm.view(first_shared(self.algorithm, start, seed), place.id)

    @cached_property
    def begin(self) -> Callable[[PyTree, "RoundNumbers", PRNGKeyArray], PyTree]:
        """(initial parameters, place, seed) -> `first`."""
        return jax.jit(self.first)

    @cached_property
    def like(self) -> PyTree:
        """The shapes of `first`."""
        return jax.eval_shape(self.first, self.start.params, _nobody(), jax.random.key(0))

    def sent(self, samples: Samples) -> PyTree:
        """The shapes of a message. samples: the site's training samples."""
        round, seed = jnp.zeros((), jnp.int32), jax.random.key(0)
        view, private = self.like["view"], self.like["private"]
        return jax.eval_shape(self._local(None), view, private, samples, _nobody(), round, seed)[0]

    @cached_property
    def local(self) -> Callable[..., tuple[PyTree, PyTree]]:
        """(view, private, samples, place, round, seed) -> (message, private'), the method's own `local`.

        The cores of the site divide each gradient, where it is worth it.
        """
        devices = self.devices
        if devices.together is None:
            return jax.jit(self._local(None))

        def divided(*given: PyTree) -> tuple[PyTree, PyTree]:
            def mapped(given: PyTree, _: Array) -> PyTree:
                found = self._local(devices.together)(*given)
                return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], found)

            return tree.gather(devices.map(mapped, given, jnp.zeros(1)), 0)

        compiled = jax.jit(divided)

        def call(view: PyTree, private: PyTree, samples: Samples, *where: PyTree) -> tuple[PyTree, PyTree]:
            given = (*devices.place((view, private)), devices.share(samples), *devices.place(where))
            with _one_after_the_other:
                return jax.device_get(compiled(*given))

        return call

    @cached_property
    def devices(self) -> Devices:
        """The cores that compute a round together."""
        return devices_for(1, self.algorithm, self.objective, self.start)

    def _local(self, together: Together | None) -> Callable[..., tuple[PyTree, PyTree]]:
        def local(
            view: PyTree, private: PyTree, samples: Samples, place: RoundNumbers, round: Array, seed: PRNGKeyArray
        ) -> tuple[PyTree, PyTree]:
            return client_step(self.algorithm, view, private, self.client(samples, place, round, together), seed)

        return local

    @cached_property
    def mix(self) -> Callable[[PyTree, PyTree, Array], PyTree]:
        """(message, the neighbours' messages, weights) -> the next view, the method's own `mix`."""
        return jax.jit(self.algorithm.mix)

    def models(
        self, view: PyTree, private: PyTree, samples: Samples, place: "RoundNumbers", round: Array, seed: PRNGKeyArray
    ) -> Models:
        """The site's models by name, made of its training samples and the next round's draws."""
        return models_of(self.algorithm, view, private, self.client(samples, place, round), seed)

    @cached_property
    def made(self) -> Callable[..., Models]:
        """`models`, compiled; leaves (1, ...)."""
        return jax.jit(lambda *given: jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], self.models(*given)))

    @cached_property
    def score(self) -> Callable[..., dict[str, dict[str, tuple[Each, Pool]]]]:
        """(names, train, splits, tiles, view, private, place, round, seed) -> each split's scores of each model."""

        def score(
            names: tuple[str, ...],
            train: Samples,
            splits: dict[str, Samples],
            tiles: dict[str, Tiles],
            view: PyTree,
            private: PyTree,
            *where: Any,
        ) -> dict[str, dict[str, tuple[Each, Pool]]]:
            made = unshared(self.models(view, private, train, *where))
            models = {name: made[name] for name in names}
            only = jnp.zeros(1, jnp.int32)
            return score_models(self.objective, self.metrics, lambda _: models, splits, only, tiles)

        return jax.jit(score, static_argnums=0)

    def tiles(self, data: FederatedData, splits: Sequence[str]) -> tuple[dict[str, Samples], dict[str, Tiles]]:
        """The samples and tiles of the splits that have samples."""
        held = {name: split for name in splits if (split := data.split(name)).count}
        tiles = {name: jax.tree.map(jnp.asarray, tiles_of(split, self.tile)) for name, split in held.items()}
        return {name: to_device(split) for name, split in held.items()}, tiles


class RoundNumbers(eqx.Module):
    """A place's numbers, as arguments of compiled functions."""

    id: Int[Array, ""]
    samples: Array

    @classmethod
    def of(cls, place: Place) -> "RoundNumbers":
        """The numbers of a place."""
        return cls(jnp.asarray(place.id, jnp.int32), jnp.asarray(float(place.samples)))


class StandIn(Graphs):
    """The graph of a federation that a site does not see: complete, since only the shapes of a view are asked for."""

    def __init__(self, clients: int) -> None:
        self.clients = clients

    def __call__(self, graph: Graph | str) -> Graph:
        """The complete graph of all sites."""
        del graph
        return complete(self.clients)


def _nobody() -> RoundNumbers:
    return RoundNumbers(jnp.zeros((), jnp.int32), jnp.zeros(()))


def programs_of(terms: Terms, place: Place, data: FederatedData) -> Programs:
    """The compiled functions of a run at a site with these data; made once for equal settings and shapes."""
    capacity = int(data.train.sizes.max())
    alike = (terms.method, terms.model, terms.kind, terms.metric, place.clients, place.cohort, capacity)
    shapes = (data.feature_shape, data.num_outputs, data.task, data.categories)
    key = (Programs, json.dumps(alike, sort_keys=True), *shapes)
    return once(key, lambda: _programs(terms, place, data))


def _programs(terms: Terms, place: Place, data: FederatedData) -> Programs:
    algorithm = methods.build(terms.method)
    # Only shapes: the parameters come from the hub, and to draw others would be compiled for nothing.
    # The plain loss: class weights count the labels of all clients, which no site sees (the hub refuses them).
    problem = replace(problem_of(data, terms.model, shapes=True), loss=loss_of(terms.model))
    params, objective = problem.params, problem.objective
    own = start_of(data, params)
    # The other sites' sizes are not sent; what runs at a client has no use for them.
    sizes = np.zeros(place.clients, np.int32)
    sizes[place.id] = own.capacity
    start = Start(
        params,
        sizes,
        clients=place.clients,
        capacity=own.capacity,
        task=own.task,
        num_outputs=own.num_outputs,
        feature_shape=own.feature_shape,
        graphs=StandIn(place.clients),
        categories=own.categories,
    )
    sample = jax.ShapeDtypeStruct(data.feature_shape, jnp.result_type(float))
    metrics = measured(data.task, names_in(terms.metric))
    return Programs(algorithm, objective, start, metrics, place.cohort, most_rows(objective, params, sample))
