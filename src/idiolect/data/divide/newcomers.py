"""Clients that take no part in training, by whose samples what the others learnt is tested."""

from collections.abc import Sequence

import numpy as np

from idiolect.core.errors import DataError
from idiolect.data.divide.division import listed, stream
from idiolect.data.partition import Indices


def dealt_evenly(rows: Indices, clients: int, seed: int, *, least: int = 1) -> list[Indices]:
    """The newcomers' rows as test samples of the clients: drawn at random, a row goes to one client.

    The mean over all test samples is then exactly that over the newcomers' samples for a model that all clients
    share, and an unbiased one for what a client's own model does on newcomers; sizes differ by one at most. Raises
    `DataError` if a client would get fewer than `least` rows.
    """
    if len(rows) < clients * least:
        raise DataError(f"{len(rows)} samples of new clients are too few to test {clients} clients on")
    order = rows[stream(seed, 4).permutation(len(rows))]
    return [np.sort(share) for share in np.array_split(order, clients)]


def note_on_newcomers(kind: str, new: Sequence[str], samples: int) -> str:
    """What a reader must know about test samples dealt by `dealt_evenly`; kind: what a client is, in the plural."""
    return (
        f"{len(new)} {kind} take no part in training: {listed(new)}; their {samples:,} samples are dealt evenly to "
        f"the clients as test samples, so the mean over samples tests a shared model on new {kind}, and no client is "
        "tested on samples of its own"
    )


def note_on_known(kind: str, new: int, known: int) -> str:
    """What a reader must know about a federation of the newcomers themselves."""
    return (
        f"the clients are the {new} new {kind}; the {known} others are left out, except that a normalisation fitted "
        "on training samples is fitted on theirs"
    )
