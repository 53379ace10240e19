"""Modalities taken away at random, of whole clients or of single samples: the same draws for every rate."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float
from typing_extensions import TypedDict

from idiolect.core.aligned import aligned_empty
from idiolect.core.errors import DataError, require, unknown
from idiolect.data.divide.division import stream
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.modalities import Modalities

By = Literal["client", "sample"]


class Missing(TypedDict, total=False):
    """What the sources of several modalities take beside their own arguments, see `drop_modalities`.

    missing: the rate; missing_by: 'client' or 'sample'; missing_seed; missing_in: the splits, all by default.
    """

    missing: float
    missing_by: str
    missing_seed: int
    missing_in: Sequence[str]


@dataclass(frozen=True)
class MissingPattern:
    """Which modalities are taken away, see `drop_modalities`."""

    missing: float = 0.0
    missing_by: str = "client"
    missing_seed: int = 0
    missing_in: Sequence[str] = SPLITS

    def __post_init__(self) -> None:
        require(0 <= self.missing < 1, f"missing must be at least 0 and below 1, it is {self.missing}")
        if self.missing_by not in get_args(By):
            raise unknown("missing_by", self.missing_by, get_args(By))
        require(self.missing_seed >= 0, f"missing_seed must not be negative, it is {self.missing_seed}")
        object.__setattr__(self, "missing_in", _splits(self.missing_in))

    @property
    def arguments(self) -> dict[str, Any]:
        """The pattern as plain values, for the provenance."""
        return {**asdict(self), "missing_in": list(self.missing_in)}


def drop_modalities(data: FederatedData, pattern: MissingPattern) -> FederatedData:
    """The data with some modalities taken away: their numbers become zero, and so do their flags.

    A client, or sample, loses each of its modalities with the chance `missing`, all independently; one that would
    lose all keeps one of them, drawn evenly, so of M modalities that all are there the share
    r - r^M / M is taken away (r: the rate). By 'client' a client lacks a modality in all of the splits named; by
    'sample' each draw is one sample's. To have both, call this by client first.

    The draws depend on the seed and the client's name alone (and on the split and the sample's place in it), so
    neither the order nor the choice of clients changes them, and a higher rate takes away all that a lower one does.
    Raises `DataError` if samples do not have modalities.
    """
    layout = data.modalities
    if layout is None:
        raise DataError(f"{data.name}: its samples have no modalities, so none can be missing")
    if pattern.missing == 0:
        return data
    changed = {split: _taken(data, layout, split, pattern) for split in pattern.missing_in}
    count = max(sum(len(split.y) for split in changed.values()), 1)
    absent = {
        name: round(sum(float((layout.present(s.x, name) == 0).sum()) for s in changed.values()) / count, 6)
        for name in layout.names
    }
    note = (
        f"modalities are taken away at random, {pattern.missing:g} by {pattern.missing_by} "
        f"(seed {pattern.missing_seed}, in {', '.join(pattern.missing_in)}; never all of them): "
        + ", ".join(f"{name} is absent in {share:.1%} of the samples" for name, share in absent.items())
    )
    done = [*data.provenance.get("missing", []), {**pattern.arguments, "absent": absent}]
    return replace(
        data,
        **changed,
        name=f"{data.name}/missing-{pattern.missing:g}-by-{pattern.missing_by}",
        notes=(*data.notes, note),
        provenance={**data.provenance, "missing": done},
    )


def _splits(names: Sequence[str]) -> tuple[str, ...]:
    """The splits in their own order."""
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if name not in SPLITS:
            raise unknown("split in missing_in", name, SPLITS)
    require(len(given) > 0, "missing_in must name one split at least")
    return tuple(split for split in SPLITS if split in given)


def _draws(
    data: FederatedData, split: str, modalities: int, pattern: MissingPattern
) -> Float[np.ndarray, "n modalities"]:
    """A number in [0, 1) for each sample's modalities; what is below the rate is lost."""
    sizes = data.split(split).sizes
    drawn: list[Float[np.ndarray, "m modalities"]] = []
    for client, size in zip(data.clients, sizes, strict=True):
        name = int.from_bytes(hashlib.sha256(client.encode()).digest()[:8], "big")
        if pattern.missing_by == "client":
            own = stream(pattern.missing_seed, 5, name).random((1, modalities))
            drawn.append(np.repeat(own, size, axis=0))
        else:
            drawn.append(stream(pattern.missing_seed, 6, name, SPLITS.index(split)).random((size, modalities)))
    return np.concatenate(drawn)


def _taken(data: FederatedData, layout: Modalities, split: str, pattern: MissingPattern) -> Split:
    """One split with what is lost set to zero."""
    whole = data.stored(split)
    there = np.stack([np.asarray(layout.present(whole.x, name)) > 0 for name in layout.names], axis=1)
    draws = _draws(data, split, len(layout.names), pattern)
    lost = there & (draws < pattern.missing)
    bare = np.flatnonzero((lost == there).all(axis=1))
    # The largest draw stays, whatever the rate: so what a lower rate takes away a higher one takes away too.
    lost[bare, np.argmax(np.where(there[bare], draws[bare], -1.0), axis=1)] = False
    x = aligned_empty(whole.x.shape)
    x[...] = whole.x
    for number, name in enumerate(layout.names):
        x[lost[:, number], layout.columns(name)] = 0
        x[lost[:, number], layout.flag(name)] = 0
    return replace(whole, x=x)
