"""Build graphs from pairs of clients, and enumerate pairs."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from idiolect.core.errors import ConfigError, require
from idiolect.graphs.graph import Graph

LARGEST = 2**26  # the most entries of a graph: about 1 GB

Clients = Int[np.ndarray, "pairs"]


def of_pairs(
    low: Any, high: Any, weights: Any, num_clients: int, *, hub: Any = None, connected: bool = False
) -> Graph:
    """The graph of distinct pairs (low[i], high[i]); raises `ConfigError` if there are too many."""
    weights = np.broadcast_to(np.asarray(weights, np.float64), np.shape(low))
    require(
        2 * len(weights) <= LARGEST,
        f"graph: {len(weights)} edges are too many to keep; use star, ring, nearest or random with a low density",
    )
    square = (num_clients, num_clients)
    half = sp.coo_array((weights, (low, high)), shape=square)
    csr = sp.csr_array(half + half.T)
    csr.eliminate_zeros()
    return of_matrix(csr, hub=hub, connected=connected)


def of_matrix(csr: sp.csr_array, *, hub: Any = None, connected: bool = False) -> Graph:
    """The graph of a CSR matrix without zeros or duplicates."""
    csr.sort_indices()
    offsets, neighbours = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
    hub = None if hub is None else np.array(hub, np.float64)
    graph = Graph(offsets, neighbours, np.array(csr.data, np.float64), hub)
    if connected and (problem := graph.disconnected()):
        raise ConfigError(f"graph: {problem}")
    return graph


def all_pairs(num_clients: int) -> tuple[Clients, Clients]:
    """All pairs (k, l) with k < l, row by row."""
    pairs = num_clients * (num_clients - 1)
    require(
        pairs <= LARGEST,
        f"graph: all pairs of {num_clients} clients are {pairs // 2} edges, too many to keep; use star, whose server "
        "relates all, or nearest, ring or random",
    )
    low, high = np.triu_indices(num_clients, 1)
    return low, high


def pairs_at(place: Clients, num_clients: int) -> tuple[Clients, Clients]:
    """The pairs at these positions of `all_pairs`, computed without the whole list."""
    ends = np.cumsum(np.arange(num_clients - 1, 0, -1))  # where each row's pairs end
    low = np.searchsorted(ends, place, side="right")
    return low, place - ends[low] + num_clients


def check_weight(weight: float) -> None:
    """Refuse a weight that is not a number > 0."""
    require(bool(np.isfinite(weight)) and weight > 0, f"graph: weight = {weight!r} must be a finite number > 0")
