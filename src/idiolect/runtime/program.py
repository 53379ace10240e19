"""A program: one or several runs of one method, compiled together.

Runs that differ only in the values of arrays and floats share a program: hyper-parameters, seeds and folds are one
more batch axis, and the devices of this process divide the runs. A single run has no such axis: the devices divide
its cohort, and its private states may be in a file. Each run computes what `Simulation` computes, to float rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from idiolect.client.samples import tiles_of, to_device
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.metrics.base import Metric
from idiolect.runtime.compiled import Skeleton, is_argument, is_number
from idiolect.runtime.devices import Devices
from idiolect.runtime.evaluate import ClientScores, Evaluator, client_scores, measured_of
from idiolect.runtime.members import Arguments, Axis, Member, of_all_clients, together
from idiolect.runtime.round import Plan, State
from idiolect.runtime.simulate import Simulation


def member_of(simulation: Simulation, splits: Sequence[str] = ("validation", "test")) -> Member:
    """Build the member for a simulation, with the splits that have samples."""
    nonempty = {name: split for name in splits if (split := simulation.data.split(name)).count}
    return of_all_clients(
        plan_of_member(simulation),
        to_device(simulation.training.train),
        to_device(simulation.data.train),
        {name: (to_device(split), tiles_of(split, simulation.tile)) for name, split in nonempty.items()},
    )


def plan_of_member(simulation: Simulation) -> Plan:
    """A simulation's plan on one device: the devices divide the members, not their cohorts."""
    return replace(simulation.plan, devices=Devices(simulation.devices.all[:1]))


def signature(simulation: Simulation, member: Member) -> Any:
    """A key that is equal for runs that can share a program: same method, static settings, shapes and samples."""
    plan = replace(member.plan, capacity=0, tile=0, sizes=(), devices=Devices(()))  # a program takes the largest
    member = replace(member, plan=plan)
    leaves = jax.tree.leaves(member)
    skeleton = Skeleton(member, [is_argument(leaf) or is_number(leaf) for leaf in leaves])
    shapes = tuple(np.shape(leaf) for leaf in leaves if is_argument(leaf) or is_number(leaf))
    held = [samples for samples in (member.training, member.models_from) if samples is not None]
    pools = tuple(id(a) for samples in held for a in jax.tree.leaves(samples.pool))
    return skeleton.key, shapes, pools, simulation.start.graphs.contents


