"""The partitions behind the published numbers of FedU, pFedMe and PFLEGO.

FedU (`fedu_mnist`, `fedu_cifar`): client u holds the classes u, u + 1, ... mod 10, 2 or 3 of them. The published
generators draw, with fixed seeds, how many images of a class each client gets: first ten; then, if the class still
has as many, a piece whose size combines a log-normal share of the class and a uniform number. This gives the paper's
sizes exactly: 61,866 images of MNIST (200 to 2,376 per client) and 54,572 of CIFAR-10. (C. T. Dinh et al., "A New
Look and Convergence Rate of Federated Multi-Task Learning with Laplacian Regularization", Table II, and the published
code.)

pFedMe (`paper_2020`, `clean`): 20 clients of MNIST, the partition behind the published numbers and its repair. Client
u holds the digits u mod 10 and (u + 1) mod 10, hence each digit has four holders. (C. T. Dinh, N. H. Tran, T. D.
Nguyen, "Personalized Federated Learning with Moreau Envelopes", NeurIPS 2020, section 5.)

PFLEGO (`pflego`): each client draws K classes, and each class's images go to its holders in turn. (S.
Nikoloutsopoulos, I. Koutsopoulos, M. K. Titsias, "Personalized Federated Learning with Exact Stochastic Gradient
Descent", section 4.3 and appendix A.2.)
"""

import random
from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float, Int, Int32, Shaped

from idiolect.core.errors import DataError, require
from idiolect.data.divide.division import of_splits, shuffled, stream
from idiolect.data.partition import Indices, Partition
from idiolect.data.sets.image_set import ImagePartitioner, ImageSet

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


PFEDME_CLIENTS = 20
DIGITS = 10
HOLDERS = 4


def held_digits(client: int) -> tuple[int, int]:
    """The two digits of a client."""
    return client % DIGITS, (client + 1) % DIGITS


def paper_2020(labels: Labels) -> Groups:
    """The partition behind the published numbers, in which clients that hold the same digit SHARE images.

    Each digit's count is cut into four random pieces. The size for the j-th digit of client u is piece number
    2u + j, counted over (piece, digit), so in general it comes from another digit's count; and the client takes the
    FIRST images of its digit up to that size (except image 0, unless it is the digit's first holder): nested
    prefixes. With MNIST these are 69,970 samples, 23,537 distinct images.
    """
    images = _images_of_digits(labels)
    starts = np.zeros(DIGITS, dtype=np.int64)
    groups: Groups = []
    for client, sizes in enumerate(_pieces(images)):
        parts: Groups = []
        for digit, size in zip(held_digits(client), sizes, strict=True):
            parts.append(images[digit][starts[digit] : size])
            starts[digit] = 1
        groups.append(np.concatenate(parts))
    return groups


def clean(labels: Labels) -> Groups:
    """The same clients, digits and client sizes as `paper_2020`, with disjoint images.

    The published sizes need more images of some digits than exist. So the table client x digit is fitted, by
    iterative proportional fitting, to the published client sizes and to each digit's number of images: the nearest
    such table (Kullback-Leibler). Each holder then takes the digit's next images.
    """
    images = _images_of_digits(labels)
    table = np.zeros((PFEDME_CLIENTS, DIGITS))
    for client, group in enumerate(paper_2020(labels)):
        table[client] = np.bincount(labels[group], minlength=DIGITS)
    sizes = table.sum(axis=1)
    # An equal part of the unused images is left out of every digit, which leaves room for rounding.
    room = np.array([len(rows) for rows in images]) - (len(labels) - sizes.sum()) / DIGITS
    fitted = _proportional_fit(table, sizes, room)
    used = np.zeros(DIGITS, dtype=np.int64)
    groups: Groups = []
    for client in range(PFEDME_CLIENTS):
        first, second = held_digits(client)
        count = round(fitted[client, first])
        parts: Groups = []
        for digit, size in ((first, count), (second, round(sizes[client]) - count)):
            parts.append(images[digit][used[digit] : used[digit] + size])
            used[digit] += size
        groups.append(np.concatenate(parts))
    return groups


