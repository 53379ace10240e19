"""Build graphs from pairs of clients, a matrix, a list of edges, or a networkx graph."""

from collections.abc import Hashable, Iterable, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int, Num

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


Edge = tuple[int, int, float]


def from_scipy(
    matrix: Any,
    num_clients: int | None = None,
    *,
    hub: Float[np.ndarray, "clients"] | None = None,
    connected: bool = False,
) -> Graph:
    """Build the graph of a scipy sparse matrix of weights, (N, N), symmetric with a zero diagonal.

    Asymmetries up to rounding are averaged.

    Args:
        num_clients: The expected N.
        hub: Weights to an extra vertex without data, see `Graph`.
        connected: Raise `ConfigError` if the graph is disconnected.

    Raises:
        ConfigError: If the matrix is not symmetric, has another shape or other values than weights.
    """
    require(sp.issparse(matrix), f"graph: from_scipy takes a scipy sparse matrix, not {type(matrix).__name__}")
    shape = tuple(matrix.shape)
    require(len(shape) == 2 and shape[0] == shape[1], f"graph: the matrix must be square, its shape is {shape}")
    same_number = num_clients is None or shape[0] == num_clients
    require(same_number, f"graph: the matrix has {shape[0]} clients, the federation {num_clients}")
    require(matrix.dtype.kind in "biuf", f"graph: the weights must be numbers, they are {matrix.dtype}")
    csr = sp.csr_array(matrix, dtype=np.float64, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    return of_matrix(_without_rounding(csr), hub=hub, connected=connected)


def from_dense(
    matrix: Num[np.ndarray, "..."] | Sequence[Sequence[float]],
    num_clients: int | None = None,
    *,
    hub: Float[np.ndarray, "clients"] | None = None,
    connected: bool = False,
) -> Graph:
    """Build the graph of an (N, N) matrix of weights; arguments as in `from_scipy`."""
    dense = numbers(matrix, "the matrix must be of numbers").astype(np.float64)
    require(dense.ndim == 2, f"graph: the matrix must be square, its shape is {dense.shape}")
    return from_scipy(sp.csr_array(dense), num_clients, hub=hub, connected=connected)


def from_edges(
    edges: Iterable[Edge],
    num_clients: int,
    *,
    hub: Float[np.ndarray, "clients"] | None = None,
    connected: bool = False,
) -> Graph:
    """Build the graph of edges (k, l, a_kl) between clients 0..num_clients - 1, each given once, in either direction.

    Raises:
        ConfigError: On a self-loop, a repeated edge and a client that does not exist.
    """
    num_clients, table = number_of(num_clients), _edges(edges)
    ends, weights = table[:, :2].astype(np.int64), table[:, 2]
    for client in ends[ends[:, 0] == ends[:, 1], 0][:1]:
        raise ConfigError(f"graph: an edge relates client {client} to itself; leave it out")
    outside = (ends < 0) | (ends >= num_clients)
    if outside.any():
        raise ConfigError(f"graph: there is no client {ends[outside][0]}; clients are 0..{num_clients - 1}")
    low, high = np.sort(ends, axis=1).T
    _, first, times = np.unique(low * num_clients + high, return_index=True, return_counts=True)
    if (times > 1).any():
        first_client, second_client = ends[first[np.argmax(times > 1)]]
        raise ConfigError(
            f"graph: the edge between clients {first_client} and {second_client} is given more than once"
        )
    return of_pairs(low, high, weights, num_clients, hub=hub, connected=connected)


def from_networkx(
    graph: Any,
    num_clients: int | None = None,
    *,
    clients: Sequence[Hashable] | None = None,
    weight: str = "weight",
    hub: Float[np.ndarray, "clients"] | None = None,
    connected: bool = False,
) -> Graph:
    """Build the graph of a networkx graph; an edge without the attribute `weight` has weight 1.

    Args:
        clients: The nodes in the order of the federation's clients; needed unless the nodes are 0..N-1.

    Raises:
        ConfigError: On another object than a graph of networkx, a directed graph or a multigraph.
    """
    if not all(hasattr(graph, name) for name in ("is_directed", "is_multigraph", "nodes", "edges")):
        raise ConfigError(
            f"graph: from_networkx takes a graph of networkx, not {kind_of(graph)}; for a list of edges use "
            "from_edges, for a matrix from_dense"
        )
    require(
        not graph.is_directed(), "graph: a directed graph; clients relate in both directions: use to_undirected()"
    )
    require(not graph.is_multigraph(), "graph: a multigraph; give each pair of clients one edge with a weight")
    nodes = range(len(graph)) if clients is None else clients
    try:
        number = {node: k for k, node in enumerate(nodes)}
    except TypeError:
        raise ConfigError(f"graph: clients must be a list of the graph's nodes, not {shortened(clients)}") from None
    require(len(number) == len(nodes), "graph: clients names a node more than once")
    unknown_nodes = [node for node in graph if node not in number]
    if unknown_nodes:
        raise ConfigError(
            f"graph: the node {unknown_nodes[0]!r} is no client; name the nodes 0..{len(graph) - 1}, or give "
            "clients=[...], the nodes in the clients' order"
        )
    count = len(number)
    same_number = num_clients is None or count == num_clients
    require(same_number, f"graph: {count} nodes, but the federation has {num_clients} clients")
    edges: list[Any] = []
    for k, m, a in graph.edges(data=weight, default=1.0):
        fits = isinstance(a, Real) and not isinstance(a, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        require(fits, f"graph: the edge ({k!r}, {m!r}) has {weight} = {shortened(a)}, which is not a number")
        edges.append((number[k], number[m], a))
    return from_edges(edges, count, hub=hub, connected=connected)


def _edges(edges: Any) -> Float[np.ndarray, "edges 3"]:
    """(client, client, weight) of each edge. Raises `ConfigError` naming the first that is none."""
    example = "write (client, client, weight) with the clients' numbers, such as (0, 1, 1.0)"
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ConfigError(f"graph: edges must be a list, not {kind_of(edges)}; {example}")
    given: list[Any] = list(cast(Iterable[Any], edges))
    if not given:
        return np.zeros((0, 3))
    try:
        table = np.asarray(given)
    except (ValueError, TypeError):
        table = np.array(None)
    fits = table.dtype.kind in "iuf" and table.shape == (len(given), 3)
    if not fits or not ((np.abs(table[:, :2]) < 2**53) & (table[:, :2] == np.floor(table[:, :2]))).all():
        wrong = next((edge for edge in given if not _is_edge(edge)), given[0])
        raise ConfigError(f"graph: the edge {shortened(wrong)} is none; {example}")
    return table.astype(np.float64)


def _is_edge(edge: Any) -> bool:
    try:
        low, high, weight = edge
    except (TypeError, ValueError):
        return False
    numeric = all(isinstance(part, Real) for part in (low, high, weight))
    return numeric and all(abs(end) < 2**53 and end == int(end) for end in (low, high))


def _without_rounding(matrix: sp.csr_array) -> sp.csr_array:
    gap = abs(matrix - matrix.T)
    scale = abs(matrix).max() if matrix.nnz else 0.0
    if gap.nnz and gap.max() <= 1e-12 * scale:
        return sp.csr_array((matrix + matrix.T) / 2)
    return matrix
