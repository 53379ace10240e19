"""Graphs by their shape: star, ring, complete, random."""

import numpy as np

from idiolect.core.errors import require
from idiolect.core.settings import checked, whole
from idiolect.graphs.graph import Graph
from idiolect.graphs.pairs import LARGEST, all_pairs, check_weight, number_of, of_pairs, pairs_at


def star(num_clients: int, *, weight: float = 1.0) -> Graph:
    """Every client is joined only to the hub, the server's model without data: a_k0 = weight, a_kl = 0.

    On it FedU's problem is pFedMe's (FedU, section III-B).
    """
    check_weight(weight)
    num_clients = number_of(num_clients)
    nothing = np.zeros(0, np.int64)
    return of_pairs(nothing, nothing, weight, num_clients, hub=np.full(num_clients, float(weight)))


def ring(num_clients: int, *, weight: float = 1.0) -> Graph:
    """Client k is joined to clients k - 1 and k + 1, the last to the first."""
    check_weight(weight)
    num_clients = number_of(num_clients)
    ends = np.arange(num_clients if num_clients > 2 else num_clients - 1)
    return of_pairs(ends, (ends + 1) % num_clients, weight, num_clients)


def complete(num_clients: int, *, weight: float = 1.0) -> Graph:
    """All pairs have the same weight. The Laplacian's largest eigenvalue is N weight: FedU's "Equal" has 0.5."""
    check_weight(weight)
    return of_pairs(*all_pairs(num_clients), weight, num_clients)


def random(num_clients: int, *, density: float = 0.1, weight: float = 1.0, seed: int = 0) -> Graph:
    """A random connected graph with the fraction `density` of all pairs (at least N - 1), all of the same weight.

    First a random tree: each client, in a random order, is joined to an earlier one; then pairs drawn uniformly from
    the rest. Raises `ConfigError` on a density outside [0, 1] or a negative seed.
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


def random_normal(num_clients: int, *, seed: int = 0, threshold: float = 0.0, connected: bool = False) -> Graph:
    """FedU's "Random": all pairs, a_kl ~ N(0, 1), shifted and scaled to [0, 1] (section VI-C).

    threshold: weights below it are set to 0; the published code takes 0.25. connected: raise `ConfigError` if this
    disconnects the graph.
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