def _pieces(images: Groups) -> list[tuple[int, int]]:
    """The sizes for each client's two digits, drawn as published (numpy's legacy generator)."""
    random = np.random.RandomState(SEED)
    cuts: list[list[int]] = []
    for rows in images:
        rest, pieces = len(rows), list[int]()
        for _ in range(HOLDERS - 1):
            pieces.append(int(random.randint(rest // (HOLDERS + 1), rest // 2)))
            rest -= pieces[-1]
        cuts.append([*pieces, rest])
    flat = [cuts[digit][piece] for piece in range(HOLDERS) for digit in range(DIGITS)]
    return [(flat[2 * client], flat[2 * client + 1]) for client in range(PFEDME_CLIENTS)]


def _proportional_fit(
    table: Float[np.ndarray, "c d"], rows: Float[np.ndarray, "c"], columns: Float[np.ndarray, "d"]
) -> Float[np.ndarray, "c d"]:
    for _ in range(2000):
        table = table * (columns / table.sum(axis=0))
        table = table * (rows / table.sum(axis=1))[:, None]
    return table


def _images_of_digits(labels: Labels) -> Groups:
    images = [np.flatnonzero(labels == digit) for digit in range(DIGITS)]
    for digit, rows in enumerate(images):
        if len(rows) < 10 * HOLDERS:
            raise DataError(
                f"this partition needs at least {10 * HOLDERS} images of every digit; digit {digit} has {len(rows)}"
            )
    return images


PFLEGO_CLIENTS = 100
NAME = "pflego-"
_Rows = list[Int[np.ndarray, "_"]]


def pflego(
    pool: ImageSet,
    level: str,
    *,
    clients: int = PFLEGO_CLIENTS,
    seed: int = 0,
    validation: float = 0.1,
    split_seed: int = 0,
) -> Partition:
    """Degree of personalization: 'high' (K = 2 classes a client), 'medium' (half of them) or 'none' (all).

    If the draw leaves classes without a holder, the first clients take the classes in a random order instead,
    K each, as in the published code; with too few clients for that, a note names the unused classes. A class's
    shuffled images go to its holders one by one in turn, official training and test images separately. If one
    official part is missing, each class is first divided at random in the official ratio.

    seed: draws classes and images. validation: fraction of a client's training images, drawn by split_seed.
    Raises `ConfigError` on a setting out of range and `DataError` if a client gets no training or test image.
    """
    classes = len(pool.classes)
    classes_each = {"high": 2, "medium": classes // 2, "none": classes}[level]
    require(clients >= 1, f"clients must be at least 1, it is {clients}")
    require(1 <= classes_each <= classes, f"partition '{NAME}{level}' needs two classes or more, there are {classes}")
    require(0 <= validation < 1, f"validation fraction must be at least 0 and below 1, it is {validation}")
    random = stream(seed, 0)
    holders = _holders(classes, clients, classes_each, random)
    train, test, notes = _official(pool, random)
    train_groups, test_groups = (_deal(part, holders, clients) for part in (train, test))
    for what, groups in (("training", train_groups), ("test", test_groups)):
        sizes = [len(group) for group in groups]
        if min(sizes) == 0:
            raise DataError(
                f"client {sizes.index(0)} gets no {what} image of its {classes_each} classes; use fewer clients"
            )
    divided = [shuffled(rows, i, split_seed, 0.0, validation) for i, rows in enumerate(train_groups)]
    unused = [pool.classes[label] for label, owners in enumerate(holders) if len(owners) == 0]
    if unused:
        notes.append(f"{len(unused)} of {classes} classes have no holder and stay unused: {', '.join(unused)}")
    digits = len(str(clients - 1))
    return of_splits(
        {"train": [d[0] for d in divided], "validation": [d[1] for d in divided], "test": test_groups},
        pool.images,
        pool.labels,
        name=NAME + level,
        clients=[f"client {i:0{digits}d}" for i in range(clients)],
        seed=seed,
        parameters={"clients": clients, "k": classes_each, "validation": validation, "split_seed": split_seed},
        notes=notes,
    )


PFLEGO: dict[str, ImagePartitioner] = {
    NAME + level: partial(pflego, level=level) for level in ("high", "medium", "none")
}


def _holders(classes: int, clients: int, classes_each: int, random: np.random.Generator) -> _Rows:
    """The clients that hold each class, in ascending order."""
    drawn = np.stack([random.choice(classes, classes_each, replace=False) for _ in range(clients)])
    if len(np.unique(drawn)) < classes <= clients * classes_each:
        order = random.permutation(classes)
        first = -(-classes // classes_each)
        drawn[:first] = np.resize(order, (first, classes_each))
    return [np.flatnonzero((drawn == label).any(axis=1)) for label in range(classes)]


def _official(pool: ImageSet, random: np.random.Generator) -> tuple[_Rows, _Rows, list[str]]:
    """(shuffled training images of each class, test images of each class, notes)."""
    classes = range(len(pool.classes))
    parts = [pool.labels[: pool.trained], pool.labels[pool.trained :]]
    if all(len(part) for part in parts):
        train, test = ([random.permutation(_of_class(part, label)) for label in classes] for part in parts)
        return train, [rows + pool.trained for rows in test], []
    rows = [random.permutation(_of_class(pool.labels, label)) for label in classes]
    cuts = [max(round(len(part) * pool.test_share), min(1, len(part) - 1)) for part in rows]
    note = (
        f"the official {'test' if pool.trained else 'training'} part is not used: {pool.test_share:.3g} of each "
        "class, the official ratio, is set aside for testing at random"
    )
    pieces = [(part[cut:], part[:cut]) for part, cut in zip(rows, cuts, strict=True)]
    return [p[0] for p in pieces], [p[1] for p in pieces], [note]


def _of_class(labels: Int32[np.ndarray, "n"], label: int) -> Indices:
    return np.flatnonzero(labels == label)


def _deal(by_class: _Rows, holders: _Rows, clients: int) -> _Rows:
    """Give each class's images to its holders, one by one in turn."""
    groups: list[_Rows] = [[] for _ in range(clients)]
    for rows, owners in zip(by_class, holders, strict=True):
        for turn, owner in enumerate(owners):
            groups[owner].append(rows[turn :: len(owners)])
    return [np.sort(np.concatenate(group)) for group in groups]
