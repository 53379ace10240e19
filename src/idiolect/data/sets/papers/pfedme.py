"""The 20-client partitions of MNIST: the one behind pFedMe's published numbers, and its repair.

Client u holds the digits u mod 10 and (u + 1) mod 10, hence each digit has four holders.
(C. T. Dinh, N. H. Tran, T. D. Nguyen, "Personalized Federated Learning with Moreau Envelopes", NeurIPS 2020,
section 5.)
"""

import numpy as np
from jaxtyping import Float, Int, Shaped

from idiolect.core.errors import DataError

CLIENTS = 20
DIGITS = 10
HOLDERS = 4
SEED = 1

Labels = Shaped[np.ndarray, "pool"]
Groups = list[Int[np.ndarray, "_"]]


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
    table = np.zeros((CLIENTS, DIGITS))
    for client, group in enumerate(paper_2020(labels)):
        table[client] = np.bincount(labels[group], minlength=DIGITS)
    sizes = table.sum(axis=1)
    # An equal part of the unused images is left out of every digit, which leaves room for rounding.
    room = np.array([len(rows) for rows in images]) - (len(labels) - sizes.sum()) / DIGITS
    fitted = _proportional_fit(table, sizes, room)
    used = np.zeros(DIGITS, dtype=np.int64)
    groups: Groups = []
    for client in range(CLIENTS):
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
    return [(flat[2 * client], flat[2 * client + 1]) for client in range(CLIENTS)]


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
