"""Drop modalities at random, of whole clients or of single samples, with the same draws at every rate."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float
from typing_extensions import TypedDict

from idiolect.core.errors import DataError, require, unknown
from idiolect.core.memory import aligned_empty
from idiolect.data.divide.division import stream
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.modalities import Modalities

By = Literal["client", "sample"]


class Missing(TypedDict, total=False):
    """Settings of every source of several modalities, see `drop_modalities`.

    missing: the rate; missing_by: 'client' or 'sample'; missing_seed; missing_in: the splits, all by default.
    """

    missing: float
    missing_by: str
    missing_seed: int
    missing_in: Sequence[str]


@dataclass(frozen=True)
class MissingPattern:
    """Which modalities are dropped, see `drop_modalities`. Raises `ConfigError` on a value out of range."""

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
    """Drop modalities at random: their values and flags become zero.

    Each modality of a client (or of a sample) is dropped independently with probability r = `missing`; where all
    would be dropped, one of them, drawn uniformly, is kept. So of M present modalities the expected share r - r^M / M
    is dropped. missing_by 'client': a client lacks the modality in all samples of the named splits; 'sample': each
    sample has its own draws. For both, apply 'client' first.

    The draws depend only on the seed and the client's name (by sample also on the split and the position in it): not
    on the order or selection of clients; and what a lower rate drops, a higher rate drops too.

    Raises:
        DataError: If the data have no modalities.
    """
    layout = data.modalities
    if layout is None:
        raise DataError(f"{data.name}: its samples have no modalities, so none can be missing")
    if pattern.missing == 0:
        return data
    new_splits = {split: _without_dropped(data, layout, split, pattern) for split in pattern.missing_in}
    count = max(sum(len(split.y) for split in new_splits.values()), 1)
    absent = {
        name: round(sum(float((layout.present(s.x, name) == 0).sum()) for s in new_splits.values()) / count, 6)
        for name in layout.names
    }
    note = (
        f"modalities are taken away at random, {pattern.missing:g} by {pattern.missing_by} "
        f"(seed {pattern.missing_seed}, in {', '.join(pattern.missing_in)}; never all of them): "
        + ", ".join(f"{name} is absent in {share:.1%} of the samples" for name, share in absent.items())
    )
    patterns = [*data.provenance.get("missing", []), {**pattern.arguments, "absent": absent}]
    return replace(
        data,
        **new_splits,
        name=f"{data.name}/missing-{pattern.missing:g}-by-{pattern.missing_by}",
        notes=(*data.notes, note),
        provenance={**data.provenance, "missing": patterns},
    )


def _splits(names: Sequence[str]) -> tuple[str, ...]:
    """The named splits in the order of `SPLITS`; raises `ConfigError` on an unknown name or none."""
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if name not in SPLITS:
            raise unknown("split in missing_in", name, SPLITS)
    require(len(given) > 0, "missing_in must name one split at least")
    return tuple(split for split in SPLITS if split in given)


def _draws(
    data: FederatedData, split: str, modalities: int, pattern: MissingPattern
) -> Float[np.ndarray, "n modalities"]:
    """A uniform draw in [0, 1) for each modality of each sample; those below the rate are dropped."""
    sizes = data.split(split).sizes
    draws: list[Float[np.ndarray, "m modalities"]] = []
    for client, size in zip(data.clients, sizes, strict=True):
        client_hash = int.from_bytes(hashlib.sha256(client.encode()).digest()[:8], "big")
        if pattern.missing_by == "client":
            client_draws = stream(pattern.missing_seed, 5, client_hash).random((1, modalities))
            draws.append(np.repeat(client_draws, size, axis=0))
        else:
            draws.append(stream(pattern.missing_seed, 6, client_hash, SPLITS.index(split)).random((size, modalities)))
    return np.concatenate(draws)


def _without_dropped(data: FederatedData, layout: Modalities, split: str, pattern: MissingPattern) -> Split:
    """One split with the dropped modalities set to zero."""
    old = data.stored(split)
    present = np.stack([np.asarray(layout.present(old.x, name)) > 0 for name in layout.names], axis=1)
    draws = _draws(data, split, len(layout.names), pattern)
    dropped = present & (draws < pattern.missing)
    all_dropped = np.flatnonzero((dropped == present).all(axis=1))
    # The largest draw is kept at every rate, so what a lower rate drops a higher one drops too.
    dropped[all_dropped, np.argmax(np.where(present[all_dropped], draws[all_dropped], -1.0), axis=1)] = False
    x = aligned_empty(old.x.shape)
    x[...] = old.x
    for number, name in enumerate(layout.names):
        x[dropped[:, number], layout.columns(name)] = 0
        x[dropped[:, number], layout.flag(name)] = 0
    return replace(old, x=x)
