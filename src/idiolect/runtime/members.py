"""What the members of a program compute, compiled: rounds, models, scores, and a hub's part of a round.

A member is one run: a plan and its samples. A single member is computed as it is, and the devices of its plan divide
its cohort. Of several members the leaves that differ are stacked, and every function is mapped over them: a `block`
at a time, divided over the devices.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Wrapped
from jaxtyping import Array, Int, PyTree

from idiolect.client.predictor import Models, is_common, unshared
from idiolect.client.samples import Samples, Tiles
from idiolect.core import tree
from idiolect.metrics.base import Metric
from idiolect.runtime.compiled import Skeleton, is_argument, once
from idiolect.runtime.devices import Devices, compiler_options, map_blocks
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import Plan, State, cohort_of, server_step
from idiolect.runtime.scoring import Each, Pool, score_held, score_models


class Member(eqx.Module):
    """The plan and the samples of one run, without its seed and its initial parameters.

    training: the samples it trains on; models_from: the samples from which each client makes its models; ids: the
    clients whose models are made; scored: the evaluated splits, with tiles of leaves (devices, ...), a part of the
    clients each.
    """

    plan: Plan
    training: Samples | None = None
    models_from: Samples | None = None
    ids: Int[Array | np.ndarray, "clients"] | None = None
    scored: dict[str, tuple[Samples, Tiles]] = eqx.field(default_factory=dict)


class Arguments(NamedTuple):
    """The numbers of members: `own` differ between them, leaves (members, ...); `common` are the same for all."""

    own: list[Any]
    common: list[Any]


def of_all_clients(
    plan: Plan, training: Samples, models_from: Samples, scored: Mapping[str, tuple[Samples, Tiles]]
) -> Member:
    """The member that makes and scores the models of all clients, on one device."""
    ids = np.arange(models_from.sizes.shape[0], dtype=np.int32)
    parts = {name: (samples, jax.tree.map(lambda a: a[None], tiles)) for name, (samples, tiles) in scored.items()}
    return Member(plan, training, models_from, ids, parts)


@dataclass(frozen=True)
class Axis:
    """How several members are mapped over: vmapped in blocks, divided over devices.

    quick: see `compiler_options`.
    """

    block: int
    devices: Devices
    quick: bool = False

    @property
    def key(self) -> Hashable:
        """Equal for equal ways to map."""
        return self.block, self.devices.all, self.quick


def alone(member: Member, metrics: Sequence[Metric] = ()) -> tuple["Compiled", Arguments]:
    """The compiled functions of one member, and its arguments."""
    skeleton = Skeleton(member)
    own = [False] * sum(skeleton.given)
    compiled = Compiled.of(skeleton, own, member.plan, metrics)
    return compiled, compiled.arguments(member)


class Compiled:
    """The functions of members, each compiled at its first call; shared by members of equal skeleton.

    skeleton: of a member; own: whether each of its argument leaves differs between members; plan: says how a member
    runs; axis: None for a single member, which has states without a leading axis.
    """

    def __init__(
        self, skeleton: Skeleton, own: Sequence[bool], plan: Plan, metrics: Sequence[Metric], axis: Axis | None
    ) -> None:
        self._skeleton, self._own, self._metrics, self._axis = skeleton, tuple(own), tuple(metrics), axis
        self._devices, self._debug = plan.devices, axis is None and plan.block == 0

    @classmethod
    def of(
        cls,
        skeleton: Skeleton,
        own: Sequence[bool],
        plan: Plan,
        metrics: Sequence[Metric] = (),
        axis: Axis | None = None,
    ) -> "Compiled":
        """Return the functions of equal members, or make them; see `compiled.once`."""
        key = cls, skeleton.key, tuple(skeleton.given), tuple(own), tuple(metrics), None if axis is None else axis.key
        return once(key, lambda: cls(skeleton, own, plan, metrics, axis))

    def arguments(self, member: Member) -> Arguments:
        """The arguments of a single member that differs from the first one in its numbers only."""
        return Arguments([], self._skeleton.leaves(member))

    def joined(self, states: Sequence[State]) -> State:
        """Stack the members' states, leaves (members, ...); that of a single one is placed on its devices."""
        if self._axis is None:
            return self._devices.place(states[0])
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def one(self, states: State, place: int) -> State:
        """The state of one member."""
        return states if self._axis is None else tree.gather(states, place)

    def until(self, given: Arguments, states: State, end: int, capacity: int) -> State:
        """Run the members to round `end`; one with a fault stops. The given states' buffers are consumed.

        capacity: rows that hold any cohort of any member.
        """
        if isinstance(states.private, PrivateRows):
            return self._until_by_rows(given, states, end, capacity)
        last = jnp.asarray(end, jnp.int32)
        with jax.disable_jit() if self._debug else nullcontext():
            return self.advance(given, states, self._devices.place(last), capacity)

    def _until_by_rows(self, given: Arguments, state: State, end: int, capacity: int) -> State:
        """As `until`, but read and write the private states of each round's cohort in the file."""
        rows, state = state.private, replace(state, private=None)
        while int(state.round) < end:
            ids, present = self.draw(given, state, None, capacity)
            before = self._devices.place(rows.read(np.asarray(ids)))
            state, after = self.one_round(given, (state, before), (ids, present))
            if int(state.fault[2]) != 0:
                break
            cohort = np.flatnonzero(np.asarray(present))
            rows.write(np.asarray(ids)[cohort], tree.gather(jax.device_get(after), cohort))
        return replace(state, private=rows)

    @cached_property
    def advance(self) -> Wrapped:
        """(arguments, states, end, rows of a cohort) -> the states in round `end`, or at a fault."""

        def advance(member: Member, state: State, end: Array, capacity: int) -> State:
            assert member.training is not None
            return member.plan.rounds_until(state, member.training, end, capacity)

        return self._compiled(advance, static=(3,), consumed=True)

    @cached_property
    def draw(self) -> Wrapped:
        """(arguments, state, None, rows of a cohort) -> the round's cohort, see `Sampling.draw`."""

        def draw(member: Member, state: State, _: None, capacity: int) -> tuple[Array, Array]:
            return member.plan.sampling.draw(state.seed, state.round, capacity)

        return self._compiled(draw, static=(3,))

    @cached_property
    def one_round(self) -> Wrapped:
        """(arguments, (state, private states), (cohort, present)) -> one round, see `Plan.one_round`."""

        def one_round(member: Member, of: tuple[State, PyTree], cohort: tuple[Array, Array]) -> tuple[State, PyTree]:
            (state, private), arrays = of, member.training
            assert arrays is not None
            return member.plan.one_round(state, arrays, *cohort, private)

        return self._compiled(one_round, consumed=True)

    @cached_property
    def view(self) -> Wrapped:
        """(arguments, shared state, client number) -> what this client receives; for a hub."""

        def view(member: Member, shared: PyTree, client_id: Array) -> PyTree:
            return member.plan.algorithm.view(shared, client_id)

        return self._compiled(view)

    @cached_property
    def server_step(self) -> Wrapped:
        """(arguments, (shared state, messages), (cohort, present)) -> the next shared state; for a hub."""

        def step(member: Member, of: tuple[PyTree, PyTree], cohort: tuple[Array, Array]) -> PyTree:
            (shared, messages), plan, arrays = of, member.plan, member.training
            assert arrays is not None
            known = cohort_of(arrays, *cohort, plan.population, plan.sampling.size)
            return server_step(plan.algorithm, shared, known, messages)

        return self._compiled(step)

    @cached_property
    def models(self) -> Wrapped:
        """(arguments, (states, private states), None, names) -> the models of the clients `ids`, leaves (n, ...)."""

        def models(member: Member, of: tuple[State, PyTree], _: None, names: tuple[str, ...]) -> dict[str, PyTree]:
            (state, private), train = of, member.models_from

            def one(plan: Plan, seen: tuple[State, Samples], *client: PyTree) -> dict[str, PyTree]:
                return plan.models(names, seen, *client)

            return member.plan.map(one, (state, train), member.ids, private)

        return self._compiled(models, static=(3,))

    @cached_property
    def score(self) -> Wrapped:
        """(arguments, (states, private states), None, names, splits, keep) -> the scores of `scored`.

        keep: return the models, too; they need no program of their own then.
        """

        def score(
            member: Member,
            of: tuple[State, PyTree],
            _: None,
            names: tuple[str, ...],
            splits: tuple[str, ...],
            keep: bool = False,
        ) -> PyTree:
            scores, models = scored(member, self._metrics, names, splits, *of, keep)
            return (scores, models) if keep else scores

        return self._compiled(score, static=(3, 4, 5))

    def _compiled(
        self, function: Callable[..., Any], static: tuple[int, ...] = (), consumed: bool = False
    ) -> Wrapped:
        """Compile function(member, its part of `of`, seen, *static), mapped over the members."""
        axis = self._axis
        devices, quick = (self._devices, False) if axis is None else (axis.devices, axis.quick)
        return jax.jit(
            self._map(function),
            static_argnums=static,
            donate_argnums=1 if consumed else (),
            out_shardings=self._devices.everywhere if axis is None else None,
            compiler_options=compiler_options(len(devices.all), quick) or None,
        )

    def _map(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def mapped(given: Arguments, of: PyTree, seen: PyTree, *static: Any) -> Any:
            axis = self._axis
            if axis is None:
                return function(self._member(given), of, seen, *static)

            def part(everything: PyTree, own: list[Array], of: PyTree) -> Any:
                common, seen = everything

                def one(own: list[Array], of: PyTree) -> Any:
                    return function(self._member(Arguments(own, common)), of, seen, *static)

                return map_blocks(one, axis.block, own, of)

            return axis.devices.map(part, (given.common, seen), given.own, of)

        return mapped

    def _member(self, given: Arguments) -> Member:
        own, common = iter(given.own), iter(given.common)
        return self._skeleton.filled([next(own) if is_own else next(common) for is_own in self._own])


def together(
    members: Sequence[Member], like: Member, metrics: Sequence[Metric], axis: Axis
) -> tuple[Compiled, Arguments]:
    """The compiled functions of several members, and their arguments.

    like: has the members' structure; its plan has the sizes of the largest client. A number is an argument if it
    differs between members, or is one in a program of its own (`is_argument`).
    """
    columns = list(zip(*(jax.tree.leaves(member) for member in members), strict=True))
    differ = [not _all_equal(column) for column in columns]
    given = [differs or is_argument(column[0]) for column, differs in zip(columns, differ, strict=True)]
    skeleton = Skeleton(like, given)
    pairs = list(zip(columns, differ, strict=True))
    common = [column[0] for column, differs in pairs if not differs and is_argument(column[0])]
    common = [jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in common]
    own = [differs for differs, is_given in zip(differ, given, strict=True) if is_given]
    arguments = Arguments([_stacked(column) for column, differs in pairs if differs], axis.devices.share(common))
    return Compiled.of(skeleton, own, like.plan, metrics, axis), arguments


def _all_equal(column: Sequence[Any]) -> bool:
    first = column[0]
    return all(leaf is first or np.array_equal(leaf, first) for leaf in column[1:])


def _stacked(column: Sequence[Any]) -> Array:
    arrays = [jnp.asarray(leaf) for leaf in column]
    dtype = jnp.result_type(float) if isinstance(column[0], float | int) else arrays[0].dtype
    return jnp.stack([array.astype(dtype) for array in arrays])


def made_once(make: Callable[..., Models], block: int, *clients: PyTree) -> Models:
    """make(*client) of all clients, leaves (clients, ...); what they have in common is made once, as `Shared`.

    So a large model takes the memory of one, not of one for each client. block: see `map_blocks`.
    """
    common: set[str] = set()

    def own(*client: PyTree) -> Models:
        models = make(*client)
        common.update(name for name, model in models.items() if is_common(model))
        return {name: model for name, model in models.items() if name not in common}

    made = map_blocks(own, block, *clients)
    if common:
        first = make(*tree.gather(clients, 0))
        made |= {name: first[name] for name in common}
    return made


def _of_each(models: Models, clients: int) -> Models:
    """The models of `made_once` with leaves (clients, ...), and without the word on who shares them."""

    def repeated(leaf: Array) -> Array:
        return jnp.broadcast_to(leaf, (clients, *leaf.shape))

    common = {name: jax.tree.map(repeated, model) for name, model in models.items() if is_common(model)}
    return unshared({**models, **common})


def scored(
    member: Member,
    metrics: Sequence[Metric],
    names: tuple[str, ...],
    splits: tuple[str, ...],
    state: State,
    private: PyTree,
    keep: bool = False,
) -> tuple[dict[str, dict[str, tuple[Each, Pool]]], Models]:
    """Score the clients `member.ids`, with these private states, with each named model on each split.

    Returns (the scores, the models, leaves (clients, ...)). keep: without it there are no models, and where blocks
    hold one client, a client's models are made when it is scored: never more than one client's are held.

    A device makes and scores its own clients' models: no model is sent to another device.
    """
    arrays, rest = eqx.partition(member.plan, eqx.is_array)
    samples = {split: member.scored[split][0] for split in splits}
    tiles = {split: member.scored[split][1] for split in splits}

    def mapped(seen: PyTree, *part: PyTree) -> tuple[dict[str, dict[str, tuple[Each, Pool]]], Models]:
        arrays, state, train, samples, private = seen
        plan: Plan = eqx.combine(arrays, rest)
        ids, rows, tiles = tree.gather(part, 0)

        def make(client: Array, row: Array) -> Models:
            return plan.models(names, (state, train), client, tree.gather(private, row))

        kept: Models = {}
        if keep or plan.block != 1:
            models = made_once(make, plan.block, ids, rows)
            scores = score_held(plan.objective, metrics, models, samples, ids, tiles)
            kept = _of_each(models, len(ids)) if keep else {}
        else:
            scores = score_models(plan.objective, metrics, lambda i: make(ids[i], rows[i]), samples, ids, tiles)
        return jax.tree.map(lambda a: a[None], (scores, kept))

    devices, seen = member.plan.devices.apart, (arrays, state, member.models_from, samples, private)
    assert member.ids is not None
    by_device = (part.reshape(len(devices), -1) for part in (jnp.asarray(member.ids), jnp.arange(len(member.ids))))
    scores, models = devices.map(mapped, seen, *by_device, tiles)
    flat = {n: {s: (each.flat(), pool) for s, (each, pool) in by_split.items()} for n, by_split in scores.items()}
    return flat, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), models)
