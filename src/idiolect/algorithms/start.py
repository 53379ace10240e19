"""What a server knows of a federation and of the model before the first round."""

from collections.abc import Hashable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Int, PyTree

from idiolect.data.federated import FederatedData, TaskKind
from idiolect.graphs import Graph, graph_for


class Graphs:
    """The graphs that a method has asked for on one federation, each built once."""

    def __init__(self, data: FederatedData) -> None:
        self._data = data
        self._built: dict[Graph | str, Graph] = {}

    def __call__(self, graph: Graph | str) -> Graph:
        """See `Start.graph`."""
        if graph not in self._built:
            self._built[graph] = graph_for(graph, self._data)
        return self._built[graph]

    @property
    def contents(self) -> Hashable:
        """Equal for equal graphs, by their arrays."""
        arrays = ((g.offsets, g.neighbours, g.weights, g.hub) for g in self._built.values())
        return tuple(tuple(None if a is None else (a.dtype.str, a.tobytes()) for a in graph) for graph in arrays)


class Start(eqx.Module):
    """What a server knows before the first round: the model, and of the federation what its clients announce.

    params: the initial model. sizes: (N,) training samples of each client. Inside a compiled program both may be
    traced; where the method is only checked, params are shapes. All else is known at any time:
    clients: N. capacity: training samples of the largest client. task, num_outputs, feature_shape: see
    `FederatedData`.
    """

    params: PyTree
    sizes: Int[Array | np.ndarray, "clients"]
    clients: int = eqx.field(static=True)
    capacity: int = eqx.field(static=True)
    task: TaskKind = eqx.field(static=True)
    num_outputs: int = eqx.field(static=True)
    feature_shape: tuple[int, ...] = eqx.field(static=True)
    graphs: Graphs = eqx.field(static=True, repr=False)

    def graph(self, graph: Graph | str) -> Graph:
        """The graph of these clients that has this name, or the user's own, checked; see `graphs.graph_for`.

        The first call warns (`GraphWarning`) of a graph that falls apart. It is no array of a compiled program: keep
        what the rounds need of it, `graphs.mixing.links`, in the server's state.
        """
        return self.graphs(graph)


def start_of(data: FederatedData, params: PyTree) -> Start:
    """The start of a run on a federation: its training split alone is looked at."""
    sizes = data.train.sizes
    return Start(
        params,
        sizes,
        clients=data.num_clients,
        capacity=int(sizes.max()),
        task=data.task,
        num_outputs=data.num_outputs,
        feature_shape=data.feature_shape,
        graphs=Graphs(data),
    )
