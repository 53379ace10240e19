"""One method on one federation: its data on the devices, its first state, and its compiled rounds."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, start_of
from idiolect.client import span
from idiolect.client.objective import Objective
from idiolect.client.samples import TILE, Samples, capacities, most_rows, roomy, to_device
from idiolect.core import tree
from idiolect.core.errors import DivergedError, require
from idiolect.core.random import check_seed
from idiolect.data.federated import FederatedData
from idiolect.runtime.ahead import Ahead
from idiolect.runtime.devices import Devices, default_block
from idiolect.runtime.members import Arguments, Compiled, Member, alone
from idiolect.runtime.memory import check_batches
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import Plan, State, devices_for, first_private, first_shared
from idiolect.runtime.sampling import Sampling

_ONLY_IN_MEMORY = "private states in a file need one process, no debug, and train = 'cohort'"
STAGES = {1: "local training", 2: "aggregation"}


class Simulation:
    """One method on one federation, compiled once, for any number of seeds.

    cohort: clients per round (S); block: clients vmapped together (None: by the method and its model);
    train: "cohort" trains only the clients that are aggregated; "all" trains every client and drops the others,
    which gives the same results and serves to verify that. debug: no jit, one client after the other, so that a
    breakpoint or a print inside a method sees numbers. devices: divide a cohort; by default as many as make it
    faster. Raises `ConfigError` for settings that the method or the data do not allow.
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
        check_batches(algorithm, self.start)
        # Traced with shapes only, so that the method's own checks come before anything runs or is written.
        jax.eval_shape(self.first, jax.random.key(0), params, jnp.arange(1))
        self.offered = algorithm.offered(self.start)
        self.rounds, self.debug = rounds, debug
        self.train: Literal["cohort", "all"] = train
        require(block is None or block >= 1, f"block = {block} must be at least 1 client")
        self.block = 0 if debug else block or self.default_block
        if debug:
            devices = Devices(jax.local_devices()[:1])
        self.devices = devices or devices_for(self.sampling.size, algorithm, objective, self.start)

    @property
    def default_block(self) -> int:
        """Clients vmapped together unless `block` says how many."""
        return default_block(self.algorithm.carried(self.start)) if self.algorithm.batched else 1

    @cached_property
    def arrays(self) -> Samples:
        """The training split on the devices."""
        return self.devices.share(to_device(self.training.train))

    @cached_property
    def tile(self) -> int:
        """The maximum number of samples that gradients and scores process at a time."""
        sample = jax.ShapeDtypeStruct(self.training.feature_shape, jnp.result_type(float))
        return most_rows(self.objective, self.params, sample)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Capacities (rows) for the smallest quarter of the clients, half, three quarters, all."""
        return capacities(self.training.train.sizes, self.capacity)

    @cached_property
    def capacity(self) -> int:
        """Rows that hold any client's training samples: `roomy`, but for models for which more rows cost much.

        These are models with large intermediate values, and those whose steps may be taken in the span of the
        samples, which costs as the square of the rows.
        """
        largest = int(self.training.train.sizes.max())
        costly = self.tile < TILE or any(span.is_large(leaf) for leaf in jax.tree.leaves(self.params))
        return largest if costly else roomy(largest, 8)

    def init(self, seed: int | Int[Array, ""], params: PyTree | None = None, rows: Path | None = None) -> State:
        """Make the state before the first round, on the devices, from `params` or else the simulation's own.

        rows: a file for the clients' private states; None: they are held in memory.
        """
        return self.devices.place(self.first_state(seed, params, rows))

    def first_state(
        self, seed: int | Int[Array, ""], params: PyTree | None = None, rows: Path | None = None
    ) -> State:
        """As `init`, but on JAX's default device."""
        if isinstance(seed, int):
            check_seed(seed)
        params = self.params if params is None else params
        key = jax.random.key(seed)
        if rows is None:
            shared, private = self.first(key, params, jnp.arange(self.training.num_clients))
        else:
            require(self.train == "cohort" and not self.debug and jax.process_count() == 1, _ONLY_IN_MEMORY)
            shared, _ = self.first(key, params, jnp.arange(0))
            private = PrivateRows(rows, jax.jit(lambda ids: self.first(key, params, ids)[1]))
        # Copies: the compiled loop donates the state's buffers, and the initial parameters must survive.
        state = State(shared, private, jnp.asarray(0, jnp.int32), key, jnp.zeros(3, jnp.int32))
        return tree.copied(state)

    def first(self, key: PRNGKeyArray, params: PyTree, ids: Int[Array, "n"]) -> tuple[PyTree, PyTree]:
        """(shared state before the first round, private states of the clients `ids`), as the method makes them."""
        start = replace(self.start, params=params)

        def private(client_id: Int[Array, ""]) -> PyTree:
            return first_private(self.algorithm, start, key, client_id)

        return first_shared(self.algorithm, start, key), jax.vmap(private)(ids)

    @cached_property
    def plan(self) -> Plan:
        """The part of the simulation that is compiled."""
        return Plan(
            self.algorithm,
            self.objective,
            self.sampling,
            population=self.training.num_clients,
            capacity=self.capacity,
            tile=self.tile,
            sizes=self.sizes,
            block=self.block,
            train=self.train,
            devices=self.devices,
        )

    @cached_property
    def placed(self) -> Plan:
        """The plan with its numbers on the devices."""
        return self.devices.share(self.plan)

    @cached_property
    def compiled(self) -> tuple[Compiled, Arguments]:
        """The compiled rounds, shared with other simulations of an equal plan, and the arguments of this one."""
        return alone(Member(self.placed, self.arrays))

    def advance(self, state: State, rounds: int) -> State:
        """Run `rounds` more rounds. The given state's buffers are consumed.

        Raises `DivergedError` naming round, client and stage at the first NaN or infinity.
        """
        end = int(state.round) + rounds
        state = self.until(state, end, self.sampling.capacity(state.seed, max(self.rounds, end)))
        self.raise_fault(state)
        return state

    @cached_property
    def until(self) -> Callable[[State, int, int], State]:
        """(state, end, capacity) -> the state in round `end`, or at a fault; the given one's buffers are consumed.

        capacity: rows that hold any cohort. Rows of samples in a file are asked for ahead of their rounds.
        """
        compiled, arguments = self.compiled
        until = partial(compiled.until, arguments)
        return until if self.ahead is None else partial(self.ahead.run, until)

    @cached_property
    def ahead(self) -> Ahead | None:
        """Asks for the rows of coming cohorts, where the training samples are in a file."""
        single = jax.process_count() == 1 and self.train == "cohort" and not self.debug
        return Ahead.of(self.training.train, self.sampling) if single else None

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
