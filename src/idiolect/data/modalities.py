"""Samples of several modalities (accelerometer and gyroscope; text, audio and video), some of which may be absent."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from jax import Array as JaxArray
from jaxtyping import Bool, Float

from idiolect.core.errors import DataError, require, unknown
from idiolect.core.memory import aligned_empty

Samples = Float[np.ndarray, "..."] | JaxArray


@dataclass(frozen=True)
class Modalities:
    """The layout of a packed sample: each modality flattened, one after the other, then one flag for each.

    A flag is 1 if the sample has the modality, else 0; an absent modality is all zeros. names, shapes: of one
    sample's modalities. Whatever takes flat features takes packed samples.
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
        """The position of a modality; raises `ConfigError` on an unknown name."""
        if name not in self.names:
            raise unknown("modality", name, self.names)
        return self.names.index(name)

    def columns(self, name: str) -> slice:
        """The columns of a modality in a packed sample."""
        position = self.index(name)
        start = sum(map(prod, self.shapes[:position]))
        return slice(start, start + prod(self.shapes[position]))

    def flag(self, name: str) -> int:
        """The column of a modality's flag in a packed sample."""
        return self.width - len(self.names) + self.index(name)

    def part(self, x: Samples, name: str) -> Samples:
        """One modality of packed samples: (..., width) -> (..., *shape)."""
        return x[..., self.columns(name)].reshape(*x.shape[:-1], *self.shapes[self.index(name)])

    def present(self, x: Samples, name: str) -> Samples:
        """1 where the modality is present, 0 where it is absent: (..., width) -> (...)."""
        return x[..., self.flag(name)]

    def pack(
        self,
        parts: Mapping[str, Float[np.ndarray, "n ..."]],
        present: Mapping[str, Bool[np.ndarray, "n"]] | None = None,
    ) -> Float[np.ndarray, "n width"]:
        """Pack each modality's samples; values of an absent modality are replaced by zeros.

        parts: (n, *shape) by modality; present: (n,) by modality, all present by default. Raises `DataError` on a
        wrong shape and on a sample without any modality.
        """
        count = len(parts[self.names[0]])
        packed = aligned_empty((count, self.width))
        for name, shape in zip(self.names, self.shapes, strict=True):
            values = parts[name]
            if values.shape != (count, *shape):
                raise DataError(f"modality '{name}' must have the shape {(count, *shape)}, it is {values.shape}")
            is_present = np.ones(count, bool) if present is None else present[name]
            masked = np.where(is_present.reshape(-1, *(1,) * len(shape)), values, 0)
            packed[:, self.columns(name)] = masked.reshape(count, prod(shape))
            packed[:, self.flag(name)] = is_present
        without_any = np.flatnonzero(packed[:, -len(self.names) :].sum(axis=1) == 0)
        if len(without_any):
            raise DataError(f"sample {without_any[0]} has no modality at all; leave it out")
        return packed
