"""The runtime on one machine: a federation as one compiled program.

A round gathers the cohort's private states, maps the method over the cohort in blocks, aggregates, and scatters
the private states back. The rounds between two evaluations are one compiled loop; its buffers are donated.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort
from idiolect.algorithms.start import start_of
from idiolect.client.client import Client, Federation
from idiolect.client.objective import Objective
from idiolect.client.samples import Samples, to_device
from idiolect.client.tiles import capacities, most_rows
from idiolect.core import tree
from idiolect.core.errors import DivergedError, require
from idiolect.core.random import stream
from idiolect.data.federated import FederatedData
from idiolect.runtime.blocks import default_block, map_blocks
from idiolect.runtime.devices import Devices
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.sampling import Sampling

_ONLY_IN_MEMORY = "private states in a file go with one process, without debug, and with train = 'cohort' alone"
STAGES = {1: "local training", 2: "aggregation"}


class State(eqx.Module):
    """All that a federation carries from round to round.

    shared: the server's state; private: every client's private state, leaves (N, ...), or None, or the file that
    holds it; round: rounds done; seed: the key from which every draw derives; fault: (round, client, stage) of the
    first non-finite value, stage 0 while there is none.
    """

    shared: PyTree
    private: PyTree
    round: Int[Array, ""]
    seed: PRNGKeyArray
    fault: Int[Array, "3"]


class Simulation:
    """One method on one federation, compiled once, for any number of seeds.

    cohort: clients a round (S); block: clients vmapped together (None: chosen by the size of the model);
    train: "cohort" trains only the clients that are aggregated; "all" trains everyone and throws the rest away,
    which changes no result and exists to show that it does not. debug: no jit, one client after the other, so
    that a breakpoint or a print inside a method sees numbers. devices: over which a cohort is divided, by
    default as many as shorten its work.
    """

    def __init__(
        self,
        data: FederatedData,
        objective: Objective,
        params: PyTree,
        algorithm: Algorithm,
        *,
        cohort: float | None = None,
        sampling: Literal["fixed", "binomial"] = "fixed",
        rounds: int = 1,
        block: int | None = None,
        train: Literal["cohort", "all"] = "cohort",
        debug: bool = False,
        devices: Devices | None = None,
    ) -> None:
        self.data, self.objective, self.params = data, objective, params
        self.training = algorithm.training_data(data)
        self.algorithm, self.start = algorithm, start_of(self.training, params)
        population = self.training.num_clients
        pooled = self.training is not data
        self.sampling = Sampling(population if cohort is None or pooled else cohort, population, sampling)
        require(
            not algorithm.everyone or self.sampling.size == population,
            f"{algorithm.name} needs everyone: all {population} take part in every round, "
            f"not {self.sampling.size:g}; leave cohort out",
        )
        algorithm.check_start(self.start)
        # Traced with shapes alone: what the method refuses, it refuses before anything runs or is written.
        jax.eval_shape(self._first, jax.random.key(0), params, jnp.arange(1))
        self.offered = algorithm.offered(self.start)
        self.rounds, self.train, self.debug = rounds, train, debug
        require(block is None or block >= 1, f"block = {block} must be at least 1 client")
        self.block = 0 if debug else block or default_block(params)
        self.devices = Devices(jax.local_devices()[:1]) if debug else devices or Devices(rows=self.sampling.size)

    @cached_property
    def arrays(self) -> Samples:
        """The training split on the devices."""
        return self.devices.share(to_device(self.training.train))

    @cached_property
    def tile(self) -> int:
        """Rows that gradients and scores take at a time, at most."""
        sample = jax.ShapeDtypeStruct(self.training.feature_shape, jnp.result_type(float))
        return most_rows(self.objective, self.params, sample)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Capacities for the smallest quarter of the clients, half, three quarters, all."""
        return capacities(self.training.train.sizes)

    def map(self, function: Callable[..., Any], seen: PyTree, *arguments: PyTree) -> Any:
        """function(seen, *row) over clients: each device its part, in blocks, see `map_blocks`."""

        def mapped(seen: PyTree, *part: PyTree) -> Any:
            return map_blocks(lambda *row: function(seen, *row), self.block, *part)

        return self.devices.map(mapped, seen, *arguments)

    def init(self, seed: int | Int[Array, ""], params: PyTree | None = None, rows: Path | None = None) -> State:
        """The state before the first round, from `params` if given, else from the simulation's own.

        rows: a file for the clients' private states; without it they are held in memory.
        """
        params = self.params if params is None else params
        key = jax.random.key(seed)
        if rows is None:
            shared, private = self._first(key, params, jnp.arange(self.training.num_clients))
        else:
            require(self.train == "cohort" and not self.debug and jax.process_count() == 1, _ONLY_IN_MEMORY)
            shared, _ = self._first(key, params, jnp.arange(0))
            private = PrivateRows(rows, jax.jit(lambda ids: self._first(key, params, ids)[1]))
        # Copies: the compiled loop donates the state's buffers, and the initial parameters must survive.
        state = State(shared, private, jnp.asarray(0, jnp.int32), key, jnp.zeros(3, jnp.int32))
        return self.devices.place(jax.tree.map(lambda a: jnp.array(a) if eqx.is_array(a) else a, state))

    def _first(self, key: PRNGKeyArray, params: PyTree, ids: Int[Array, "n"]) -> tuple[PyTree, PyTree]:
        """The method's shared state before the first round, and the private states of some clients."""
        start = replace(self.start, params=params)

        def private(client_id: Int[Array, ""]) -> PyTree:
            return self.algorithm.init_private(start, stream(key, "private", 0, client_id))

        return self.algorithm.init(start, stream(key, "init")), jax.vmap(private)(ids)

    def client(self, arrays: Samples, client_id: Int[Array, ""], round: Int[Array, ""]) -> Client:
        """One client's side of one round."""
        x, y, start = arrays.of(client_id)
        outputs = None if arrays.outputs is None else arrays.outputs[client_id]
        federation = Federation(
            arrays.total,
            self.training.num_clients,
            self.sampling.size,
            capacity=int(self.training.train.sizes.max()),
            tile=self.tile,
            sizes=self.sizes if self.block == 1 else (),
        )
        return Client(x, y, start, arrays.sizes[client_id], client_id, round, self.objective, federation, outputs)

    def _one_round(self, state: State, arrays: Samples, capacity: int) -> State:
        ids, present = self.sampling.draw(state.seed, state.round, capacity)
        trained = ids if self.train == "cohort" else jnp.arange(self.training.num_clients)
        own = tree.gather(state.private, trained)
        after, changed = self.cohort_round(replace(state, private=None), arrays, ids, present, trained, own)
        rows = jnp.where(present, ids, self.training.num_clients)  # padding scatters to nowhere
        kept = jax.tree.map(lambda old, new: old.at[rows].set(new, mode="drop"), state.private, changed)
        return self.devices.kept_everywhere(replace(after, private=kept))

    def cohort_round(
        self,
        state: State,
        arrays: Samples,
        ids: Int[Array, "cohort"],
        present: Bool[Array, "cohort"],
        trained: Int[Array, "trained"],
        own: PyTree,
    ) -> tuple[State, PyTree]:
        """A round as its cohort sees it: the next state, private states aside, and those of the cohort.

        trained: who trains, the cohort or everyone; own: their private states, leaves (trained, ...).
        """
        algorithm, population = self.algorithm, self.training.num_clients

        def one(seen: tuple[State, Samples], client_id: Array, private: PyTree) -> tuple[PyTree, PyTree, Array]:
            state, arrays = seen
            message, private = algorithm.local(
                algorithm.view(state.shared, client_id),
                private,
                self.client(arrays, client_id, state.round),
                stream(state.seed, "local", state.round, client_id),
            )
            return message, private, tree.all_finite((message, private))

        messages, private, finite = self.map(one, (state, arrays), trained, own)
        if self.train == "all":
            messages, private, finite = tree.gather((messages, private, finite), ids)
        sizes = arrays.sizes[ids].astype(jnp.result_type(float))
        cohort = Cohort(ids, sizes, present, population, arrays.total, self.sampling.size)
        shared = algorithm.aggregate(state.shared, cohort, messages)
        shared = jax.tree.map(lambda new, old: jnp.where(jnp.any(present), new, old), shared, state.shared)
        bad = present & ~finite
        culprit = jnp.where(jnp.any(bad), ids[jnp.argmax(bad)], -1)
        stage = jnp.where(jnp.any(bad), 1, jnp.where(tree.all_finite(shared), 0, 2))
        fault = jnp.stack([state.round, culprit, stage]).astype(jnp.int32)
        return self.devices.kept_everywhere(State(shared, None, state.round + 1, state.seed, fault)), private

    def rounds_until(self, state: State, arrays: Samples, end: Array, capacity: int) -> State:
        """Inside a compiled program: rounds until `end` are done, or there is a fault."""
        return jax.lax.while_loop(
            lambda s: (s.round < end) & (s.fault[2] == 0),
            lambda s: self._one_round(s, arrays, capacity),
            state,
        )

    @cached_property
    def _advance(self) -> Callable[[State, Samples, Array, int], State]:
        return jax.jit(self.rounds_until, static_argnums=3, donate_argnums=0, out_shardings=self.devices.everywhere)

    def advance(self, state: State, rounds: int) -> State:
        """Run `rounds` more rounds. The given state's buffers are consumed.

        Raises `DivergedError` naming round, client and stage at the first NaN or infinity.
        """
        end = self.devices.place(jnp.asarray(int(state.round) + rounds, jnp.int32))
        capacity = self.sampling.capacity(state.seed, max(self.rounds, int(end)))
        if isinstance(state.private, PrivateRows):
            return self._advance_by_rows(state, rounds, capacity)
        if self.debug:
            with jax.disable_jit():
                while int(state.round) < int(end) and int(state.fault[2]) == 0:
                    state = self._one_round(state, self.arrays, capacity)
        else:
            state = self._advance(state, self.arrays, end, capacity)
        self.raise_fault(state)
        return state

    @cached_property
    def _draw(self) -> Callable[[State, int], tuple[Array, Array]]:
        return jax.jit(lambda s, capacity: self.sampling.draw(s.seed, s.round, capacity), static_argnums=1)

    @cached_property
    def _cohort_round(self) -> Callable[[State, Samples, Array, Array, PyTree], tuple[State, PyTree]]:
        def round(state: State, arrays: Samples, ids: Array, present: Array, own: PyTree) -> tuple[State, PyTree]:
            return self.cohort_round(state, arrays, ids, present, ids, own)

        return jax.jit(round, donate_argnums=(0, 4), out_shardings=self.devices.everywhere)

    def _advance_by_rows(self, state: State, rounds: int, capacity: int) -> State:
        """As `advance`, the private states of each round's cohort read from the file, and written back."""
        rows, state = state.private, replace(state, private=None)
        for _ in range(rounds):
            ids, present = self._draw(state, capacity)
            own = self.devices.place(rows.read(np.asarray(ids)))
            state, changed = self._cohort_round(state, self.arrays, ids, present, own)
            self.raise_fault(state)
            there = np.flatnonzero(np.asarray(present))
            rows.write(np.asarray(ids)[there], tree.gather(jax.device_get(changed), there))
        return replace(state, private=rows)

    def raise_fault(self, state: State) -> None:
        """Raise `DivergedError` if the state carries a fault."""
        round, client, stage = (int(v) for v in np.asarray(state.fault))
        if stage == 0:
            return
        name = self.training.clients[client] if client >= 0 else None
        where = f"client '{name}', " if name is not None else ""
        raise DivergedError(
            f"{self.algorithm.name} diverged (NaN or infinity) in round {round + 1}, {where}stage: {STAGES[stage]}; "
            "lower the learning rates",
            round=round + 1,
            client=name,
            stage=STAGES[stage],
        )
