"""Many runs of one method as one compiled program: hyper-parameters, seeds and folds are one more batch axis.

Runs that differ in the values of arrays and floats alone share a program: what differs between them is stacked and
mapped over as the runtime maps over clients, what they have in common is not. The devices of this process divide the
runs. Each run is the very computation that `Simulation` makes of it, to float rounding.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Wrapped
from jaxtyping import Array, Key, PyTree

from idiolect.algorithms.base import Algorithm
from idiolect.client.objective import Objective, Scores
from idiolect.client.samples import Samples, to_device
from idiolect.client.tiles import Tiles, tiles_of
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.runtime.blocks import default_block, map_blocks
from idiolect.runtime.devices import Devices
from idiolect.runtime.evaluate import ClientScores, Evaluator, client_scores
from idiolect.runtime.simulate import Simulation, State


class Member(eqx.Module):
    """What one run is made of, beside its seed and its initial parameters.

    training: the samples it trains on; own: those that each client makes its models from; scored: splits that are
    evaluated.
    """

    algorithm: Algorithm
    objective: Objective
    training: Samples
    own: Samples
    scored: dict[str, tuple[Samples, Tiles]]


def member_of(simulation: Simulation, splits: Sequence[str] = ("validation", "test")) -> Member:
    """The member that runs what a simulation runs; of the splits, those that have samples."""
    used = {name: split for name in splits if (split := simulation.data.split(name)).count}
    return Member(
        simulation.algorithm,
        simulation.objective,
        to_device(simulation.training.train),
        to_device(simulation.data.train),
        {name: (to_device(split), tiles_of(split, simulation.tile)) for name, split in used.items()},
    )


def _fixed(value: Any) -> Any:
    """A static value in a form that compares by content: a graph by its arrays."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(_fixed(getattr(value, f.name)) for f in fields(value))
    return value


def signature(simulation: Simulation, member: Member) -> Any:
    """Equal for runs that can share a program: same method and static settings, same shapes."""
    algorithm = member.algorithm
    static = [(f.name, _fixed(getattr(algorithm, f.name))) for f in fields(algorithm) if f.metadata.get("static")]
    dynamic = [(f.name, getattr(algorithm, f.name)) for f in fields(algorithm) if not f.metadata.get("static")]
    rest = (dict(dynamic), member.objective.l2, member.training, member.own, member.scored)
    leaves, structure = jax.tree.flatten(rest)
    shapes = tuple(np.shape(leaf) for leaf in leaves)
    samples = tuple(id(a) for arrays in (member.training, member.own) for a in jax.tree.leaves(arrays.pool))
    graphs = simulation.start.graphs.contents
    return type(algorithm), tuple(static), structure, shapes, graphs, samples, simulation.sampling


