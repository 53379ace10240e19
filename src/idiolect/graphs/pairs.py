"""Build graphs from pairs of clients, and enumerate pairs."""

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Int

from idiolect.core.errors import ConfigError, kind_of, require, shortened
from idiolect.core.settings import whole
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
    if hub is not None:
        hub = numbers(hub, "the weights to the hub must be a number for each client", 1).astype(np.float64)
    graph = Graph(offsets, neighbours, np.array(csr.data, np.float64), hub)
    if connected and (problem := graph.disconnected()):
        raise ConfigError(f"graph: {problem}")
    return graph


def number_of(num_clients: Any) -> int:
    """The number of clients of a graph; raises `ConfigError` unless it is a whole number of at least 1."""
    return whole("graph: num_clients", num_clients, least=1)


def numbers(values: Any, wanted: str, dimensions: int | None = None) -> np.ndarray:
    """The values as an array of numbers. Raises `ConfigError` for text, ragged lists and other dimensions.

    wanted: what the values must be, the beginning of the message. dimensions: None stands for any number of them.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):  # lists of several lengths
        array = np.array(None)
    fits = array.dtype.kind in "biuf" and dimensions in (None, array.ndim)
    have = kind_of(values) if array.dtype.kind == "O" else f"{array.dtype} of shape {array.shape}"
    require(fits, f"graph: {wanted}, not {have}")
    return array


def all_pairs(num_clients: int) -> tuple[Clients, Clients]:
    """All pairs (k, l) with k < l, row by row."""
    num_clients = number_of(num_clients)
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
    number = isinstance(weight, Real) and not isinstance(weight, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    valid = number and bool(np.isfinite(weight)) and weight > 0
    require(valid, f"graph: weight = {shortened(weight)} must be a finite number > 0")
