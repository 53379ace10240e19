"""One round of a method: what one client computes, what the server makes of the messages, and the models in between.

    shared = first_shared(method, start, seed)                  before the first round
    private = first_private(method, start, seed, id)
    message, private = client_step(method, view, private, client, seed)
    shared = server_step(method, shared, cohort, messages)
    {name: model} = models_of(method, view, private, client, seed)

A `Plan` maps the client's functions over a cohort; a hub and its sites each run their own part; new clients and the
count of bytes use them, too. So every draw and every message is the same everywhere.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort, Start, Summing
from idiolect.client.client import Client, Federation, Together
from idiolect.client.objective import Objective
from idiolect.client.predictor import Models
from idiolect.client.samples import Samples, operations_a_row
from idiolect.client.span import first_layer
from idiolect.core import tree
from idiolect.core.random import stream
from idiolect.runtime.compiled import content, once
from idiolect.runtime.devices import Devices, map_blocks, sum_blocks
from idiolect.runtime.sampling import Sampling


class State(eqx.Module):
    """The state that a federation carries from round to round.

    shared: the server's state; private: every client's private state, leaves (N, ...), or None, or the file that
    holds it; round: rounds done; seed: the key from which every random draw derives; fault: (round, client, stage) of
    the first non-finite value, stage 0 if there is none.
    """

    shared: PyTree
    private: PyTree
    round: Int[Array, ""]
    seed: PRNGKeyArray
    fault: Int[Array, "3"]


class Plan(eqx.Module):
    """The rounds of one federation as pure functions of data and state, to be compiled; it holds no data.

    population: number of clients that may train (N); capacity: rows that hold any client's training samples; tile,
    sizes: see `client.Federation`; block: clients vmapped together, 0 for one after the other without batching;
    train: the "cohort", or "all" clients, whose results outside the cohort are dropped; devices: divide a cohort;
    together: the devices that compute one client, set inside of `map` only.
    """

    algorithm: Algorithm
    objective: Objective
    sampling: Sampling
    population: int = eqx.field(static=True)
    capacity: int = eqx.field(static=True)
    tile: int = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    block: int = eqx.field(static=True)
    train: Literal["cohort", "all"] = eqx.field(static=True)
    devices: Devices = eqx.field(static=True)
    together: Together | None = eqx.field(static=True, default=None)

    def rounds_until(self, state: State, arrays: Samples, end: Int[Array, ""], capacity: int) -> State:
        """Run rounds until `end` are done, or the state has a fault: one compiled loop.

        Each gathers the private states of its cohort, and scatters them back. arrays: training samples; capacity:
        rows that hold any cohort.
        """

        def next_round(state: State) -> State:
            ids, present = self.sampling.draw(state.seed, state.round, capacity)
            private = tree.gather(state.private, self.trained(ids))
            after, changed = self.one_round(replace(state, private=None), arrays, ids, present, private)
            rows = jnp.where(present, ids, self.population)  # out of range for padding, which is dropped
            updated = jax.tree.map(lambda old, new: old.at[rows].set(new, mode="drop"), state.private, changed)
            return self.devices.kept_everywhere(replace(after, private=updated))

        return jax.lax.while_loop(lambda s: (s.round < end) & (s.fault[2] == 0), next_round, state)

    def one_round(
        self,
        state: State,
        arrays: Samples,
        ids: Int[Array, "cohort"],
        present: Bool[Array, "cohort"],
        private: PyTree,
    ) -> tuple[State, PyTree]:
        """Run one round on a cohort; returns (next state without private states, the cohort's private states).

        ids: the cohort; present: False for padding; private: of the clients that train, leaves (trained, ...).
        """

        def one(
            plan: Plan, seen: tuple[State, Samples], client_id: Array, private: PyTree
        ) -> tuple[PyTree, PyTree, Array]:
            (state, arrays), algorithm = seen, plan.algorithm
            view, client = algorithm.view(state.shared, client_id), plan.client(arrays, client_id, state.round)
            message, private = client_step(algorithm, view, private, client, state.seed)
            return message, private, tree.all_finite((message, private))

        def apart(plan: Plan, seen: tuple[State, Samples], *row: PyTree) -> tuple[PyTree, PyTree]:
            message, *rest = one(plan, seen, *row)
            assert isinstance(plan.algorithm, Summing)
            return message, (plan.algorithm.of_each(seen[0].shared, message), *rest)

        cohort = cohort_of(arrays, ids, present, self.population, self.sampling.size)
        clients, total = self.trained(ids), None
        if isinstance(self.algorithm, Summing):
            counts = self.in_cohort(ids, present)
            total, (messages, changed, finite) = self.map_sum(apart, (state, arrays), counts, clients, private)
        else:
            messages, changed, finite = self.map(one, (state, arrays), clients, private)
        if self.train == "all":
            messages, changed, finite = tree.gather((messages, changed, finite), ids)
        shared = server_step(self.algorithm, state.shared, cohort, messages, total)
        bad = present & ~finite
        culprit = jnp.where(jnp.any(bad), ids[jnp.argmax(bad)], -1)
        stage = jnp.where(jnp.any(bad), 1, jnp.where(tree.all_finite(shared), 0, 2))
        fault = jnp.stack([state.round, culprit, stage]).astype(jnp.int32)
        return self.devices.kept_everywhere(State(shared, None, state.round + 1, state.seed, fault)), changed

    def trained(self, ids: Int[Array, "cohort"]) -> Int[Array, "trained"]:
        """The clients that train: the cohort, or all."""
        return ids if self.train == "cohort" else jnp.arange(self.population)

    def in_cohort(self, ids: Int[Array, "cohort"], present: Bool[Array, "cohort"]) -> Bool[Array, "trained"]:
        """Which of the clients that train are in the cohort."""
        if self.train == "cohort":
            return present
        rows = jnp.where(present, ids, self.population)
        return jnp.zeros(self.population, bool).at[rows].set(True, mode="drop")

    def client(self, arrays: Samples, client_id: Int[Array, ""], round: Int[Array, ""]) -> Client:
        """Build one client's side of one round."""
        federation = Federation(
            arrays.total,
            self.population,
            self.sampling.size,
            capacity=self.capacity,
            tile=self.tile,
            sizes=self.sizes if self.block == 1 else (),
            together=self.together,
        )
        return client_of(arrays, client_id, round, self.objective, federation)

    def models(
        self, names: tuple[str, ...], seen: tuple[State, Samples], client_id: Array, private: PyTree
    ) -> dict[str, PyTree]:
        """Make one client's named models, from its training samples and with the next round's random draws."""
        (state, train), algorithm = seen, self.algorithm
        view, client = algorithm.view(state.shared, client_id), self.client(train, client_id, state.round)
        models = models_of(algorithm, view, private, client, state.seed)
        return {name: models[name] for name in names}

    def _parts(self) -> tuple["Plan", "Plan"]:
        """(the plan's arrays, the rest of it) as `map` needs them."""
        return eqx.partition(replace(self, together=self.devices.together), eqx.is_array)

    def map(self, function: Callable[..., Any], seen: PyTree, *arguments: PyTree) -> Any:
        """Map function(plan, seen, *row) over clients: divided over the devices, in blocks, see `map_blocks`."""
        arrays, rest = self._parts()

        def mapped(known: tuple["Plan", PyTree], *part: PyTree) -> Any:
            plan, seen = eqx.combine(known[0], rest), known[1]
            return map_blocks(lambda *row: function(plan, seen, *row), self.block, *part)

        return self.devices.map(mapped, (arrays, seen), *arguments)

    def map_sum(
        self,
        function: Callable[..., tuple[PyTree, Any]],
        seen: PyTree,
        counts: Bool[Array, "rows"],
        *arguments: PyTree,
    ) -> tuple[PyTree, Any]:
        """As `map`, of a function with two results: (the sum of the first, the second). counts: rows to add up."""
        arrays, rest = self._parts()
        rows, filled = len(counts), self.devices.filled(len(counts))
        if len(filled) > rows:  # rows that only fill the devices are not added
            counts, arguments = tree.gather((counts, arguments), filled)
            counts = counts & (np.arange(len(filled)) < rows)

        def mapped(known: tuple["Plan", PyTree], *part: PyTree) -> Any:
            plan, seen = eqx.combine(known[0], rest), known[1]

            def one(counts: Array, *row: PyTree) -> tuple[PyTree, Any]:
                added, kept = function(plan, seen, *row)
                return jax.tree.map(lambda leaf: jnp.where(counts, leaf, 0), added), kept

            total, kept = sum_blocks(one, self.block, *part)
            return jax.tree.map(lambda leaf: leaf[None], total), kept

        totals, kept = self.devices.map(mapped, (arrays, seen), counts, *arguments)
        total = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), totals)
        return total, jax.tree.map(lambda leaf: leaf[:rows], kept)


