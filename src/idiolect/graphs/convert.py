"""Graphs from a matrix, a list of edges, or a networkx graph."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Num

from idiolect.core.errors import ConfigError, require
from idiolect.graphs.graph import Graph
from idiolect.graphs.pairs import of_matrix, of_pairs

Edge = tuple[int, int, float]


def from_scipy(
    matrix: Any,
    num_clients: int | None = None,
    *,
    hub: Float[np.ndarray, "clients"] | None = None,
    connected: bool = False,
) -> Graph:
    """The graph of a scipy sparse matrix of weights, (N, N), symmetric with a zero diagonal.

    num_clients: the expected N. hub: weights to an extra vertex without data, see `Graph`. connected: raise
    `ConfigError` if the graph is disconnected. Asymmetries up to rounding are averaged; larger ones raise
    `ConfigError`.
    """
    require(sp.issparse(matrix), f"graph: from_scipy takes a scipy sparse matrix, not {type(matrix).__name__}")
    shape = tuple(matrix.shape)
    require(len(shape) == 2 and shape[0] == shape[1], f"graph: the matrix must be square, its shape is {shape}")
    same_number = num_clients is None or shape[0] == num_clients
    require(same_number, f"graph: the matrix has {shape[0]} clients, the federation {num_clients}")
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
    """The graph of an (N, N) matrix of weights; arguments as in `from_scipy`."""
    dense = np.asarray(matrix, np.float64)
    require(dense.ndim == 2, f"graph: the matrix must be square, its shape is {dense.shape}")
    return from_scipy(sp.csr_array(dense), num_clients, hub=hub, connected=connected)


def from_edges(
    edges: Iterable[Edge],
    num_clients: int,
    *,
    hub: Float[np.ndarray, "clients"] | None = None,
    connected: bool = False,
) -> Graph:
    """The graph of edges (k, l, a_kl) between clients 0..num_clients - 1, each given once, in either direction.

    Raises `ConfigError` on a self-loop, a repeated edge and a client that does not exist.
    """
    edge_list = list(edges)
    ends = np.array([(k, m) for k, m, _ in edge_list], np.int64).reshape(-1, 2)
    weights = np.array([a for _, _, a in edge_list], np.float64)
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
    """The graph of a networkx graph; an edge without the attribute `weight` has weight 1.

    clients: the nodes in the order of the federation's clients; needed unless the nodes are 0..N-1. Raises
    `ConfigError` on a directed graph or a multigraph.
    """
    require(
        not graph.is_directed(), "graph: a directed graph; clients relate in both directions: use to_undirected()"
    )
    require(not graph.is_multigraph(), "graph: a multigraph; give each pair of clients one edge with a weight")
    nodes = range(len(graph)) if clients is None else clients
    number = {node: k for k, node in enumerate(nodes)}
    unknown_nodes = [node for node in graph if node not in number]
    if unknown_nodes:
        raise ConfigError(
            f"graph: the node {unknown_nodes[0]!r} is no client; name the nodes 0..{len(graph) - 1}, or give "
            "clients=[...], the nodes in the clients' order"
        )
    count = len(number)
    same_number = num_clients is None or count == num_clients
    require(same_number, f"graph: {count} nodes, but the federation has {num_clients} clients")
    edges = [(number[k], number[m], float(a)) for k, m, a in graph.edges(data=weight, default=1.0)]
    return from_edges(edges, count, hub=hub, connected=connected)


def _without_rounding(matrix: sp.csr_array) -> sp.csr_array:
    gap = abs(matrix - matrix.T)
    scale = abs(matrix).max() if matrix.nnz else 0.0
    if gap.nnz and gap.max() <= 1e-12 * scale:
        return sp.csr_array((matrix + matrix.T) / 2)
    return matrix
