"""Evaluation of named models on splits: every client's loss and metrics, and the metrics over all samples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PyTree

from idiolect.client.predictor import Models, unshared
from idiolect.client.samples import Samples, Tiles, tiles_of, to_device
from idiolect.core import tree
from idiolect.core.errors import ConfigError, DataError, require, unknown
from idiolect.core.random import permuted
from idiolect.metrics.base import Metric, Quotient
from idiolect.metrics.registry import measured
from idiolect.models.client_model import ClientModel
from idiolect.runtime.members import Arguments, Compiled, Member, alone
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import State
from idiolect.runtime.scoring import Each, Pool, Values, divided, finished
from idiolect.runtime.simulate import Simulation

PORTION_BYTES = 2**28  # of models made at a time, if private states are in a file


@dataclass(frozen=True)
class ClientScores:
    """One named model on one split: a value for every client, in the federation's order.

    count: number of samples; a client without samples has NaN loss and values and does not enter any summary. loss:
    mean loss without the L2 term. values: metric name -> value of each client, NaN if it has none. pooled: metric
    name -> value over all clients' samples, NaN if there is none.
    """

    model: str
    split: str
    count: Int[np.ndarray, "clients"]
    loss: Float[np.ndarray, "clients"]
    values: Mapping[str, Float[np.ndarray, "clients"]]
    pooled: Mapping[str, float]


Measured = tuple[Values, dict[str, Quotient]]
"""Each client's values, and those over all samples."""


def client_scores(
    measured: Mapping[str, Mapping[str, Measured]], metrics: Sequence[Metric], scale: float = 1.0
) -> list[ClientScores]:
    """Convert what was measured to double precision: one `ClientScores` for each named model and split.

    scale: what the labels were divided by; metrics are in the units before that, the loss is as it was trained.
    """
    return [
        _scores(name, split, each, pooled, metrics, scale)
        for name, by_split in measured.items()
        for split, (each, pooled) in by_split.items()
    ]


def _scores(
    model: str, split: str, each: Values, pooled: Mapping[str, Quotient], metrics: Sequence[Metric], scale: float
) -> ClientScores:
    count, no_samples = np.asarray(each.count, np.int64), (0, 0)
    unit = {metric.name: scale**metric.degree for metric in metrics}
    values = {name: divided(each.values[name]) * unit[name] for name in unit}
    over_all_samples = {name: float(divided(pooled.get(name, no_samples)) * unit[name]) for name in unit}
    return ClientScores(model, split, count, divided((each.loss, each.count)), values, over_all_samples)


def evaluated_clients(population: int, clients: int | None) -> Int[np.ndarray, "chosen"]:
    """The numbers of the evaluated clients, ascending: all, or `clients` of them drawn at random.

    The draw depends only on the two numbers, so every method and every seed is evaluated on the same clients.
    """
    require(clients is None or clients >= 1, f"eval_clients = {clients} must be at least 1")
    message = f"eval_clients = {clients} is more than the {population} clients; use at most {population}"
    require(clients is None or clients <= population, message)
    if clients in (None, population):
        return np.arange(population, dtype=np.int32)
    drawn = permuted(jax.random.key(0), jnp.arange(clients), population)
    return np.sort(np.asarray(drawn)).astype(np.int32)


