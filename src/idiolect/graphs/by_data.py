"""Graphs from what a server may know of the clients: their training sizes, their labels, their models."""

import numpy as np
from jaxtyping import Int, Num, Real
from scipy.spatial.distance import cdist

from idiolect.core.errors import ConfigError, require
from idiolect.data.federated import FederatedData
from idiolect.graphs.graph import Graph
from idiolect.graphs.pairs import all_pairs, check_weight, of_pairs

ROWS = 2**22  # distances kept at once


def by_size(sizes: Num[np.ndarray, "clients"], *, threshold: float = 0.0, connected: bool = False) -> Graph:
    """FedU's "Weighted": a_kl = 0 between two small clients, 0.5 between a small and a large one, else 1.

    threshold: a client with fewer training samples is small; 0: with fewer than the median. connected: refuse a
    graph that falls apart.
    """
    require(threshold >= 0, f"graph by_size: threshold = {threshold!r} must not be negative")
    small = sizes < (threshold or np.median(sizes))
    low, high = all_pairs(len(sizes))
    weights = 1 - 0.5 * (small[low].astype(float) + small[high])
    return of_pairs(low, high, weights, len(sizes), connected=connected)


def by_labels(counts: Num[np.ndarray, "clients classes"], *, full: int = 2, connected: bool = False) -> Graph:
    """FedU's "Similar": a_kl = 0, 0.5 or 1 for no, one, or at least two labels that both clients have.

    counts: each client's training samples of each class. full: shared labels that give weight 1; fewer give
    their share of it. connected: refuse a graph that falls apart.
    """
    require(full >= 1, f"graph by_labels: full = {full!r} must be a whole number > 0")
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
    """Each client is related to the `neighbours` clients whose points lie nearest to its own, and they to it.

    points: a vector for each client: its shares of the labels, a model. Of equally distant clients the first come
    first. connected: refuse a graph that falls apart.
    """
    count = len(points)
    good = 1 <= neighbours < max(count, 2)
    require(good, f"graph nearest: neighbours = {neighbours!r} must be a whole number from 1 to {count - 1}")
    check_weight(weight)
    require(bool(np.isfinite(points).all()), "graph nearest: the points must be finite numbers")
    pairs: list[Int[np.ndarray, "_"]] = []
    block = max(1, ROWS // count)
    for start in range(0, count if count > 1 else 0, block):
        own = np.arange(start, min(start + block, count))
        distance = cdist(points[own], points)
        distance[np.arange(len(own)), own] = np.inf
        last = np.partition(distance, neighbours - 1, axis=1)[:, neighbours - 1 : neighbours]
        nearer, tied = distance < last, distance == last
        room = neighbours - nearer.sum(axis=1, keepdims=True)
        row, other = (nearer | (tied & (np.cumsum(tied, axis=1) <= room))).nonzero()
        pairs.append(np.minimum(own[row], other) * count + np.maximum(own[row], other))
    number = np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)
    return of_pairs(number // count, number % count, weight, count, connected=connected)


def label_counts(data: FederatedData) -> Int[np.ndarray, "clients classes"]:
    """Each client's training samples of each class."""
    if data.task != "classification" or data.own_labels:
        why = "each client numbers its own" if data.own_labels else f"{data.name} is a regression"
        raise ConfigError(f"a graph by labels needs classes that clients have in common, but {why}")
    classes = len(data.classes)
    cell = data.train.owners * classes + data.train.y
    return np.bincount(cell, minlength=data.num_clients * classes).reshape(data.num_clients, classes)


def label_shares(data: FederatedData) -> Real[np.ndarray, "clients classes"]:
    """Each client's training labels as shares of its samples."""
    counts = label_counts(data)
    return counts / counts.sum(axis=1, keepdims=True)
