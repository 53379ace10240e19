"""Runs of one method as one compiled program: hyper-parameters, seeds and folds are one more batch axis.

Runs that differ only in the values of arrays and floats share a program. Leaves that differ between them are stacked
and mapped over; leaves that they share are passed once. The devices of this process divide the runs. A single run is
a program with one member and without that axis: the devices divide its cohort, and its private states may lie in a
file. Each run computes what `Simulation` computes, to float rounding.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Wrapped
from jaxtyping import Array, Int, PyTree

from idiolect.client.samples import Samples, Tiles, tiles_of, to_device
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.metrics.base import Metric
from idiolect.runtime.blocks import default_block, map_blocks
from idiolect.runtime.compiled import Skeleton, is_argument, is_number, once
from idiolect.runtime.devices import Devices
from idiolect.runtime.evaluate import ClientScores, Evaluator, Measured, client_scores, sums
from idiolect.runtime.plan import Plan, State
from idiolect.runtime.scoring import finished
from idiolect.runtime.simulate import Simulation


class Member(eqx.Module):
    """The plan and the samples of one run, without its seed and its initial parameters.

    training: the samples it trains on; models_from: the samples from which each client makes its models; scored: the
    evaluated splits.
    """

    plan: Plan
    training: Samples
    models_from: Samples
    scored: dict[str, tuple[Samples, Tiles]]


def member_of(simulation: Simulation, splits: Sequence[str] = ("validation", "test")) -> Member:
    """Build the member for a simulation, with the splits that have samples."""
    nonempty = {name: split for name in splits if (split := simulation.data.split(name)).count}
    return Member(
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
    pools = tuple(id(a) for samples in (member.training, member.models_from) for a in jax.tree.leaves(samples.pool))
    return skeleton.key, shapes, pools, simulation.start.graphs.contents


class Program:
    """Members of one signature, compiled once.

    simulations: one for each member; the one with the largest client sets the program's shapes. block: members
    vmapped together (None: chosen by the size of the model and the machine). devices: divide several members, by
    default all of this process. clients: how many are evaluated, see `evaluated_clients`; with several members all
    are. metrics: the metrics to measure, see `Evaluator`.
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
    ) -> None:
        require(block is None or block >= 1, f"block = {block} must be at least 1 run")
        self.like = max(simulations, key=lambda sim: int(sim.training.train.sizes.max()))
        self.alone = len(simulations) == 1 and not members
        self.block = block or default_members(self.like)
        self.evaluator = Evaluator(self.like, clients, metrics)
        self.metrics = self.evaluator.metrics
        self.devices = self.like.devices if self.alone else devices or Devices(rows=len(members))
        if not self.alone:
            self._stack(members)

    def _stack(self, members: Sequence[Member]) -> None:
        """Separate the leaves that differ between members from those that they share."""
        # The structure: the largest client's sizes, and the settings and samples of the first member.
        plan, first = plan_of_member(self.like), members[0]
        largest = {name: getattr(plan, name) for name in ("capacity", "tile", "sizes")}
        columns = list(zip(*(jax.tree.leaves(member) for member in members), strict=True))
        self._varies = [not _all_equal(column) for column in columns]
        given = [varies or is_argument(column[0]) for column, varies in zip(columns, self._varies, strict=True)]
        self.skeleton = Skeleton(replace(first, plan=replace(first.plan, **largest)), given)
        pairs = list(zip(columns, self._varies, strict=True))
        self._varying = [_stacked(column) for column, varies in pairs if varies]
        common = [column[0] for column, varies in pairs if not varies and is_argument(column[0])]
        common = [jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in common]
        self._common = self.devices.share(common)
        is_varying = [varies for varies, is_given in zip(self._varies, given, strict=True) if is_given]
        self.compiled = once(
            (Batch, self.skeleton.key, tuple(given), tuple(is_varying), self.block, self.devices.all, self.metrics),
            lambda: Batch(self.skeleton, is_varying, self.block, self.devices, self.metrics),
        )

    def _of(self, rows: Sequence[int]) -> list[Array]:
        index, every = np.asarray(rows), np.arange(len(self._varying[0]) if self._varying else 0)
        return self._varying if np.array_equal(index, every) else [leaf[index] for leaf in self._varying]

    def start(
        self,
        simulations: Sequence[Simulation],
        seeds: Sequence[int],
        params: Sequence[PyTree],
        file: Path | None = None,
    ) -> State:
        """Make the members' states before the first round, leaves (members, ...); of a single run without that axis.

        simulations, seeds, params: of each member. file: holds the private states of a single run; None: they are in
        memory.
        """
        built: dict[Any, State] = {}
        runs = [(id(sim), seed, id(first)) for sim, seed, first in zip(simulations, seeds, params, strict=True)]
        for run, simulation, seed, first in zip(runs, simulations, seeds, params, strict=True):
            if run not in built:
                built[run] = simulation.init(seed, first, file) if self.alone else simulation.first_state(seed, first)
        return self.joined([built[run] for run in runs])

    def joined(self, states: Sequence[State]) -> State:
        """Stack the members' states."""
        return states[0] if self.alone else jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def one(self, states: State, place: int) -> State:
        """The state of one member."""
        return states if self.alone else tree.gather(states, place)

    def rounds(self, states: State) -> Int[np.ndarray, "members"]:
        """Rounds done by each member."""
        return np.atleast_1d(np.asarray(states.round))

    def capacity(self, seeds: Sequence[int], rounds: int = 0) -> int:
        """Rows that hold the largest cohort of any of these runs; see `Sampling.capacity`."""
        sampling, rounds = self.like.sampling, max(self.like.rounds, rounds)
        return max(sampling.capacity(jax.random.key(seed), rounds) for seed in {*seeds})

    def advance(self, rows: Sequence[int], states: State, end: int, capacity: int) -> State:
        """Run the members `rows` to round `end`; a member with a fault stops. The states are consumed.

        capacity: rows that hold the largest cohort, see `capacity`.
        """
        if self.alone:
            return self.like.run_until(states, end, capacity)
        return self.compiled.advance(self._of(rows), self._common, states, jnp.asarray(end, jnp.int32), capacity)

    def scores(
        self, rows: Sequence[int], states: State, splits: Sequence[str], names: Sequence[str]
    ) -> list[list[ClientScores]]:
        """Score each member: every client with each named model on each split."""
        if self.alone:
            return [self.evaluator(states, names, splits)]
        results = self.compiled.score(self._of(rows), self._common, states, None, tuple(names), tuple(splits))
        results = jax.tree.map(np.asarray, results)

        def member(row: int) -> dict[str, dict[str, Measured]]:
            part = jax.tree.map(lambda leaf: np.asarray(leaf[row]), results)
            return {n: {split: finished(self.metrics, *part[n][split]) for split in splits} for n in names}

        return [client_scores(member(row), self.metrics, self.like.data.label_scale) for row in range(len(rows))]

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
        varying = [jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype) for leaf in self._varying]
        states = jax.eval_shape(jax.vmap(self.like.first_state), jax.ShapeDtypeStruct((rows,), jnp.int32))
        end, argument_bytes = jax.ShapeDtypeStruct((), jnp.int32), tree.bytes_of((varying, states))
        lowered = (
            self.compiled.advance.lower(varying, self._common, states, end, capacity),
            self.compiled.score.lower(varying, self._common, states, None, tuple(names), tuple(splits)),
        )
        return max(self._taken(argument_bytes, program.compile().memory_analysis()) for program in lowered)

    def _taken(self, argument_bytes: int, counted: Any) -> int:
        """Bytes on all devices: the members' arguments, and XLA's count for each device."""
        output = counted.output_size_in_bytes - counted.alias_size_in_bytes
        return argument_bytes + len(self.devices) * int(output + counted.temp_size_in_bytes)


