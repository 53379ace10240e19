"""Evaluation: a named model, a split, ALL clients -> loss, score and count of every client."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from idiolect import tree
from idiolect.data.federated import Split
from idiolect.errors import DataError, unknown
from idiolect.objective import Batch, Scores
from idiolect.random import stream
from idiolect.simulate import Arrays, Simulation, State, map_blocks, to_device

TILE = 256


@dataclass(frozen=True)
class ClientScores:
    """One named model on one split: a value for every client, in the federation's order.

    loss: mean loss without the L2 term. score: accuracy in [0, 1], or mean squared error for regression.
    count: samples; a client without samples has NaN loss and score and does not enter any summary.
    """

    model: str
    split: str
    loss: Float[np.ndarray, "clients"]
    score: Float[np.ndarray, "clients"]
    count: Int[np.ndarray, "clients"]


class Tiles:
    """A split cut into tiles of rows that each belong to one client; (owner, first row, rows) for each."""

    def __init__(self, split: Split, tile: int = TILE) -> None:
        self.rows = min(tile, len(split.y))
        counts = -(-split.sizes // self.rows)
        owner = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = split.offsets[owner] + nth * self.rows
        rows = np.minimum(self.rows, split.offsets[owner + 1] - first)
        self.owner, self.first, self.count = (a.astype(np.int32) for a in (owner, first, rows))


def score_tiles(
    sim: Simulation,
    params: PyTree,
    x: Array,
    y: Array,
    outputs: Int[Array, "clients"] | None,
    tiles: Tiles,
    clients: int,
) -> Scores:
    """Sums of loss and score, and counts, per client. params: leaves (clients, ...); outputs: see `Batch`."""

    def one(seen: tuple[PyTree, Array, Array, Array | None], owner: Array, first: Array, count: Array) -> Scores:
        params, x, y, outputs = seen
        # A slice near the end is moved back to fit; the weights then select the rows that were meant.
        begin = jnp.minimum(first, y.shape[0] - tiles.rows)
        position = begin + jnp.arange(tiles.rows)
        weight = ((position >= first) & (position < first + count)).astype(jnp.result_type(float))
        part = Batch(
            jax.lax.dynamic_slice_in_dim(x, begin, tiles.rows),
            jax.lax.dynamic_slice_in_dim(y, begin, tiles.rows),
            weight,
            None if outputs is None else outputs[owner],
        )
        return sim.objective.scores(tree.gather(params, owner), part)

    def mapped(seen: PyTree, *part: Array | np.ndarray) -> Scores:
        return map_blocks(lambda *row: one(seen, *row), 1, *part)

    seen = (sim.devices.kept_everywhere(params), x, y, outputs)
    sums = sim.devices.map(mapped, seen, tiles.owner, tiles.first, tiles.count)
    return jax.tree.map(lambda a: jnp.zeros(clients, a.dtype).at[tiles.owner].add(a), sums)


class Evaluator:
    """Evaluates a simulation's named models on all clients; compiled once per choice of names and splits."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self._compiled: dict[tuple[tuple[str, ...], tuple[str, ...]], Callable[..., PyTree]] = {}

    @cached_property
    def _splits(self) -> dict[str, tuple[Arrays, Tiles]]:
        return {}

    def _split(self, name: str) -> tuple[Arrays, Tiles]:
        if name not in self._splits:
            split = self.simulation.data.split(name)
            if len(split.y) == 0:
                raise DataError(f"{self.simulation.data.name}: the {name} split is empty, nothing to evaluate on")
            self._splits[name] = (self.simulation.devices.place(to_device(split)), Tiles(split))
        return self._splits[name]

    def _check(self, names: Sequence[str]) -> None:
        algorithm = self.simulation.algorithm
        for name in names:
            if name not in algorithm.model_names:
                raise unknown(f"model of {algorithm.name}", name, algorithm.model_names)

    def client_params(self, state: State, names: Sequence[str]) -> dict[str, PyTree]:
        """The named models of all clients, leaves (N, ...); each is made from training data only."""
        self._check(names)
        return self._models(state, self._split("train")[0], tuple(names))

    @cached_property
    def _models(self) -> Callable[[State, Arrays, tuple[str, ...]], dict[str, PyTree]]:
        return jax.jit(self._make_models, static_argnums=2, out_shardings=self.simulation.devices.everywhere)

    def _make_models(self, state: State, own: Arrays, names: tuple[str, ...]) -> dict[str, PyTree]:
        sim, algorithm = self.simulation, self.simulation.algorithm

        def one(seen: tuple[State, Arrays], client_id: Array, private: PyTree) -> dict[str, PyTree]:
            state, own = seen
            models = algorithm.models(
                algorithm.view(state.shared, client_id),
                private,
                sim.client(own, client_id, state.round),
                stream(state.seed, "local", state.round, client_id),
            )
            return {name: models[name] for name in names}

        ids = jnp.arange(sim.data.num_clients)
        # A method that trains on pooled data has one private state, and every client reads it.
        rows = ids if sim.training is sim.data else jnp.zeros_like(ids)
        return sim.map(one, (replace(state, private=None), own), ids, tree.gather(state.private, rows))

    def __call__(
        self, state: State, names: Sequence[str] | None = None, splits: Sequence[str] = ("test",)
    ) -> list[ClientScores]:
        """Scores of every client for each named model (all by default) on each split."""
        chosen = tuple(names or self.simulation.algorithm.model_names)
        self._check(chosen)
        data = {split: self._split(split) for split in splits}
        key = (chosen, tuple(splits))
        if key not in self._compiled:
            scorer = self._scorer(chosen, {s: t for s, (_, t) in data.items()})
            self._compiled[key] = jax.jit(scorer, out_shardings=self.simulation.devices.everywhere)
        compiled = self._compiled[key]
        sums = compiled(state, self._split("train")[0], {s: (a.x, a.y, a.outputs) for s, (a, _) in data.items()})
        results: list[ClientScores] = []
        for name in chosen:
            for split in splits:
                loss, score, count = (np.asarray(v, np.float64) for v in sums[name][split])
                with np.errstate(invalid="ignore", divide="ignore"):
                    results.append(ClientScores(name, split, loss / count, score / count, count.astype(np.int64)))
        return results

    def _scorer(self, names: tuple[str, ...], tiles: dict[str, Tiles]) -> Callable[..., PyTree]:
        sim = self.simulation

        def scorer(state: State, train: Arrays, flat: dict[str, tuple[Array, Array, Array | None]]) -> PyTree:
            params = self._make_models(state, train, names)
            return {
                name: {
                    split: score_tiles(sim, params[name], *flat[split], tiles[split], sim.data.num_clients)
                    for split in tiles
                }
                for name in names
            }

        return scorer
