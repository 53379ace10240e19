"""A split cut into tiles of a client's rows, so that clients of any size are scored by one compiled program."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int

from idiolect.data.federated import Split
from idiolect.data.generated import GeneratedSplit

TILE = 256


class Tiles(eqx.Module):
    """A split cut into tiles of at most `rows` rows of one client: of each its owner, its first row and its rows."""

    owner: Int[Array | np.ndarray, "tiles"]
    first: Int[Array | np.ndarray, "tiles"]
    size: Int[Array | np.ndarray, "tiles"]
    rows: int = eqx.field(static=True)

    @classmethod
    def cut(
        cls,
        starts: Int[np.ndarray, "clients"],
        sizes: Int[np.ndarray, "clients"],
        rows: int,
        most: Int[np.ndarray, "clients"] | None = None,
    ) -> "Tiles":
        """Tiles of at most `rows` rows; empty ones follow until there are enough for clients of `most` samples."""
        counts = -(-sizes // rows)
        owner = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        first, size = starts[owner] + nth * rows, np.minimum(rows, sizes[owner] - nth * rows)
        extra = 0 if most is None else int((-(-most // rows)).sum()) - len(owner)
        owner, first, size = (np.pad(part, (0, extra)).astype(np.int32) for part in (owner, first, size))
        return cls(owner, first, size, rows)

    def of(self, begin: int, end: int, length: int) -> "Tiles":
        """The tiles of the clients begin..end-1, numbered from 0, filled up to `length` with empty ones."""
        low, high = np.searchsorted(self.owner, [begin, end])
        owner, first, size = (np.zeros(length, np.int32) for _ in range(3))
        owner[: high - low] = self.owner[low:high] - begin
        first[: high - low], size[: high - low] = self.first[low:high], self.size[low:high]
        return Tiles(owner, first, size, self.rows)

    def parts(self, edges: Sequence[int], length: int) -> "Tiles":
        """The tiles of each part of the clients, from one edge to the next, see `of`; leaves (parts, length)."""
        parts = [self.of(a, b, length) for a, b in pairwise(edges)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)

    def most(self, edges: Sequence[int]) -> int:
        """The most tiles of any part of the clients."""
        return int(np.diff(np.searchsorted(self.owner, edges)).max())


def tiles_of(
    split: Split | GeneratedSplit, clients: Int[np.ndarray, "chosen"] | slice = slice(None), tile: int = TILE
) -> Tiles:
    """The tiles of some clients' part of a split, all by default, no larger than its largest client."""
    sizes = split.sizes[clients]
    return Tiles.cut(split.starts[clients], sizes, min(tile, max(int(sizes.max()), 1)))