def devices_for(cohort: float, algorithm: Algorithm, objective: Objective, start: Start) -> Devices:
    """As many devices as make a round of `cohort` clients faster; several for a client where there are more.

    A client whose model begins with a product W x is not divided. Its steps may be in the span of its samples, and
    XLA divides such products by itself: those of 784-100-10 on 600 samples took 3.2 ms whole and 3.9 ms divided.
    """
    sample = jax.ShapeDtypeStruct(start.feature_shape, jnp.result_type(float))
    enough = cohort >= jax.device_count() or jax.default_backend() != "cpu"
    if enough or first_layer(objective, start.params, None, sample) is not None:
        return Devices(rows=cohort)
    rows = min(getattr(algorithm, "batch_size", 0) or start.capacity, start.capacity)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), start.params)
    # Counted once for all settings and seeds: XLA lowers the whole gradient for it.
    key = operations_a_row, content((replace(objective, l2=0.0), shapes, sample))
    operations = once(key, lambda: operations_a_row(objective, shapes, sample))
    return Devices(rows=cohort, gradient=(rows, operations))


def first_shared(algorithm: Algorithm, start: Start, seed: PRNGKeyArray) -> PyTree:
    """The server's state before the first round."""
    return algorithm.init(start, stream(seed, "init"))


def first_private(algorithm: Algorithm, start: Start, seed: PRNGKeyArray, client_id: Int[Array, ""]) -> PyTree:
    """One client's private state before its first round."""
    return algorithm.init_private(start, first_draws(seed, client_id))