class Batch:
    """The compiled rounds and evaluation of several members; see `compiled`.

    skeleton: of a member; varies: whether each of its argument leaves differs between members.
    """

    def __init__(
        self, skeleton: Skeleton, varies: Sequence[bool], block: int, devices: Devices, metrics: Sequence[Metric]
    ) -> None:
        self._skeleton, self._varies, self._block, self._devices = skeleton, varies, block, devices
        self._metrics = metrics

    def _member(self, varying: Sequence[Array], common: Sequence[Any]) -> Member:
        different, same = iter(varying), iter(common)
        return self._skeleton.filled([next(different) if varies else next(same) for varies in self._varies])

    def _map(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Map function(member, its slice of `of`, `seen`, ...) over members: in blocks, on all devices."""

        def mapped(varying: list[Array], common: list[Any], of: PyTree, seen: PyTree, *static: Any) -> Any:
            def part(everything: PyTree, varying: list[Array], of: PyTree) -> Any:
                common, seen = everything

                def one(varying: list[Array], of: PyTree) -> Any:
                    return function(self._member(varying, common), of, seen, *static)

                return map_blocks(one, self._block, varying, of)

            return self._devices.map(part, (common, seen), varying, of)

        return mapped

    @cached_property
    def advance(self) -> Wrapped:
        """(varying, common, states, end, rows of a cohort) -> states."""

        def advance(member: Member, state: State, end: Array, capacity: int) -> State:
            return member.plan.rounds_until(state, member.training, end, capacity)

        return jax.jit(self._map(advance), static_argnums=4, donate_argnums=2)

    @cached_property
    def score(self) -> Wrapped:
        """(varying, common, states, None, names, splits) -> what is measured, leaves (members, ...)."""

        def score(member: Member, state: State, _: None, names: tuple[str, ...], splits: tuple[str, ...]) -> PyTree:
            samples = {name: member.scored[name][0] for name in splits}
            tiles = {name: jax.tree.map(lambda a: a[None], member.scored[name][1]) for name in splits}  # one device
            clients = member.models_from.sizes.shape[0]
            ids = jnp.arange(clients, dtype=jnp.int32)
            # A method that trains on pooled data has one private state, and every client reads it.
            private = state.private
            if member.plan.population != clients:
                private = tree.gather(private, jnp.zeros_like(ids))
            core = replace(state, private=None)
            arguments = core, ids, private, member.models_from, samples, tiles
            return sums(member.plan, self._metrics, names, *arguments)

        return jax.jit(self._map(score), static_argnums=(4, 5))


def _all_equal(column: Sequence[Any]) -> bool:
    first = column[0]
    return all(leaf is first or np.array_equal(leaf, first) for leaf in column[1:])


def _stacked(column: Sequence[Any]) -> Array:
    arrays = [jnp.asarray(leaf) for leaf in column]
    dtype = jnp.result_type(float) if isinstance(column[0], float | int) else arrays[0].dtype
    return jnp.stack([array.astype(dtype) for array in arrays])


def default_members(simulation: Simulation) -> int:
    """The default number of runs vmapped together: on a CPU as for clients (`default_block`), else all."""
    return default_block(simulation.params) if jax.default_backend() == "cpu" else 1 << 20
