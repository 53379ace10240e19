"""Groups of rows as clients: their names, and the number of each row's client."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped

from idiolect.core.errors import ConfigError, require


def column_of(groups: Any, rows: int) -> Shaped[np.ndarray, "n"]:
    """The client of each row; raises `ConfigError` on another shape and on missing names."""
    names = np.asarray(groups)
    require(
        names.shape == (rows,), f"groups must name the client of each of {rows} rows; their shape is {names.shape}"
    )
    missing = np.flatnonzero(pd.isna(names))
    if len(missing):
        raise ConfigError(f"groups: row {missing[0]} has no client; name it, or leave the row out")
    return names


def clients_of(names: Shaped[np.ndarray, "n"]) -> Shaped[np.ndarray, "clients"]:
    """The distinct clients, sorted; raises `ConfigError` if numbers and texts are mixed."""
    try:
        return np.unique(names)
    except TypeError as error:
        raise ConfigError(f"groups must be all numbers or all texts: {error}") from error


def rows_of(names: Any, clients: Shaped[np.ndarray, "clients"]) -> Int[np.ndarray, "n"]:
    """The number of each row's client, -1 if it is none of `clients`.

    Raises `ConfigError` for texts where clients are numbers, and the reverse: none could ever be known.
    """
    known: Sequence[Any] = clients.tolist()
    number = {name: index for index, name in enumerate(known)}
    asked: Sequence[Any] = np.asarray(names).tolist()
    if asked and isinstance(asked[0], str) != isinstance(known[0], str):
        raise ConfigError(f"groups hold {asked[0]!r}, but the clients that fit has seen are such as {known[0]!r}")
    return np.array([number.get(name, -1) for name in asked], int)
