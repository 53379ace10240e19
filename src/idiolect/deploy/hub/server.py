"""The hub's side of a method: its shared state, what each site sees of it, and how answers are aggregated.

The hub knows names, counts and shapes of the federation's data, and no sample.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree, Shaped

from idiolect.algorithms.base import Algorithm, diagnostics_of
from idiolect.algorithms.registry import ALGORITHMS
from idiolect.client.samples import to_device
from idiolect.core import tree
from idiolect.core.errors import ConfigError, DataError, DivergedError
from idiolect.data.federated import SPLITS, FederatedData, GeneratedSplit, Maker
from idiolect.data.modalities import Modalities
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.deploy.hub.calls import most_of
from idiolect.deploy.hub.guard import capped
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Vectors
from idiolect.deploy.trees import named, restored, shapes_by_name
from idiolect.graphs.registry import GRAPHS
from idiolect.models.registry import complete_spec
from idiolect.runtime.members import Arguments, Compiled, Member, alone
from idiolect.runtime.simulate import Simulation
from idiolect.runtime.traffic import shapes_of_a_round
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Cell, Method

LARGEST = 1e15
"""The largest absolute value in a shared state: products of larger ones overflow in the next round."""
NOTE = "trained at real sites: scores are sums that the sites sent, and their samples were not compared for leaks"


class Unseen(Maker):
    """Samples that are elsewhere: only their shapes are asked for."""

    capacity: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    is_class: bool = eqx.field(static=True)

    def samples(self, client_id: Int[Array, ""]) -> tuple[Shaped[Array, "capacity ..."], Shaped[Array, "capacity"]]:
        """Zeros: nothing computes with them."""
        del client_id
        kind = jnp.int32 if self.is_class else jnp.float32
        return jnp.zeros((self.capacity, *self.shape)), jnp.zeros(self.capacity, kind)


def unseen_data(kind: Kind, counts: Mapping[str, Mapping[str, int]]) -> FederatedData:
    """The federation of sites with these numbers of samples, in their order. counts: site -> split -> samples.

    Raises `DataError` if a site has no training sample, or none has test samples.
    """
    for site, of in counts.items():
        if of.get("train", 0) < 1:
            raise DataError(f"site '{site}' has no training samples")
    shape, is_class = tuple(kind.feature_shape), kind.task == "classification"

    def split(name: str) -> GeneratedSplit:
        sizes = np.array([of.get(name, 0) for of in counts.values()], np.int64)
        return GeneratedSplit(Unseen(max(int(sizes.max()), 1), shape, is_class), sizes)

    modalities = None
    if kind.modalities is not None:
        modalities = Modalities(tuple(m.name for m in kind.modalities), tuple(m.shape for m in kind.modalities))
    schema = None if kind.schema is None else Schema.from_dict(kind.schema)
    target = None if kind.target is None else Target(name=kind.name, mean=kind.target[0], scale=kind.target[1])
    train, validation, test = (split(name) for name in SPLITS)
    return FederatedData(
        name=kind.name,
        train=train,
        validation=validation,
        test=test,
        clients=tuple(counts),
        task=kind.task,
        classes=tuple(kind.classes),
        notes=(NOTE,),
        provenance={"source": "sites", "kind": kind.digest},
        modalities=modalities,
        schema=schema,
        target=target,
    )


class HubServer:
    """One run at a hub.

    data: the federation as it knows it, see `unseen_data`; cap: the largest share of the rows that counts for one
    site, see `guard.capped`; 1: no cap.
    """

    def __init__(self, cell: Cell, method: Method, seed: int, data: FederatedData, cap: float = 1.0) -> None:
        check_runs_at_sites(cell, method)
        bench = Workbench(data=data)
        problem = bench.problem(cell, data, seed)
        self.simulation: Simulation = bench.simulation(cell, method, problem)
        self.algorithm = self.simulation.algorithm
        self.claimed = dict(zip(data.clients, data.train.sizes.tolist(), strict=True))
        self.rows = capped(self.claimed, cap)
        self.seed, self.key = seed, jax.random.key(seed)
        self.params = problem.params
        self.offered = self.simulation.offered
        self.capacity = self.simulation.sampling.capacity(self.key, cell.rounds)
        graph = self.algorithm.peers(self.simulation.start)
        self.neighbours = None if graph is None else [dict(_edges(graph, i)) for i in range(data.num_clients)]

    @cached_property
    def samples(self) -> int:
        """The training rows of all sites, as they count."""
        return int(np.round([*self.rows.values()]).sum())

    def first(self) -> PyTree:
        """The shared state before the first round."""
        return jax.jit(lambda: self.simulation.first(self.key, self.params, jnp.arange(0))[0])()

    def alike(self, other: "HubServer") -> bool:
        """Whether the shared state and a site's private one have the other's shapes."""
        return self._shapes == other._shapes

    @cached_property
    def _shapes(self) -> tuple[Any, ...]:
        made = jax.eval_shape(lambda: self.simulation.first(self.key, self.params, jnp.arange(1)))
        return jax.tree.structure(made), [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(made)]

    def restore(self, vectors: Vectors) -> PyTree:
        """The shared state of a checkpoint. Raises `DataError` if it does not fit."""
        return restored(vectors, jax.eval_shape(self.first), "the checkpoint")

    def cohort(self, round: int) -> list[int]:
        """The client numbers of a round's cohort, as a simulation draws them."""
        ids, present = self.simulation.sampling.draw(self.key, round, self.capacity)
        return [int(i) for i, real in zip(np.asarray(ids), np.asarray(present), strict=True) if real]

    def views(self, shared: PyTree, clients: Sequence[int]) -> dict[int, dict[str, Any]]:
        """What each client receives, as vectors `view/...`; made once where all receive the same."""
        if not self._is_own_row:
            alike = named({"view": self._view(shared, 0)})
            return dict.fromkeys(clients, alike)
        return {client: named({"view": self._view(shared, client)}) for client in clients}

    def _view(self, shared: PyTree, client: int) -> PyTree:
        compiled, arguments = self._compiled
        return compiled.view(arguments, shared, jnp.asarray(client, jnp.int32))

    @cached_property
    def _compiled(self) -> tuple[Compiled, Arguments]:
        sim, rows = self.simulation, np.round([*self.rows.values()]).astype(np.int64)
        samples = to_device(sim.training.train)
        if {**self.rows} != self.claimed:  # only the aggregation weighs by rows; nothing reads samples here
            sizes, total = samples.sizes, samples.total
            given = jnp.asarray(rows, sizes.dtype), jnp.asarray(rows.sum(), total.dtype)
            samples = eqx.tree_at(lambda s: (s.sizes, s.total), samples, given)
        return alone(Member(sim.plan, samples))

    @cached_property
    def _is_own_row(self) -> bool:
        """Whether a view depends on the client that receives it."""
        shared = jax.eval_shape(self.first)
        return self.algorithm.reads_client(shared)

    @cached_property
    def message(self) -> PyTree:
        """The shapes of a client's message."""
        return shapes_of_a_round(self.simulation)[1]

    @property
    def view(self) -> PyTree:
        """The shapes of what a site receives in a round."""
        return shapes_of_a_round(self.simulation)[0]

    @cached_property
    def most(self) -> int:
        """The bytes that a site's answer to a round can have at most."""
        if self.neighbours is not None:
            return most_of({})
        sizes = {name: leaf.size * leaf.dtype.itemsize for name, leaf in shapes_by_name(self.message).items()}
        return most_of(sizes)

    def check(self, site: str, vectors: Vectors) -> PyTree:
        """A site's message. Raises `DataError` in one line that names it."""
        return restored(vectors, self.message, f"site '{site}'")

    def aggregate(self, shared: PyTree, cohort: Sequence[int], messages: Mapping[int, PyTree]) -> PyTree:
        """The next shared state; clients of the cohort without a message count as absent. Raises `DivergedError`."""
        rows = [*cohort, *[0] * (self.capacity - len(cohort))]
        present = jnp.asarray([client in messages and place < len(cohort) for place, client in enumerate(rows)])
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self.message)
        chosen = [messages.get(client, nothing) for client in rows]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen)
        compiled, arguments = self._compiled
        after = compiled.server_step(arguments, (shared, stacked), (jnp.asarray(rows, jnp.int32), present))
        if not bool(tree.all_finite(after)):
            message = f"{self.algorithm.name} diverged (NaN or infinity) in the aggregation; lower the learning rates"
            raise DivergedError(message, round=0, client=None, stage="aggregation")
        # A leaf may hold larger ones from the start: unused edges of a tree's bins are the largest float.
        grown = [now for old, now in zip(_largest(shared), _largest(after), strict=True) if now > max(LARGEST, old)]
        if grown:
            large = max(grown)
            message = f"the shared state of {self.algorithm.name} holds {large:.3g}, more than {LARGEST:.0e}"
            raise DivergedError(message, round=0, client=None, stage="aggregation")
        return after

    def diagnostics(self, shared: PyTree) -> dict[str, float]:
        """What the method says of itself."""
        return diagnostics_of(self.algorithm, shared)


