"""Many runs of one method as one compiled program: hyper-parameters, seeds and folds are one more batch axis.

Runs that differ in the values of arrays and floats alone share a program: what differs between them is stacked and
mapped over as the runtime maps over clients, what they have in common is not. Each run is the very computation that
`Simulation` makes of it, to float rounding.
"""

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from idiolect import tree
from idiolect.algorithms.base import Algorithm
from idiolect.blocks import default_block, map_blocks
from idiolect.devices import Devices
from idiolect.errors import require
from idiolect.evaluate import ClientScores, Evaluator, Tiles, client_scores, tiles_of
from idiolect.objective import Objective, Scores
from idiolect.samples import Samples, to_device
from idiolect.simulate import Simulation, State


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
        simulation.arrays,
        to_device(simulation.data.train),
        {name: (to_device(split), tiles_of(split)) for name, split in used.items()},
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
    return type(algorithm), tuple(static), structure, shapes, samples, simulation.sampling


class Program:
    """Members of one signature, compiled once.

    simulations: one for each member, of which the one with the largest client gives the program its shapes.
    block: members vmapped together (None: chosen by the size of the model and the machine).
    """

    def __init__(
        self, simulations: Sequence[Simulation], members: Sequence[Member], *, block: int | None = None
    ) -> None:
        require(block is None or block >= 1, f"block = {block} must be at least 1 run")
        self.like = max(simulations, key=lambda sim: int(sim.training.train.sizes.max()))
        self.block = block or default_members(self.like)
        self.size = len(members)
        self._one_device = Devices(jax.local_devices()[:1])
        self._structure = jax.tree.structure(members[0])
        columns = list(zip(*(jax.tree.leaves(member) for member in members), strict=True))
        self._varies = [not _all_equal(column) for column in columns]
        self._varying = [_stacked(c) for c, varies in zip(columns, self._varies, strict=True) if varies]
        common = [c[0] for c, varies in zip(columns, self._varies, strict=True) if not varies]
        # Arrays are handed to the program; Python numbers stay what they are, so that a 0 costs nothing.
        self._common = [leaf if eqx.is_array(leaf) else None for leaf in common]
        self._numbers = [None if eqx.is_array(leaf) else leaf for leaf in common]

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
        simulation.devices = self._one_device  # the batch axis is that of the members
        simulation.algorithm, simulation.objective = member.algorithm, member.objective
        return simulation, member

    def _map(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """function(simulation, member, its part of the mapped argument, ...) over members."""

        def mapped(varying: list[Array], common: list[Any], of: PyTree, *rest: Any) -> Any:
            def one(varying: list[Array], of: PyTree) -> Any:
                return function(*self._bind(varying, common), of, *rest)

            return map_blocks(one, self.block, varying, of)

        return mapped

    @cached_property
    def _start(self) -> Callable[..., State]:
        def start(simulation: Simulation, _: Member, given: tuple[Array, Array], params: PyTree) -> State:
            seed, row = given
            return simulation.init(seed, tree.gather(params, row))

        return jax.jit(self._map(start))

    @cached_property
    def _advance(self) -> Callable[..., State]:
        def advance(simulation: Simulation, member: Member, state: State, end: Array, capacity: int) -> State:
            return simulation.rounds_until(state, member.training, end, capacity)

        return jax.jit(self._map(advance), static_argnums=4, donate_argnums=2)

    @cached_property
    def _score(self) -> Callable[..., PyTree]:
        def score(
            simulation: Simulation, member: Member, state: State, names: tuple[str, ...], splits: tuple[str, ...]
        ) -> PyTree:
            chosen = {name: member.scored[name][0] for name in splits}
            tiles = {name: member.scored[name][1] for name in splits}
            evaluator = Evaluator(simulation)
            core, own = replace(state, private=None), evaluator.private_of(state, evaluator.ids)
            return evaluator.sums(names, core, jnp.asarray(evaluator.ids), own, member.own, chosen, tiles)

        return jax.jit(self._map(score), static_argnums=(3, 4))

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

    def advance(self, rows: Sequence[int], states: State, end: int) -> State:
        """Bring every member to round `end`; one that has a fault stays where it is. The states are consumed."""
        sampling = self.like.sampling
        seeds = jax.vmap(jax.random.key_data)(states.seed)
        rounds = max(self.like.rounds, end)
        capacity = int(sampling.size)
        if sampling.kind == "binomial":
            distinct = np.unique(np.asarray(seeds), axis=0)
            keys = [jax.random.wrap_key_data(jnp.asarray(seed)) for seed in distinct]
            capacity = max(sampling.capacity(key, rounds) for key in keys)
        return self._advance(self._of(rows), self._common, states, jnp.asarray(end, jnp.int32), capacity)

    def scores(
        self, rows: Sequence[int], states: State, splits: Sequence[str], names: Sequence[str]
    ) -> list[list[ClientScores]]:
        """For each member, the scores of every client with each named model on each split."""
        sums = self._score(self._of(rows), self._common, states, tuple(names), tuple(splits))
        sums = jax.tree.map(np.asarray, sums)

        def one(row: int) -> dict[str, dict[str, Scores]]:
            mine = tree.gather(sums, row)
            return {name: {split: mine[name][split] for split in splits} for name in names}

        return [client_scores(one(row)) for row in range(len(rows))]

    def bytes_each(self) -> int:
        """Memory of one member, about: its state twice, its cohort's messages, all clients' models to evaluate."""
        state = jax.eval_shape(self.like.init, 0)
        size = sum(_bytes(leaf) for leaf in jax.tree.leaves((state.shared, state.private)))
        params = sum(_bytes(leaf) for leaf in jax.tree.leaves(self.like.params))
        return 3 * size + params * int(np.ceil(self.like.sampling.size) + self.like.data.num_clients)


def _bytes(leaf: Any) -> int:
    return int(np.prod(leaf.shape)) * np.dtype(leaf.dtype).itemsize


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


def default_memory() -> int:
    """Bytes that a sweep may use: a quarter of the machine's, or half of the accelerator's."""
    limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is not None and jax.default_backend() != "cpu":
        return int(limit) // 2
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    return 1 << 30
