"""The partitions of MNIST and CIFAR-10 behind FedU's published numbers: 2 or 3 classes a client, uneven sizes.

Client u holds the classes u, u + 1, ... mod 10. The published generators draw, with fixed seeds, how many images of
a class each client gets: first ten; then, if the class still has as many, a piece whose size combines a log-normal
share of the class and a uniform number. This gives the paper's sizes exactly: 61,866 images of MNIST (200 to 2,376
a client) and 54,572 of CIFAR-10. (C. T. Dinh et al., "A New Look and Convergence Rate of Federated Multi-Task
Learning with Laplacian Regularization", Table II, and the code published with it.)
"""

import random
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Shaped

from idiolect.core.errors import DataError

CLASSES = 10
SEED = 1
FIRST = 10
MNIST_CLIENTS, MNIST_LABELS = 100, 2
CIFAR_CLIENTS, CIFAR_LABELS = 20, 3
MNIST_USED, CIFAR_USED = 61_866, 54_572
# Images of each class in the pool of the generators, official training and test images together.
MNIST_IMAGES = (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)
CIFAR_IMAGES = (6000,) * CLASSES

Labels = Shaped[np.ndarray, "pool"]
Groups = list[Int[np.ndarray, "_"]]
Table = Int[np.ndarray, "clients classes"]


def fedu_mnist(labels: Labels, rng: np.random.Generator | None = None) -> Groups:
    """100 clients with two digits each, disjoint: 61,866 of MNIST's 70,000 images.

    A client gets the next images of its digits in the pool's order, or in a random order if `rng` is given. For a
    smaller pool the sizes are scaled down.
    """
    return _assign(labels, _mnist_table(), MNIST_IMAGES, rng)


def fedu_cifar(labels: Labels, rng: np.random.Generator | None = None) -> Groups:
    """20 clients with three classes each, disjoint: 54,572 of CIFAR-10's 60,000 images; otherwise as `fedu_mnist`."""
    return _assign(labels, _cifar_table(), CIFAR_IMAGES, rng)


def fedu_note(groups: Groups, published: int) -> str:
    """The note on the client sizes; published: `MNIST_USED` or `CIFAR_USED`."""
    if (assigned := sum(map(len, groups))) == published:
        return f"client sizes are those of the published partition, {published:,} images in all"
    return f"the published client sizes ({published:,} images) are scaled to this smaller pool: {assigned:,} images"


def _mnist_table() -> Table:
    draws = random.Random(SEED)

    def piece(share: int) -> int:
        extra, times = draws.randint(10, 100), draws.randint(1, 10)
        return share * times + extra + 150

    return _table(MNIST_CLIENTS, MNIST_LABELS, MNIST_IMAGES, piece)


def _cifar_table() -> Table:
    draws = random.Random(SEED)
    return _table(CIFAR_CLIENTS, CIFAR_LABELS, CIFAR_IMAGES, lambda share: 2 * (share + draws.randint(300, 600)))


def _table(clients: int, held: int, images: tuple[int, ...], piece: Callable[[int], int]) -> Table:
    """The number of images of each class at each client, drawn as published (numpy's legacy generator, Python's)."""
    table = np.zeros((clients, CLASSES), dtype=np.int64)
    for client in range(clients):
        table[client, (client + np.arange(held)) % CLASSES] = FIRST
    shares: Float[np.ndarray, "classes clients held"] = np.random.RandomState(SEED).lognormal(
        0, 2, (CLASSES, clients, held)
    )
    spare = np.array(images)[:, None, None] - clients
    shares = spare * shares / np.sum(shares, (1, 2), keepdims=True)
    for client in range(clients):
        for j in range(held):
            label = (client + j) % CLASSES
            size = piece(int(shares[label, client // (clients // CLASSES), j]))
            if table[:, label].sum() + size < images[label]:
                table[client, label] += size
    return table


def _assign(labels: Labels, table: Table, images: tuple[int, ...], rng: np.random.Generator | None) -> Groups:
    """Divide each class's images among its holders, in consecutive pieces."""
    pieces: list[Groups] = [[] for _ in table]
    for label in range(CLASSES):
        rows = np.flatnonzero(labels == label)
        holders = np.flatnonzero(table[:, label])
        sizes = _scaled(table[holders, label], len(rows), images[label], label)
        rows = rows if rng is None else rng.permutation(rows)
        for client, part in zip(holders, np.split(rows[: sizes.sum()], np.cumsum(sizes)[:-1]), strict=True):
            pieces[client].append(part)
    return [np.concatenate(parts) for parts in pieces]


def _scaled(sizes: Int[np.ndarray, "holders"], available: int, images: int, label: int) -> Int[np.ndarray, "holders"]:
    """The holders' sizes for a class with `available` images: the published ones if it has `images`, else scaled.

    Each holder gets at least two; raises `DataError` if there are not enough.
    """
    least = 2 * len(sizes)
    if available < least:
        raise DataError(f"this partition needs at least {least} images of every class; class {label} has {available}")
    return sizes if available >= images else 2 + (sizes - 2) * (available - least) // (images - least)