def _largest(state: PyTree) -> list[float]:
    """The largest absolute value of each leaf; 0 of integers."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(state)]
    real = [leaf.size and jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]
    return [float(jnp.abs(leaf).max()) if is_real else 0.0 for leaf, is_real in zip(leaves, real, strict=True)]


def _edges(graph: Any, client: int) -> list[tuple[int, float]]:
    rows = slice(int(graph.offsets[client]), int(graph.offsets[client + 1]))
    return [(int(n), float(w)) for n, w in zip(graph.neighbours[rows], graph.weights[rows], strict=True)]


def check_runs_at_sites(cell: Cell, method: Method) -> None:
    """Raise `ConfigError` for what needs all samples in one place, or a simulation."""
    where = f"cell '{cell.id}':"
    if cell.stop != "last":
        raise ConfigError(f"{where} rounds = 'auto' goes with simulation, not with a hub; give rounds a number")
    if cell.rate != "method":
        raise ConfigError(f"{where} rate = {cell.rate!r} goes with simulation; give each method its own rate")
    cls = ALGORITHMS[method.name]
    if cls.training_data is not Algorithm.training_data:
        raise ConfigError(f"{method.name} pools all clients' samples, so it cannot run at sites; leave it out")
    if complete_spec(cell.model)["class_weights"] != "none":
        raise ConfigError("model.class_weights counts the labels of all clients, which no hub sees; leave it out")
    graph = str(method.spec.get("graph", ""))
    kind = GRAPHS.get(graph.partition("(")[0].strip())
    if kind is not None and kind.of_labels:
        message = f"{method.title}: graph '{graph}' is made of all clients' labels, which no hub sees"
        raise ConfigError(f"{message}; name another")
