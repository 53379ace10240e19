"""New clients: they do not train, and their samples test what the training clients have learnt."""

from collections.abc import Sequence

import numpy as np

from idiolect.core.errors import DataError
from idiolect.data.divide.division import listed, stream
from idiolect.data.partition import Indices


def assign_evenly(rows: Indices, clients: int, seed: int, *, least: int = 1) -> list[Indices]:
    """Assign the newcomers' rows at random to the training clients as their test samples, each row to one client.

    For a shared model the mean over all test samples is then exactly the mean over the newcomers' samples; for
    personal models it is an unbiased estimate of their mean on newcomers. Sizes differ by at most one. Raises
    `DataError` if a client would get fewer than `least` rows.
    """
    if len(rows) < clients * least:
        raise DataError(f"{len(rows)} samples of new clients are too few to test {clients} clients on")
    order = rows[stream(seed, 4).permutation(len(rows))]
    return [np.sort(share) for share in np.array_split(order, clients)]


def note_on_newcomers(kind: str, new: Sequence[str], samples: int) -> str:
    """The note on test samples assigned by `assign_evenly`; kind: what a client is, in the plural."""
    return (
        f"{len(new)} {kind} take no part in training: {listed(new)}; their {samples:,} samples are dealt evenly to "
        f"the clients as test samples, so the mean over samples tests a shared model on new {kind}, and no client is "
        "tested on samples of its own"
    )


def note_on_known(kind: str, new: int, known: int) -> str:
    """The note on a federation whose clients are the newcomers themselves."""
    return (
        f"the clients are the {new} new {kind}; the {known} others are left out, except that a normalisation fitted "
        "on training samples is fitted on theirs"
    )
