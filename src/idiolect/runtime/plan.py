"""One federation's rounds as pure functions of data and state, to be compiled.

A round gathers the cohort's private states, maps the method over the cohort in blocks, aggregates, and scatters
the private states back. The rounds between two evaluations are one compiled loop.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm
from idiolect.client.client import Client, Federation
from idiolect.client.objective import Objective
from idiolect.client.samples import Samples
from idiolect.core import tree
from idiolect.runtime.blocks import map_blocks
from idiolect.runtime.devices import Devices
from idiolect.runtime.round import client_of, client_step, cohort_of, models_of, server_step
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
    """A method, an objective, and the sizes that decide a program's shapes; no data.

    population: number of clients that may train (N); capacity: rows that hold any client's training samples; tile,
    sizes: see `client.Federation`; block: clients vmapped together, 0 for one after the other without batching;
    train: the "cohort", or "all" clients, whose results outside the cohort are dropped; devices: divide a cohort.
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

    def map(self, function: Callable[..., Any], seen: PyTree, *arguments: PyTree) -> Any:
        """Map function(plan, seen, *row) over clients: divided over the devices, in blocks, see `map_blocks`."""
        arrays, rest = eqx.partition(self, eqx.is_array)

        def mapped(known: tuple["Plan", PyTree], *part: PyTree) -> Any:
            plan, seen = eqx.combine(known[0], rest), known[1]
            return map_blocks(lambda *row: function(plan, seen, *row), self.block, *part)

        return self.devices.map(mapped, (arrays, seen), *arguments)

    def client(self, arrays: Samples, client_id: Int[Array, ""], round: Int[Array, ""]) -> Client:
        """Build one client's side of one round."""
        federation = Federation(
            arrays.total,
            self.population,
            self.sampling.size,
            capacity=self.capacity,
            tile=self.tile,
            sizes=self.sizes if self.block == 1 else (),
        )
        return client_of(arrays, client_id, round, self.objective, federation)

    def one_round(self, state: State, arrays: Samples, capacity: int) -> State:
        """Run one round; returns the next state. arrays: training samples; capacity: rows that hold any cohort."""
        ids, present = self.sampling.draw(state.seed, state.round, capacity)
        trained = ids if self.train == "cohort" else jnp.arange(self.population)
        private = tree.gather(state.private, trained)
        after, changed = self.cohort_round(replace(state, private=None), arrays, ids, present, trained, private)
        rows = jnp.where(present, ids, self.population)  # out of range for padding, which is dropped
        updated = jax.tree.map(lambda old, new: old.at[rows].set(new, mode="drop"), state.private, changed)
        return self.devices.kept_everywhere(replace(after, private=updated))

    def cohort_round(
        self,
        state: State,
        arrays: Samples,
        ids: Int[Array, "cohort"],
        present: Bool[Array, "cohort"],
        trained: Int[Array, "trained"],
        private: PyTree,
    ) -> tuple[State, PyTree]:
        """Run one round on a cohort; returns (next state without private states, the cohort's private states).

        ids: the cohort; present: False for padding; trained: the clients that train (the cohort or all); private:
        their private states, leaves (trained, ...).
        """

        def one(
            plan: Plan, seen: tuple[State, Samples], client_id: Array, private: PyTree
        ) -> tuple[PyTree, PyTree, Array]:
            (state, arrays), algorithm = seen, plan.algorithm
            view, client = algorithm.view(state.shared, client_id), plan.client(arrays, client_id, state.round)
            message, private = client_step(algorithm, view, private, client, state.seed)
            return message, private, tree.all_finite((message, private))

        messages, changed, finite = self.map(one, (state, arrays), trained, private)
        if self.train == "all":
            messages, changed, finite = tree.gather((messages, changed, finite), ids)
        cohort = cohort_of(arrays, ids, present, self.population, self.sampling.size)
        shared = server_step(self.algorithm, state.shared, cohort, messages)
        bad = present & ~finite
        culprit = jnp.where(jnp.any(bad), ids[jnp.argmax(bad)], -1)
        stage = jnp.where(jnp.any(bad), 1, jnp.where(tree.all_finite(shared), 0, 2))
        fault = jnp.stack([state.round, culprit, stage]).astype(jnp.int32)
        return self.devices.kept_everywhere(State(shared, None, state.round + 1, state.seed, fault)), changed

    def rounds_until(self, state: State, arrays: Samples, end: Array, capacity: int) -> State:
        """Run rounds until `end` are done, or the state has a fault."""
        return jax.lax.while_loop(
            lambda s: (s.round < end) & (s.fault[2] == 0),
            lambda s: self.one_round(s, arrays, capacity),
            state,
        )

    def models(
        self, names: tuple[str, ...], seen: tuple[State, Samples], client_id: Array, private: PyTree
    ) -> dict[str, PyTree]:
        """Make one client's named models, from its training samples and with the next round's random draws."""
        (state, train), algorithm = seen, self.algorithm
        view, client = algorithm.view(state.shared, client_id), self.client(train, client_id, state.round)
        models = models_of(algorithm, view, private, client, state.seed)
        return {name: models[name] for name in names}
