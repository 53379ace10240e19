"""Four things that a method may add for the readers of its results. Training does not need them.

A method has one by defining the function; nothing is inherited or registered. Reports ask through `remarks_of`,
`diagnostics_of`, `relations_of` and `client_graph_of`, which answer for methods without it.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Array, Float, PyTree

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.start import Start
from idiolect.graphs import Graph


@runtime_checkable
class Remarks(Protocol):
    """A method with remarks that readers of its results need."""

    def remarks(self, params: PyTree) -> tuple[str, ...]:
        """Sentences about this method with this model; `params` may be shapes."""
        ...


@runtime_checkable
class Diagnosed(Protocol):
    """A method with numbers on its progress, such as MOCHA's duality gap."""

    def diagnostics(self, shared: PyTree) -> dict[str, Float[Array, ""]]:
        """Scalars by name. They are recorded at every evaluation."""
        ...


@runtime_checkable
class Related(Protocol):
    """A method that learns how clients are related."""

    def relations(self, shared: PyTree) -> Float[Array, "clients clients"] | None:
        """The learned relation matrix, symmetric; None if this run's settings learn none."""
        ...


@runtime_checkable
class OnGraph(Protocol):
    """A method that relates clients by a graph, also where a server does the mixing."""

    def graph_used(self, start: Start) -> Graph | None:
        """The graph of the clients."""
        ...


def remarks_of(algorithm: Algorithm, params: PyTree) -> tuple[str, ...]:
    """The method's remarks with this model; none for most methods."""
    return algorithm.remarks(params) if isinstance(algorithm, Remarks) else ()


def diagnostics_of(algorithm: Algorithm, shared: PyTree) -> dict[str, float]:
    """The method's diagnostics of a server state, by name; none for most methods."""
    values = algorithm.diagnostics(shared) if isinstance(algorithm, Diagnosed) else {}
    return {name: float(value) for name, value in values.items()}


def relations_of(algorithm: Algorithm, shared: PyTree) -> Float[Array, "clients clients"] | None:
    """The relation matrix that the method has learned; None for most methods."""
    return algorithm.relations(shared) if isinstance(algorithm, Related) else None


def client_graph_of(algorithm: Algorithm, start: Start) -> Graph | None:
    """The graph by which the method relates clients: its own, or that of its neighbours; None if it has none."""
    return algorithm.graph_used(start) if isinstance(algorithm, OnGraph) else algorithm.peers(start)
