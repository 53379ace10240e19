"""What a model specification may hold, value by value, read and checked.

A specification looks like {"name": "mlp", "hidden": [100], "init": "pytorch", "l2": 0.001}.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from idiolect.core.errors import ConfigError, unknown
from idiolect.core.losses import LOSSES
from idiolect.models.conv import PADDINGS
from idiolect.models.init import INITIALISATIONS
from idiolect.models.mlp import ACTIVATIONS

Spec: TypeAlias = Mapping[str, Any]
Reader: TypeAlias = Callable[[str, Any], Any]
"""From (key for the message, raw value) to the checked value; raises `ConfigError` naming the key."""


def positive(key: str, value: Any) -> int:
    """A whole number > 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ConfigError(f"{key} must be a whole number > 0, not {value!r}")
    return value


def widths(key: str, value: Any) -> list[int]:
    """At least one whole number > 0; a lone number stands for a list of one."""
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not values:
        raise ConfigError(f"{key} must hold at least one width; for a model without hidden layers use mlr or linear")
    return [positive(key, width) for width in values]


def layers(key: str, value: Any) -> list[int]:
    """As `widths`, but an empty list stands for no layer."""
    return [] if value in ([], ()) else widths(key, value)


def image(key: str, value: Any) -> list[int] | None:
    """(height, width) or (height, width, channels), or nothing: take the features' own shape."""
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) not in (2, 3):
        raise ConfigError(f"{key} must be [height, width] or [height, width, channels], not {value!r}")
    return [positive(key, item) for item in value]


def penalty(key: str, value: Any) -> float:
    """A finite number >= 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise ConfigError(f"{key} must be a finite number >= 0, not {value!r}")
    return float(value)


def one_of(kind: str, known: Sequence[str]) -> Reader:
    """A reader of one of the known names."""

    def read(key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise ConfigError(f"{key} must be a name ({', '.join(known)}), not {value!r}")
        if value not in known:
            raise unknown(kind, value, known)
        return value

    return read


def optional(reader: Reader) -> Reader:
    """What `reader` reads, or nothing."""
    return lambda key, value: None if value is None else reader(key, value)


loss = optional(one_of("loss", tuple(LOSSES)))  # nothing: the task's own
activation = one_of("activation", tuple(ACTIVATIONS))
padding = one_of("padding", PADDINGS)
initialisation = one_of("initialisation", tuple(INITIALISATIONS))
