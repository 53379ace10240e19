"""New clients take no part in training: hold clients out, or test the training clients on samples of new ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from idiolect.core.errors import ConfigError, DataError, require, unknown
from idiolect.data.divide.division import listed, stream
from idiolect.data.federated import FederatedData
from idiolect.data.partition import Indices


def hold_out(
    data: FederatedData, held_out: float | Sequence[str], *, seed: int = 0, fitted: bool | None = None
) -> FederatedData:
    """Return the federation without some of its clients, which are in its field `held_out`.

    A note of every report states which clients, and what was fitted on them.

    Args:
        held_out: A share of the clients, drawn from the seed (rounded, at least one, and one at least stays), or
            their names.
        fitted: Whether what encodes the samples was fitted on the training rows of the held-out clients, too; by
            default as the data's normalisation says.

    Raises:
        ConfigError: For a share outside (0, 1), an unknown name, or no client left.
    """
    count = data.num_clients
    require(data.held_out is None, f"{data.name}: some clients are held out already")
    require(count >= 2, f"{data.name}: held_out needs two clients at least, there is {count}")
    if isinstance(held_out, str):
        held_out = (held_out,)
    if isinstance(held_out, Sequence):
        for name in held_out:
            if name not in data.clients:
                raise unknown("client in held_out", name, data.clients)
        names = {*held_out}
        require(0 < len(names) < count, f"held_out names {len(names)} of {count} clients; name some, and leave some")
    else:
        share = float(held_out)
        if not 0 < share < 1:
            raise ConfigError(f"held_out = {held_out} must lie between 0 and 1, a share of the clients, or name them")
        drawn = stream(seed, 8).choice(count, int(np.clip(round(share * count), 1, count - 1)), replace=False)
        names = {data.clients[i] for i in drawn.tolist()}
    known = data.select(lambda i: data.clients[i] not in names)
    new = data.select(lambda i: data.clients[i] in names)
    if fitted is None:
        normalisation: Any = data.provenance.get("normalisation", {})
        fitted = isinstance(normalisation, dict) and normalisation.get("fitted_on") == "train"
    who = f"{new.num_clients} of {count} clients are held out"
    note = f"{who} and take no part in training: {listed(new.clients)}; they are new clients afterwards"
    caveat = ("the encoding of the samples was fitted on the training rows of the held-out clients, too",)
    return replace(
        known,
        held_out=new,
        notes=(*known.notes, note, *(caveat if fitted else ())),
        provenance={**known.provenance, "held_out": {"clients": list(new.clients), "seed": seed}},
    )


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
