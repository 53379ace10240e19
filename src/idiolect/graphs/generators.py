"""Named graphs: complete, star, ring, random, and those computed from the clients' sizes and labels."""

import numpy as np
from jaxtyping import Int, Num, Real

from idiolect.core.errors import ConfigError, require
from idiolect.core.plugins import named
from idiolect.core.settings import checked, whole
from idiolect.data.federated import FederatedData
from idiolect.graphs.convert import LARGEST, all_pairs, check_weight, number_of, numbers, of_pairs, pairs_at
from idiolect.graphs.graph import Graph


def number_of_clients(data: FederatedData) -> int:
    """Return how many clients a federation has."""
    return data.num_clients


def training_sizes(data: FederatedData) -> Int[np.ndarray, "clients"]:
    """Return each client's number of training samples."""
    return data.train.sizes


def label_counts(data: FederatedData) -> Int[np.ndarray, "clients classes"]:
    """Count each client's training samples of each class; raises `ConfigError` without common classes."""
    if data.task != "classification" or data.own_labels:
        why = "each client numbers its own" if data.own_labels else f"{data.name} is a regression"
        raise ConfigError(f"a graph by labels needs classes that clients have in common, but {why}")
    classes = len(data.classes)
    cell = data.train.owners * classes + data.train.y
    return np.bincount(cell, minlength=data.num_clients * classes).reshape(data.num_clients, classes)


def label_shares(data: FederatedData) -> Real[np.ndarray, "clients classes"]:
    """Return each client's share of each class among its training samples."""
    counts = label_counts(data)
    return counts / counts.sum(axis=1, keepdims=True)


@named("complete", of=number_of_clients)
def complete(num_clients: int, *, weight: float = 1.0) -> Graph:
    """Join all pairs with the same weight. The Laplacian's largest eigenvalue is N weight: FedU's "Equal" has 0.5."""
    check_weight(weight)
    return of_pairs(*all_pairs(num_clients), weight, num_clients)


@named("star", of=number_of_clients)
def star(num_clients: int, *, weight: float = 1.0) -> Graph:
    """Join every client only to the hub, the server's model without data: a_k0 = weight, a_kl = 0.

    On it FedU's problem is pFedMe's (FedU, section III-B).
    """
    check_weight(weight)
    num_clients = number_of(num_clients)
    nothing = np.zeros(0, np.int64)
    return of_pairs(nothing, nothing, weight, num_clients, hub=np.full(num_clients, float(weight)))


@named("ring", of=number_of_clients)
def ring(num_clients: int, *, weight: float = 1.0) -> Graph:
    """Join client k to clients k - 1 and k + 1, the last to the first."""
    check_weight(weight)
    num_clients = number_of(num_clients)
    ends = np.arange(num_clients if num_clients > 2 else num_clients - 1)
    return of_pairs(ends, (ends + 1) % num_clients, weight, num_clients)


@named("random", of=number_of_clients)
def random(num_clients: int, *, density: float = 0.1, weight: float = 1.0, seed: int = 0) -> Graph:
    """Draw a connected graph with the fraction `density` of all pairs (at least N - 1), all of the same weight.

    First a random tree: each client, in a random order, is joined to an earlier one; then pairs drawn uniformly from
    the rest.

    Raises:
        ConfigError: On a density outside [0, 1] or a negative seed.
    """
    check_weight(weight)
    num_clients, seed = number_of(num_clients), whole("graph random: seed", seed)
    density = checked(float, density, "graph random: density")
    require(0 <= density <= 1, f"graph random: density = {density!r} must lie between 0 and 1")
    total = num_clients * (num_clients - 1) // 2
    edges = max(num_clients - 1, round(density * total))
    require(2 * edges <= LARGEST, f"graph random: {edges} edges are too many to keep; use a lower density")
    rng = np.random.default_rng(seed)
    order = rng.permutation(num_clients)
    parent = order[rng.integers(0, np.arange(1, num_clients))] if num_clients > 1 else order[:0]
    tree = np.sort([order[1:], parent], axis=0)
    # Any `edges` distinct pairs contain enough pairs outside the tree to add to it.
    drawn = np.stack(pairs_at(rng.choice(total, edges, replace=False), num_clients)) if total else tree
    number = drawn[0] * num_clients + drawn[1]
    fresh = drawn[:, ~np.isin(number, tree[0] * num_clients + tree[1])][:, : edges - (num_clients - 1)]
    low, high = np.concatenate([tree, fresh], axis=1)
    return of_pairs(low, high, weight, num_clients)


