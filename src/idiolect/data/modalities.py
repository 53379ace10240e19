"""Samples of several modalities (accelerometer and gyroscope; text, audio and video), some of which may be absent."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from jax import Array as JaxArray
from jaxtyping import Bool, Float

from idiolect.core.aligned import aligned_empty
from idiolect.core.errors import DataError, require, unknown

Samples = Float[np.ndarray, "..."] | JaxArray


@dataclass(frozen=True)
class Modalities:
    """How a sample's modalities lie in one vector: each flattened, one after the other, then one flag for each.

    A flag is 1 where the modality is there and 0 where it is absent; an absent one is all zeros. names, shapes: of
    one sample's modalities. Everything that works on flat features works on such samples.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        require(len(self.names) == len(self.shapes) > 0, "modalities need at least one name, and a shape for each")
        require(len(set(self.names)) == len(self.names), f"modalities share a name: {', '.join(self.names)}")

    @property
    def width(self) -> int:
        """Entries of one packed sample."""
        return sum(map(prod, self.shapes)) + len(self.names)

    def index(self, name: str) -> int:
        """The place of a modality; `ConfigError` if there is none of this name."""
        if name not in self.names:
            raise unknown("modality", name, self.names)
        return self.names.index(name)

    def columns(self, name: str) -> slice:
        """Where a modality's numbers lie in a packed sample."""
        place = self.index(name)
        start = sum(map(prod, self.shapes[:place]))
        return slice(start, start + prod(self.shapes[place]))

    def flag(self, name: str) -> int:
        """Where a modality's flag lies in a packed sample."""
        return self.width - len(self.names) + self.index(name)

    def part(self, x: Samples, name: str) -> Samples:
        """One modality of packed samples: (..., width) -> (..., *shape)."""
        return x[..., self.columns(name)].reshape(*x.shape[:-1], *self.shapes[self.index(name)])

    def present(self, x: Samples, name: str) -> Samples:
        """1 where the modality is there, 0 where it is absent: (..., width) -> (...)."""
        return x[..., self.flag(name)]

    def pack(
        self,
        parts: Mapping[str, Float[np.ndarray, "n ..."]],
        present: Mapping[str, Bool[np.ndarray, "n"]] | None = None,
    ) -> Float[np.ndarray, "n width"]:
        """Packed samples from each modality's; what is said to be absent is set to zero, whatever it held.

        Raises `DataError` on a wrong shape and on a sample without any modality.
        """
        count = len(parts[self.names[0]])
        packed = aligned_empty((count, self.width))
        for name, shape in zip(self.names, self.shapes, strict=True):
            values = parts[name]
            if values.shape != (count, *shape):
                raise DataError(f"modality '{name}' must have the shape {(count, *shape)}, it is {values.shape}")
            there = np.ones(count, bool) if present is None else present[name]
            kept = np.where(there.reshape(-1, *(1,) * len(shape)), values, 0)
            packed[:, self.columns(name)] = kept.reshape(count, prod(shape))
            packed[:, self.flag(name)] = there
        empty = np.flatnonzero(packed[:, -len(self.names) :].sum(axis=1) == 0)
        if len(empty):
            raise DataError(f"sample {empty[0]} has no modality at all; leave it out")
        return packed