class Program:
    """One run, or several of one signature, compiled once.

    simulations: one for each run; the one with the largest client sets the program's shapes. members: of several
    runs; none for a single run. block: runs vmapped together (None: chosen by the size of the model and the machine).
    devices: divide several runs, by default all of this process. clients: how many are evaluated, see
    `evaluated_clients`; with several runs all are. metrics: the metrics to measure, see `Evaluator`.
    quick: several runs are compiled in less time and run more slowly, see `compiler_options`.
    """

    def __init__(
        self,
        simulations: Sequence[Simulation],
        members: Sequence[Member] = (),
        *,
        block: int | None = None,
        devices: Devices | None = None,
        clients: int | None = None,
        metrics: Sequence[Metric] | None = None,
        quick: bool = False,
    ) -> None:
        require(block is None or block >= 1, f"block = {block} must be at least 1 run")
        self.like = max(simulations, key=lambda sim: int(sim.training.train.sizes.max()))
        self.block = block or default_members(self.like)
        self.evaluator = Evaluator(self.like, clients, metrics)
        self.metrics = self.evaluator.metrics
        self.members = len(members)
        if members:
            self.devices = devices or Devices(rows=len(members))
            # The structure: the largest client's sizes, and the settings and samples of the first member.
            plan, first = plan_of_member(self.like), members[0]
            largest = {name: getattr(plan, name) for name in ("capacity", "tile", "sizes")}
            like = replace(first, plan=replace(first.plan, **largest))
            self.compiled, self._arguments = together(
                members, like, self.metrics, Axis(self.block, self.devices, quick)
            )
        else:
            self.devices = self.like.devices
            self.compiled, self._arguments = self.like.compiled

    def _of(self, rows: Sequence[int]) -> Arguments:
        own = self._arguments.own
        if not own or np.array_equal(np.asarray(rows), np.arange(len(own[0]))):
            return self._arguments
        return self._arguments._replace(own=[leaf[np.asarray(rows)] for leaf in own])

    def start(
        self,
        simulations: Sequence[Simulation],
        seeds: Sequence[int],
        params: Sequence[PyTree],
        file: Path | None = None,
    ) -> State:
        """Make the runs' states before the first round, leaves (runs, ...); of a single run without that axis.

        simulations, seeds, params: of each run. file: holds the private states of a single run; None: they are in
        memory.
        """
        built: dict[Any, State] = {}
        runs = [(id(sim), seed, id(first)) for sim, seed, first in zip(simulations, seeds, params, strict=True)]
        for run, simulation, seed, first in zip(runs, simulations, seeds, params, strict=True):
            if run not in built:
                built[run] = simulation.first_state(seed, first, file)
        return self.joined([built[run] for run in runs])

    def joined(self, states: Sequence[State]) -> State:
        """Stack the runs' states; that of a single run is placed on its devices."""
        return self.compiled.joined(states)

    def one(self, states: State, place: int) -> State:
        """The state of one run."""
        return self.compiled.one(states, place)

    def filled(self, rows: Sequence[int], states: State, count: int) -> tuple[list[int], State]:
        """Fill the members `rows` up to `count` and to equally many on each device, by repeating the last one.

        states: of `rows`, copied to the devices. The first `len(rows)` results are theirs. All calls with as many
        members share a compiled program, and its devices exchange nothing: several programs may run side by side.
        """
        places = np.minimum(self.devices.filled(max(len(rows), count)), len(rows) - 1)
        return [rows[place] for place in places], self.devices.divide(tree.gather_on_host(states, places))

    def rounds(self, states: State) -> Int[np.ndarray, "runs"]:
        """Rounds done by each run."""
        return np.atleast_1d(np.asarray(states.round))

    def capacity(self, seeds: Sequence[int], rounds: int = 0) -> int:
        """Rows that hold the largest cohort of any of these runs; see `Sampling.capacity`."""
        sampling, rounds = self.like.sampling, max(self.like.rounds, rounds)
        return max(sampling.capacity(jax.random.key(seed), rounds) for seed in {*seeds})

    def advance(self, rows: Sequence[int], states: State, end: int, capacity: int) -> State:
        """Run the members `rows` to round `end`; a run with a fault stops. The states are consumed.

        capacity: rows that hold the largest cohort, see `capacity`.
        """
        if not self.members:
            return self.like.until(states, end, capacity)
        return self.compiled.until(self._of(rows), states, end, capacity)

    def scores(
        self, rows: Sequence[int], states: State, splits: Sequence[str], names: Sequence[str]
    ) -> list[list[ClientScores]]:
        """Score each run: every client with each named model on each split."""
        if not self.members:
            return [self.evaluator(states, names, splits)]
        found = self.compiled.score(self._of(rows), self._parts(states), None, tuple(names), tuple(splits))
        return self._measured(rows, found, splits, names)

    def scores_and_models(
        self, rows: Sequence[int], states: State, splits: Sequence[str], names: Sequence[str]
    ) -> tuple[list[list[ClientScores]], dict[str, PyTree[Array]]]:
        """As `scores` of several runs; and every client's named models, leaves (runs, clients, ...)."""
        given = self._of(rows), self._parts(states)
        found, models = self.compiled.score(*given, None, tuple(names), tuple(splits), True)
        return self._measured(rows, found, splits, names), models

    def _measured(
        self, rows: Sequence[int], found: PyTree, splits: Sequence[str], names: Sequence[str]
    ) -> list[list[ClientScores]]:
        data = self.like.data
        found = jax.tree.map(np.asarray, found)

        def run(row: int) -> list[ClientScores]:
            part = jax.tree.map(lambda leaf: np.asarray(leaf[row]), found)
            measured = measured_of(self.metrics, part, names, splits, data.num_clients)
            return client_scores(measured, self.metrics, data.label_scale)

        return [run(row) for row in range(len(rows))]

    def _parts(self, states: State) -> tuple[State, PyTree]:
        """Several runs' states without private states, and each client's private states."""
        private, everyone = states.private, np.zeros(self.like.data.num_clients, np.int32)
        if self.like.training is not self.like.data:  # one private state of the pooled data, which every client reads
            private = jax.tree.map(lambda leaf: leaf[:, everyone], private)
        return eqx.tree_at(lambda one: one.private, states, None, is_leaf=lambda leaf: leaf is None), private

    def bytes_about(self, rows: int) -> int:
        """Estimate the bytes that `rows` members take at once, without the data.

        For every member: its state before and after. For every member that runs at the same time, also: one state,
        its cohort's messages, all clients' models to evaluate, and the samples of the clients trained together.
        """
        like = self.like
        state = jax.eval_shape(like.first_state, 0)
        size, cohort = tree.bytes_of((state.shared, state.private)), int(np.ceil(like.sampling.size))
        together, numbers = min(like.block or 1, cohort), math.prod(like.training.feature_shape)
        samples = together * int(like.training.train.sizes.max()) * numbers * 4  # float32; nothing is generated here
        models = (cohort + like.data.num_clients) * tree.bytes_of(like.params)
        working = min(rows, self.block * len(self.devices))
        return 2 * rows * size + working * (size + models + samples)

    def bytes_compiled(self, rows: int, capacity: int, splits: Sequence[str], names: Sequence[str]) -> int:
        """Count the same bytes with XLA: compile training and evaluation, and take the larger count."""
        own = [jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype) for leaf in self._arguments.own]
        states = jax.eval_shape(jax.vmap(self.like.first_state), jax.ShapeDtypeStruct((rows,), jnp.int32))
        end, argument_bytes = jax.ShapeDtypeStruct((), jnp.int32), tree.bytes_of((own, states))
        given, parts = self._arguments._replace(own=own), jax.eval_shape(self._parts, states)
        lowered = (
            self.compiled.advance.lower(given, states, end, capacity),
            self.compiled.score.lower(given, parts, None, tuple(names), tuple(splits)),
        )
        return max(self._taken(argument_bytes, program.compile().memory_analysis()) for program in lowered)

    def _taken(self, argument_bytes: int, counted: Any) -> int:
        """Bytes on all devices: the members' arguments, and XLA's count for each device."""
        output = counted.output_size_in_bytes - counted.alias_size_in_bytes
        return argument_bytes + len(self.devices) * int(output + counted.temp_size_in_bytes)


def default_members(simulation: Simulation) -> int:
    """The default number of runs vmapped together: on a CPU as for clients (`default_block`), else all."""
    if jax.default_backend() != "cpu":
        return 1 << 20
    return simulation.default_block
