"""Pack samples whose modalities are concatenated along the last axis (see `Modalities`)."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from idiolect.data.encode.scaling import standardise
from idiolect.data.modalities import Modalities

Rows = Float[np.ndarray, "n ..."]


def packing(
    layout: Modalities,
    x: Rows,
    normalisation: str,
    fitted: Int[np.ndarray, "_"],
    *,
    zeros_are_absent: bool = False,
) -> Callable[[Rows], Float32[np.ndarray, "n width"]]:
    """The function that packs rows of the pool, each modality normalised by itself, see `standardise`.

    x: (pool, ..., features of all modalities in their order); a modality's shape ends in its number of features.
    fitted: the rows on which the normalisation is fitted. zeros_are_absent: a modality that is all zeros is absent,
    and a time step that is all zeros is padding.
    """
    ends = np.cumsum([shape[-1] for shape in layout.shapes])[:-1]

    def parts(rows: Rows) -> dict[str, Rows]:
        return dict(zip(layout.names, np.split(rows, ends, axis=-1), strict=True))

    def is_present(part: Rows) -> Bool[np.ndarray, "n"]:
        present = np.ones(len(part), bool)
        if zeros_are_absent:
            present &= (part != 0).any(axis=tuple(range(1, part.ndim)))
        return present

    scale = {
        name: standardise(
            normalisation, part, fitted[is_present(part)[fitted]], padded=zeros_are_absent and part.ndim == 3
        )
        for name, part in parts(x).items()
    }

    def encode(rows: Rows) -> Float32[np.ndarray, "n width"]:
        split = parts(rows)
        return layout.pack(
            {name: scale[name](part) for name, part in split.items()},
            {name: is_present(part) for name, part in split.items()},
        )

    return encode