class Evaluator:
    """Evaluates a simulation's named models.

    clients: how many are evaluated, see `evaluated_clients`; all by default. metrics: the metrics to measure, see
    `metrics.registry.measured`; models are compared by the first one.
    """

    def __init__(
        self, simulation: Simulation, clients: int | None = None, metrics: Sequence[Metric] | None = None
    ) -> None:
        self.simulation = simulation
        self.metrics = tuple(measured(simulation.data.task) if metrics is None else metrics)
        self.ids = evaluated_clients(simulation.data.num_clients, clients)
        self._splits: dict[str, tuple[Samples, Tiles]] = {}
        self._compiled: dict[tuple[str, ...], Compiled] = {}  # by the splits that are scored

    def _split(self, name: str) -> tuple[Samples, Tiles]:
        if name not in self._splits:
            split = self.simulation.data.split(name)
            if split.count == 0:
                raise DataError(f"{self.simulation.data.name}: the {name} split is empty, nothing to evaluate on")
            tiles = tiles_of(split, self.simulation.tile, self.ids)
            self._splits[name] = (self.simulation.devices.share(to_device(split)), tiles)
        return self._splits[name]

    def _check(self, names: Sequence[str]) -> None:
        offered = self.simulation.offered
        for name in names:
            if name not in offered:
                raise unknown(f"model of {self.simulation.algorithm.name}", name, offered)

    def _portion(self, state: State, names: Sequence[str], clients: int) -> int:
        """How many of `clients` clients to evaluate at a time: all, or as many as `PORTION_BYTES` of models allow."""
        if not isinstance(state.private, PrivateRows):
            return clients
        model = sum(leaf.nbytes for leaf in jax.tree.leaves(self.simulation.params))
        return int(np.clip(PORTION_BYTES // max(model * len(names), 1), 1, clients))

    def _portions(
        self, state: State, clients: Int[np.ndarray, "clients"], portion: int
    ) -> Iterator[tuple[int, Int[np.ndarray, "portion"], PyTree]]:
        """Yield (index of the first, client numbers, private states) of each portion; the last one is padded."""
        for begin in range(0, len(clients), portion):
            ids = clients[np.minimum(np.arange(begin, begin + portion), len(clients) - 1)]
            yield begin, ids, self.private_of(state, ids)

    def private_of(self, state: State, ids: Int[np.ndarray, "n"]) -> PyTree:
        """The private states of some clients, leaves (n, ...)."""
        sim = self.simulation
        # A method that trains on pooled data has one private state, and every client reads it.
        rows = ids if sim.training is sim.data else np.zeros_like(ids)
        if isinstance(state.private, PrivateRows):
            return sim.devices.place(state.private.read(rows))
        everyone = len(ids) == sim.training.num_clients and (rows == np.arange(len(ids))).all()
        return state.private if everyone else tree.gather(state.private, rows)

    def client_params(
        self, state: State, names: Sequence[str], ids: Int[np.ndarray, "n"] | None = None
    ) -> dict[str, PyTree]:
        """As `client_models`, but without `Shared`: a shared model as every client has it."""
        return unshared(self.client_models(state, names, ids))

    def client_models(self, state: State, names: Sequence[str], ids: Int[np.ndarray, "n"] | None = None) -> Models:
        """Make named models of the clients `ids` (default: evaluated) from training data only, leaves (n, ...)."""
        self._check(names)
        numbers = self.ids if ids is None else ids.astype(np.int32)
        clients, core = len(numbers), replace(state, private=None)
        models: list[Models] = []
        for _, portion, private in self._portions(state, numbers, self._portion(state, names, clients)):
            compiled, arguments = self._of(portion)
            models.append(compiled.models(arguments, (core, private), None, tuple(names)))
        if len(models) == 1:
            return models[0]
        return jax.tree.map(lambda *parts: np.concatenate([np.asarray(p) for p in parts])[:clients], *models)

    def _of(
        self, ids: Int[np.ndarray, "n"], scored: Mapping[str, tuple[Samples, Tiles]] | None = None
    ) -> tuple[Compiled, Arguments]:
        """The compiled evaluation of some clients, and its arguments."""
        member = Member(self.simulation.placed, None, self._split("train")[0], ids, dict(scored or {}))
        splits = tuple(member.scored)
        if splits not in self._compiled:
            self._compiled[splits] = alone(member, self.metrics)[0]
        compiled = self._compiled[splits]
        return compiled, compiled.arguments(member)

    def __call__(
        self, state: State, names: Sequence[str] | None = None, splits: Sequence[str] = ("test",)
    ) -> list[ClientScores]:
        """Score every evaluated client with each named model (all by default) on each split."""
        model_names = tuple(names or self.simulation.offered)
        self._check(model_names)
        data, core = {split: self._split(split) for split in splits}, replace(state, private=None)
        clients, devices = len(self.ids), len(self.simulation.devices.apart)
        each = -(-self._portion(state, model_names, clients) // devices)  # clients of one device at a time
        edges = [min(edge, clients) for edge in range(0, clients + each * devices, each)]
        lengths = {split: tiles.most(edges) for split, (_, tiles) in data.items()}
        parts: list[PyTree] = []
        for begin, ids, private in self._portions(state, self.ids, each * devices):
            bounds = edges[begin // each : begin // each + devices + 1]
            scored = {split: (held, tiles.parts(bounds, lengths[split])) for split, (held, tiles) in data.items()}
            compiled, arguments = self._of(ids, scored)
            part = compiled.score(arguments, (core, private), None, model_names, tuple(splits))
            parts.append(jax.tree.map(np.asarray, part))
        found = parts[0] if len(parts) == 1 else jax.tree.map(lambda *rows: np.concatenate(rows), *parts)
        # Rows beyond the number of clients are the padding of the last portion.
        measured = measured_of(self.metrics, found, model_names, splits, clients)
        return client_scores(measured, self.metrics, self.simulation.data.label_scale)


def measured_of(
    metrics: Sequence[Metric],
    found: Mapping[str, Mapping[str, tuple[Each, Pool]]],
    names: Sequence[str],
    splits: Sequence[str],
    clients: int,
) -> dict[str, dict[str, Measured]]:
    """Finish what devices returned for the first `clients` clients: by model and split, in the order asked for.

    JAX sorts the keys of what it returns.
    """

    def of(each: Each, pool: Pool) -> Measured:
        values, pooled = finished(metrics, each, pool)
        return values.first(clients), pooled

    return {name: {split: of(*found[name][split]) for split in splits} for name in names}


def client_model(evaluator: Evaluator, state: State, model: str, client: str | int) -> ClientModel:
    """Build one client's named model. client: its name or number. Raises `ConfigError` for an unknown one."""
    simulation = evaluator.simulation
    data = simulation.data
    if model not in simulation.offered:
        raise unknown("model", model, simulation.offered)
    if isinstance(client, str):
        if client not in data.clients:
            raise unknown("client", client, data.clients)
        client = data.clients.index(client)
    elif not 0 <= client < data.num_clients:
        raise ConfigError(f"client {client} is not one of 0..{data.num_clients - 1}")
    params = tree.gather(evaluator.client_params(state, [model], np.array([client]))[model], 0)
    return ClientModel(
        simulation.objective.model(params),
        data.task,
        data.feature_shape,
        data.classes_of(client),
        data.schema,
        data.target,
        {"model": model, "client": data.clients[client], "method": simulation.algorithm.name},
    )