def first_draws(seed: PRNGKeyArray, client_id: Int[Array, ""]) -> PRNGKeyArray:
    """The key of what a client draws before its first round."""
    return stream(seed, "private", 0, client_id)


def client_of(
    samples: Samples,
    row: Int[Array, ""],
    round: Int[Array, ""],
    objective: Objective,
    federation: Federation,
    client_id: Int[Array, ""] | None = None,
) -> Client:
    """Build the client in this row of the samples. client_id: its number in the federation, by default the row."""
    x, y, start = samples.of(row)
    outputs = None if samples.outputs is None else samples.outputs[row]
    number = row if client_id is None else client_id
    return Client(x, y, start, samples.sizes[row], number, round, objective, federation, outputs)


def cohort_of(
    samples: Samples, ids: Int[Array, "cohort"], present: Bool[Array, "cohort"], population: int, expected: float
) -> Cohort:
    """The cohort as the server knows it: the numbers of its clients and what they announce."""
    sizes = samples.sizes[ids].astype(jnp.result_type(float))
    return Cohort(ids, sizes, present, population, samples.total, expected)


def client_step(
    algorithm: Algorithm, view: PyTree, private: PyTree, client: Client, seed: PRNGKeyArray
) -> tuple[PyTree, PyTree]:
    """(message, private state) of one client after one round. seed: the run's key."""
    return algorithm.local(view, private, client, draws(seed, client))


def server_step(
    algorithm: Algorithm, shared: PyTree, cohort: Cohort, messages: PyTree, total: PyTree = None
) -> PyTree:
    """The server's state after one round; unchanged if no client is present.

    total: the sum of the messages, if a `Summing` method needs it; `messages` is then what it needs of each.
    """
    if total is not None and isinstance(algorithm, Summing):
        after = algorithm.of_sum(shared, cohort, total, messages)
    else:
        after = algorithm.aggregate(shared, cohort, messages)
    return jax.tree.map(lambda new, old: jnp.where(jnp.any(cohort.present), new, old), after, shared)


def models_of(algorithm: Algorithm, view: PyTree, private: PyTree, client: Client, seed: PRNGKeyArray) -> Models:
    """One client's models by name: from its training samples, with the draws of the round that `client` is in."""
    return algorithm.evaluated(view, private, client, draws(seed, client))


def draws(seed: PRNGKeyArray, client: Client) -> PRNGKeyArray:
    """The key of what a client draws in a round."""
    return stream(seed, "local", client.round, client.id)