class Program:
    """Members of one signature, compiled once.

    simulations: one for each member, of which the one with the largest client gives the program its shapes.
    block: members vmapped together (None: chosen by the size of the model and the machine). devices: those that
    divide the members, all of this process by default.
    """

    def __init__(
        self,
        simulations: Sequence[Simulation],
        members: Sequence[Member],
        *,
        block: int | None = None,
        devices: Devices | None = None,
    ) -> None:
        require(block is None or block >= 1, f"block = {block} must be at least 1 run")
        self.like = max(simulations, key=lambda sim: int(sim.training.train.sizes.max()))
        self.block = block or default_members(self.like)
        self.devices = devices or Devices(rows=len(members))
        self._structure = jax.tree.structure(members[0])
        columns = list(zip(*(jax.tree.leaves(member) for member in members), strict=True))
        self._varies = [not _all_equal(column) for column in columns]
        self._varying = [_stacked(c) for c, varies in zip(columns, self._varies, strict=True) if varies]
        common = [c[0] for c, varies in zip(columns, self._varies, strict=True) if not varies]
        # Arrays are handed to the program; Python numbers stay what they are, so that a 0 costs nothing.
        self._common = self.devices.share([leaf if eqx.is_array(leaf) else None for leaf in common])
        self._numbers = [None if eqx.is_array(leaf) else leaf for leaf in common]
        largest, varies = int(self.like.training.train.sizes.max()), tuple(self._varies)
        same = signature(self.like, members[0])
        self.key = same, largest, self.block, self.devices.all, varies, tuple(self._numbers)

    def adopt(self, other: "Program") -> None:
        """Use what another program of the same key has compiled."""
        assert self.key == other.key
        self._start, self._advance, self._score = other._start, other._advance, other._score

    def _bind(self, varying: list[Array], common: list[Any]) -> tuple[Simulation, Member]:
        """The simulation of one member, inside the compiled program."""
        different, same = iter(varying), iter(zip(common, self._numbers, strict=True))
        leaves: list[Any] = []
        for varies in self._varies:
            if varies:
                leaves.append(next(different))
            else:
                array, number = next(same)
                leaves.append(number if array is None else array)
        member: Member = self._structure.unflatten(leaves)
        simulation = copy(self.like)
        simulation.devices = Devices(self.devices.all[:1])  # the axis that devices divide is that of the members
        simulation.algorithm, simulation.objective = member.algorithm, member.objective
        simulation.start = replace(self.like.start, sizes=member.training.sizes)
        return simulation, member

    def _map(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """function(simulation, member, its part of the mapped argument, what all see, ...) over members."""

        def mapped(varying: list[Array], common: list[Any], of: PyTree, seen: PyTree, *static: Any) -> Any:
            def part(everything: PyTree, varying: list[Array], of: PyTree) -> Any:
                common, seen = everything

                def one(varying: list[Array], of: PyTree) -> Any:
                    return function(*self._bind(varying, common), of, seen, *static)

                return map_blocks(one, self.block, varying, of)

            return self.devices.map(part, (common, seen), varying, of)

        return mapped

    @cached_property
    def _start(self) -> Callable[..., State]:
        def start(simulation: Simulation, _: Member, given: tuple[Array, Array], params: PyTree) -> State:
            seed, row = given
            return simulation.init(seed, tree.gather(params, row))

        return jax.jit(self._map(start))

    @cached_property
    def _advance(self) -> Wrapped:
        def advance(simulation: Simulation, member: Member, state: State, end: Array, capacity: int) -> State:
            return simulation.rounds_until(state, member.training, end, capacity)

        return jax.jit(self._map(advance), static_argnums=4, donate_argnums=2)

    @cached_property
    def _score(self) -> Wrapped:
        def score(
            simulation: Simulation,
            member: Member,
            state: State,
            _: None,
            names: tuple[str, ...],
            splits: tuple[str, ...],
        ) -> PyTree:
            chosen = {name: member.scored[name][0] for name in splits}
            tiles = {name: jax.tree.map(lambda a: a[None], member.scored[name][1]) for name in splits}  # one device
            evaluator = Evaluator(simulation)
            core, own = replace(state, private=None), evaluator.private_of(state, evaluator.ids)
            return evaluator.sums(names, core, jnp.asarray(evaluator.ids), own, member.own, chosen, tiles)

        return jax.jit(self._map(score), static_argnums=(4, 5))

    def _of(self, rows: Sequence[int]) -> list[Array]:
        index = np.asarray(rows)
        return [leaf[index] for leaf in self._varying]

    def start(self, rows: Sequence[int], seeds: Sequence[int], params: Sequence[PyTree]) -> State:
        """States before the first round, leaves (members, ...), of the members `rows`. params: one for each."""
        require(all(0 <= seed < 2**31 for seed in seeds), "seeds must be whole numbers from 0 to 2^31 - 1")
        place: dict[int, int] = {}
        for one in params:
            place.setdefault(id(one), len(place))
        distinct = {id(one): one for one in params}
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *distinct.values())
        given = (jnp.asarray(list(seeds), jnp.int32), jnp.asarray([place[id(one)] for one in params], jnp.int32))
        return self._start(self._of(rows), self._common, given, stacked)

    def capacity(self, seeds: Key[Array, "runs"], rounds: int = 0) -> int:
        """Rows that hold the largest cohort of any of these runs; see `Sampling.capacity`."""
        sampling, rounds = self.like.sampling, max(self.like.rounds, rounds)
        if sampling.kind == "fixed":
            return int(sampling.size)
        distinct = np.unique(np.asarray(jax.vmap(jax.random.key_data)(seeds)), axis=0)
        return max(sampling.capacity(jax.random.wrap_key_data(jnp.asarray(key)), rounds) for key in distinct)

    def advance(self, rows: Sequence[int], states: State, end: int, capacity: int | None = None) -> State:
        """Bring every member to round `end`; one that has a fault stays where it is. The states are consumed.

        capacity: rows that hold any cohort, of these runs if not given.
        """
        capacity = self.capacity(states.seed, end) if capacity is None else capacity
        return self._advance(self._of(rows), self._common, states, jnp.asarray(end, jnp.int32), capacity)

    def scores(
        self, rows: Sequence[int], states: State, splits: Sequence[str], names: Sequence[str]
    ) -> list[list[ClientScores]]:
        """For each member, the scores of every client with each named model on each split."""
        sums = self._score(self._of(rows), self._common, states, None, tuple(names), tuple(splits))
        sums = jax.tree.map(np.asarray, sums)

        def one(row: int) -> dict[str, dict[str, Scores]]:
            mine = tree.gather(sums, row)
            return {name: {split: mine[name][split] for split in splits} for name in names}

        return [client_scores(one(row)) for row in range(len(rows))]

    def bytes_about(self, rows: int) -> int:
        """Memory that `rows` members take at once, about, the data left out.

        Of every member its state before and after; of those that are at work at once also a state, their cohort's
        messages, all clients' models to evaluate, and the samples of the clients that are trained together.
        """
        like = self.like
        state = jax.eval_shape(like.init, 0)
        size, cohort = _bytes((state.shared, state.private)), int(np.ceil(like.sampling.size))
        together, numbers = min(like.block or 1, cohort), math.prod(like.training.feature_shape)
        samples = together * int(like.training.train.sizes.max()) * numbers * 4  # float32; nothing is generated here
        models = (cohort + like.data.num_clients) * _bytes(like.params)
        working = min(rows, self.block * len(self.devices))
        return 2 * rows * size + working * (size + models + samples)

    def bytes_compiled(self, rows: int, capacity: int, splits: Sequence[str], names: Sequence[str]) -> int:
        """The same as XLA counts it: the larger of the programs that train and that evaluate, compiled for it."""
        varying = [jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype) for leaf in self._varying]
        one, params = jax.ShapeDtypeStruct((rows,), jnp.int32), jax.tree.map(lambda p: p[None], self.like.params)
        states = jax.eval_shape(self._start, varying, self._common, (one, one), params)
        end, given = jax.ShapeDtypeStruct((), jnp.int32), _bytes((varying, states))
        lowered = (
            self._advance.lower(varying, self._common, states, end, capacity),
            self._score.lower(varying, self._common, states, None, tuple(names), tuple(splits)),
        )
        return max(self._taken(given, program.compile().memory_analysis()) for program in lowered)

    def _taken(self, given: int, said: Any) -> int:
        """Bytes on all devices: what the members are given, and what XLA says of one device."""
        own = said.output_size_in_bytes - said.alias_size_in_bytes + said.temp_size_in_bytes
        return given + len(self.devices) * int(own)


def _bytes(of: PyTree) -> int:
    return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(of))


def _all_equal(column: Sequence[Any]) -> bool:
    first = column[0]
    return all(leaf is first or np.array_equal(leaf, first) for leaf in column[1:])


def _stacked(column: Sequence[Any]) -> Array:
    arrays = [jnp.asarray(leaf) for leaf in column]
    dtype = jnp.result_type(float) if isinstance(column[0], float | int) else arrays[0].dtype
    return jnp.stack([array.astype(dtype) for array in arrays])


def default_members(simulation: Simulation) -> int:
    """Runs vmapped together: on a CPU as many as clients, see `default_block`; an accelerator takes all at once."""
    return default_block(simulation.params) if jax.default_backend() == "cpu" else 1 << 20