@named("random_normal", of=number_of_clients)
def random_normal(num_clients: int, *, seed: int = 0, threshold: float = 0.0, connected: bool = False) -> Graph:
    """Build FedU's "Random": all pairs, a_kl ~ N(0, 1), shifted and scaled to [0, 1] (section VI-C).

    Args:
        threshold: Weights below it are set to 0; the published code takes 0.25.
        connected: Raise `ConfigError` if this disconnects the graph.
    """
    threshold = checked(float, threshold, "graph random_normal: threshold")
    require(0 <= threshold <= 1, f"graph random_normal: threshold = {threshold!r} must lie between 0 and 1")
    seed = whole("graph random_normal: seed", seed)
    low, high = all_pairs(num_clients)
    weights = np.random.default_rng(seed).normal(size=len(low))
    spread = np.ptp(weights) if len(weights) else 0.0
    weights = (weights - weights.min()) / spread if spread > 0 else np.ones_like(weights)
    kept = weights >= threshold
    return of_pairs(low[kept], high[kept], weights[kept], num_clients, connected=connected)


@named("by_size", of=training_sizes)
def by_size(sizes: Num[np.ndarray, "clients"], *, threshold: float = 0.0, connected: bool = False) -> Graph:
    """Build FedU's "Weighted": a_kl = 0 between two small clients, 0.5 between a small and a large one, else 1.

    Args:
        threshold: A client with fewer training samples is small; 0 stands for the median.
        connected: Raise `ConfigError` if the graph is disconnected.
    """
    sizes = numbers(sizes, "sizes must be the number of training samples of each client", 1)
    threshold = checked(float, threshold, "graph by_size: threshold")
    require(threshold >= 0, f"graph by_size: threshold = {threshold!r} must not be negative")
    small = sizes < (threshold or np.median(sizes))
    low, high = all_pairs(len(sizes))
    weights = 1 - 0.5 * (small[low].astype(float) + small[high])
    return of_pairs(low, high, weights, len(sizes), connected=connected)


@named("by_labels", of=label_counts, of_labels=True)
def by_labels(counts: Num[np.ndarray, "clients classes"], *, full: int = 2, connected: bool = False) -> Graph:
    """Build FedU's "Similar": a_kl = 0, 0.5 or 1 for no, one, or at least two labels that both clients have.

    Args:
        counts: Each client's number of training samples of each class.
        full: The number of common labels from which on the weight is 1; with fewer it is their share of `full`.
        connected: Raise `ConfigError` if it is disconnected.
    """
    counts = numbers(counts, "counts must be a table of numbers (clients, classes)", 2)
    full = whole("graph by_labels: full", full, least=1)
    held = (counts > 0).astype(np.float64)
    low, high = all_pairs(len(counts))
    weights = np.minimum((held @ held.T)[low, high] / full, 1.0)
    return of_pairs(low, high, weights, len(counts), connected=connected)


DISTANCES = 2**22  # distances in memory at once


@named("nearest", of=label_shares, of_labels=True)
def nearest(
    points: Real[np.ndarray, "clients dimensions"],
    *,
    neighbours: int = 10,
    weight: float = 1.0,
    connected: bool = False,
) -> Graph:
    """Join each client to the `neighbours` clients nearest to it, in both directions (k nearest neighbours).

    Ties go to the lower client number.

    Args:
        points: A vector for each client, such as its shares of the labels or its model.
        connected: Raise `ConfigError` if the graph is disconnected.
    """
    points = numbers(points, "points must be a table of numbers (clients, dimensions)", 2)
    count = len(points)
    neighbours = whole("graph nearest: neighbours", neighbours, least=1, most=max(count - 1, 1))
    check_weight(weight)
    require(bool(np.isfinite(points).all()), "graph nearest: the points must be finite numbers")
    pairs: list[Int[np.ndarray, "_"]] = []
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
