"""Graphs by what a server may know of the clients: training sizes, labels, models."""

import numpy as np
from jaxtyping import Int, Num, Real

from idiolect.core.errors import ConfigError, require
from idiolect.core.settings import checked, whole
from idiolect.data.federated import FederatedData
from idiolect.graphs.graph import Graph
from idiolect.graphs.pairs import all_pairs, check_weight, numbers, of_pairs

DISTANCES = 2**22  # distances in memory at once


def by_size(sizes: Num[np.ndarray, "clients"], *, threshold: float = 0.0, connected: bool = False) -> Graph:
    """FedU's "Weighted": a_kl = 0 between two small clients, 0.5 between a small and a large one, else 1.

    threshold: a client with fewer training samples is small; 0 stands for the median. connected: raise `ConfigError`
    if the graph is disconnected.
    """
    sizes = numbers(sizes, "sizes must be the number of training samples of each client", 1)
    threshold = checked(float, threshold, "graph by_size: threshold")
    require(threshold >= 0, f"graph by_size: threshold = {threshold!r} must not be negative")
    small = sizes < (threshold or np.median(sizes))
    low, high = all_pairs(len(sizes))
    weights = 1 - 0.5 * (small[low].astype(float) + small[high])
    return of_pairs(low, high, weights, len(sizes), connected=connected)


def by_labels(counts: Num[np.ndarray, "clients classes"], *, full: int = 2, connected: bool = False) -> Graph:
    """FedU's "Similar": a_kl = 0, 0.5 or 1 for no, one, or at least two labels that both clients have.

    counts: each client's number of training samples of each class. full: the number of common labels from which on
    the weight is 1; with fewer it is their share of `full`. connected: raise `ConfigError` if it is disconnected.
    """
    counts = numbers(counts, "counts must be a table of numbers (clients, classes)", 2)
    full = whole("graph by_labels: full", full, least=1)
    held = (counts > 0).astype(np.float64)
    low, high = all_pairs(len(counts))
    weights = np.minimum((held @ held.T)[low, high] / full, 1.0)
    return of_pairs(low, high, weights, len(counts), connected=connected)


def nearest(
    points: Real[np.ndarray, "clients dimensions"],
    *,
    neighbours: int = 10,
    weight: float = 1.0,
    connected: bool = False,
) -> Graph:
    """k-nearest-neighbour graph: each client is joined to the `neighbours` clients nearest to it, in both directions.

    points: a vector for each client, such as its shares of the labels or its model. Ties go to the lower client
    number. connected: raise `ConfigError` if the graph is disconnected.
    """
    points = numbers(points, "points must be a table of numbers (clients, dimensions)", 2)
    count = len(points)
    neighbours = whole("graph nearest: neighbours", neighbours, least=1, most=max(count - 1, 1))
    check_weight(weight)
    require(bool(np.isfinite(points).all()), "graph nearest: the points must be finite numbers")
    pairs: list[Int[np.ndarray, _]] = []
    from scipy.spatial.distance import cdist  # here: it loads slowly, and most commands never need it

    block = max(1, DISTANCES // count)
    for start in range(0, count if count > 1 else 0, block):
        clients = np.arange(start, min(start + block, count))
        distance = cdist(points[clients], points)
        distance[np.arange(len(clients)), clients] = np.inf
        last = np.partition(distance, neighbours - 1, axis=1)[:, neighbours - 1 : neighbours]
        nearer, tied = distance < last, distance == last
        num_tied = neighbours - nearer.sum(axis=1, keepdims=True)
        row, other = (nearer | (tied & (np.cumsum(tied, axis=1) <= num_tied))).nonzero()
        pairs.append(np.minimum(clients[row], other) * count + np.maximum(clients[row], other))
    number = np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)
    return of_pairs(number // count, number % count, weight, count, connected=connected)


def label_counts(data: FederatedData) -> Int[np.ndarray, "clients classes"]:
    """Each client's number of training samples of each class; raises `ConfigError` without common classes."""
    if data.task != "classification" or data.own_labels:
        why = "each client numbers its own" if data.own_labels else f"{data.name} is a regression"
        raise ConfigError(f"a graph by labels needs classes that clients have in common, but {why}")
    classes = len(data.classes)
    cell = data.train.owners * classes + data.train.y
    return np.bincount(cell, minlength=data.num_clients * classes).reshape(data.num_clients, classes)


def label_shares(data: FederatedData) -> Real[np.ndarray, "clients classes"]:
    """Each client's share of each class among its training samples."""
    counts = label_counts(data)
    return counts / counts.sum(axis=1, keepdims=True)
