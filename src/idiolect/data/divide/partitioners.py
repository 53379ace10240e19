"""Partitioners: disjoint, seeded assignments of a pool of labelled samples to clients, with a minimum size.

A partitioner takes (labels, clients, rng) and its own parameters, and returns each client's indices. It raises
`ConfigError` on a parameter out of range and `DataError` if the pool is too small.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int, Shaped

from idiolect.core.errors import DataError, require

Labels = Shaped[np.ndarray, "pool"]
Groups = list[Int[np.ndarray, "_"]]

_DRAWS = 1000


def iid(labels: Labels, clients: int, rng: np.random.Generator, *, minimum: int = 2) -> Groups:
    """Equal sizes, labels at random."""
    _check_pool(labels, clients, minimum)
    return list(np.array_split(rng.permutation(len(labels)), clients))


def lognormal_sizes(
    labels: Labels, clients: int, rng: np.random.Generator, *, sigma: float = 1.0, minimum: int = 2
) -> Groups:
    """Labels at random; samples beyond each client's minimum are shared in proportion to exp(N(0, sigma²)) draws."""
    _check_pool(labels, clients, minimum)
    require(sigma >= 0, f"sigma must not be negative, it is {sigma}")
    shares = np.cumsum(rng.lognormal(0.0, sigma, clients))
    spare = len(labels) - clients * minimum
    cuts = np.floor(shares / shares[-1] * spare).astype(np.int64) + minimum * np.arange(1, clients + 1)
    return np.split(rng.permutation(len(labels)), cuts[:-1])


def dirichlet(
    labels: Labels,
    clients: int,
    rng: np.random.Generator,
    *,
    concentration: float = 0.5,
    minimum: int = 2,
) -> Groups:
    """Each class is divided among the clients in proportions drawn from a symmetric Dirichlet distribution.

    A small concentration gives each client few classes, a large one tends to iid. The proportions are redrawn
    until every client reaches the minimum. (M. Yurochkin et al., "Bayesian nonparametric federated learning of
    neural networks", ICML 2019.)
    """
    _check_pool(labels, clients, minimum)
    require(concentration > 0, f"concentration must be positive, it is {concentration}")
    by_class = [rng.permutation(rows) for rows in _by_class(labels)]
    totals = np.array([len(rows) for rows in by_class])
    for _ in range(_DRAWS):
        shares = np.cumsum(rng.dirichlet(np.full(clients, concentration), len(by_class)), axis=1)
        cuts = np.floor(shares * totals[:, None] + 0.5).astype(np.int64)
        cuts[:, -1] = totals
        if np.diff(cuts, axis=1, prepend=0).sum(axis=0).min() >= minimum:
            pieces = [np.split(rows, cut[:-1]) for rows, cut in zip(by_class, cuts, strict=True)]
            return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]
    raise DataError(
        f"no Dirichlet partition in {_DRAWS} draws gives each of {clients} clients {minimum} samples or more; "
        f"raise concentration ({concentration}), lower minimum, use fewer clients, or use dirichlet_clients"
    )


def dirichlet_clients(
    labels: Labels,
    clients: int,
    rng: np.random.Generator,
    *,
    concentration: float = 0.5,
    size: int | None = None,
    minimum: int = 2,
) -> Groups:
    """Each client draws its mixture of classes q ~ Dir(concentration p), p the pool's, and its samples from q.

    Works for every concentration: towards 0 a client holds one class, towards infinity the pool's mixture. Samples
    are drawn without replacement; once a class is used up, q is renormalised over the others, so the last clients
    get the remaining classes. size: samples of each client; by default the pool is divided equally.
    (T. Hsu, H. Qi, M. Brown 2019, arXiv:1909.06335.)
    """
    _check_pool(labels, clients, minimum)
    require(concentration > 0, f"concentration must be positive, it is {concentration}")
    require(size is None or size >= minimum, f"size must be at least minimum={minimum}, it is {size}")
    sizes = [len(part) for part in np.array_split(labels, clients)] if size is None else [size] * clients
    if sum(sizes) > len(labels):
        raise DataError(f"{len(labels)} samples are too few for {clients} clients of size={size}; lower it")
    by_class = [rng.permutation(rows) for rows in _by_class(labels)]
    totals = np.array([len(rows) for rows in by_class])
    used = np.zeros_like(totals)
    groups: Groups = []
    for target in sizes:
        used_before = used.copy()
        mixture = rng.dirichlet(concentration * totals / totals.sum())
        while (lacking := target - int((used - used_before).sum())) > 0:
            mixture = np.where(used < totals, mixture, 0.0)
            if mixture.sum() == 0:  # q underflowed on the remaining classes, over which it is a Dirichlet draw
                open_classes = used < totals
                mixture[open_classes] = rng.dirichlet(concentration * totals[open_classes] / totals.sum())
            used += np.minimum(rng.multinomial(lacking, mixture / mixture.sum()), totals - used)
        groups.append(
            np.concatenate([rows[begin:end] for rows, begin, end in zip(by_class, used_before, used, strict=True)])
        )
    return groups


def labels_per_client(
    labels: Labels, clients: int, rng: np.random.Generator, *, k: int = 2, minimum: int = 2
) -> Groups:
    """Each client holds exactly k classes; a class is divided equally among its holders.

    Clients in turn take the k classes that have the fewest holders so far, ties at random. With fewer than
    classes / k clients some classes have no holder and stay unused.
    """
    _check_pool(labels, clients, minimum)
    by_class = [rng.permutation(rows) for rows in _by_class(labels)]
    require(1 <= k <= len(by_class), f"k must lie between 1 and the {len(by_class)} classes, it is {k}")
    holders: list[list[int]] = [[] for _ in by_class]
    for client in range(clients):
        ties = rng.random(len(by_class))
        for label in np.lexsort((ties, np.array([len(class_holders) for class_holders in holders])))[:k]:
            holders[label].append(client)
    parts: list[Groups] = [[] for _ in range(clients)]
    for rows, class_holders in zip(by_class, holders, strict=True):
        for client, piece in zip(class_holders, np.array_split(rows, max(len(class_holders), 1)), strict=False):
            parts[client].append(piece)
    groups = [np.concatenate(part) for part in parts]
    sizes = [len(group) for group in groups]
    if min(sizes) < minimum:
        raise DataError(
            f"with k={k} classes per client, client {int(np.argmin(sizes))} gets {min(sizes)} samples, fewer "
            f"than minimum={minimum}; lower minimum or use fewer clients"
        )
    return groups


PARTITIONERS: dict[str, Callable[..., Groups]] = {
    "iid": iid,
    "dirichlet": dirichlet,
    "dirichlet_clients": dirichlet_clients,
    "labels_per_client": labels_per_client,
    "lognormal_sizes": lognormal_sizes,
}


def _by_class(labels: Labels) -> Groups:
    if not np.issubdtype(labels.dtype, np.integer):
        raise DataError("this partition deals out classes but the labels are numbers; use iid or lognormal_sizes")
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def _check_pool(labels: Labels, clients: int, minimum: int) -> None:
    require(clients >= 1, f"clients must be at least 1, it is {clients}")
    require(minimum >= 1, f"minimum must be at least 1, it is {minimum}")
    if clients * minimum > len(labels):
        raise DataError(
            f"{len(labels)} samples are too few for {clients} clients with minimum={minimum} samples each; "
            "lower minimum or use fewer clients"
        )
