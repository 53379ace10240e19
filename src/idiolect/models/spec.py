"""The types of a model specification's values, for `core.settings`.

A specification looks like {"name": "mlp", "hidden": [100], "init": "pytorch", "l2": 0.001}.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import jax
import jax.numpy as jnp
from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from jaxtyping import Array
from pydantic import AfterValidator, BeforeValidator, Strict

from idiolect.core.errors import unknown
from idiolect.core.losses import LOSSES
from idiolect.core.settings import MOST, Number, Words
from idiolect.models.conv import METHODS, PADDINGS
from idiolect.models.init import INITIALISATIONS

Spec: TypeAlias = Mapping[str, Any]
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
}


def one_of(kind: str, known: Sequence[str]) -> Any:
    """The type of a value that must be one of the known names; the error suggests the nearest."""

    def check(value: str) -> str:
        if value not in known:
            raise unknown(kind, value, known)
        return value

    return Annotated[str, Strict(), AfterValidator(check), Words(f"a name ({', '.join(known)})")]


def as_list(value: Any) -> Any:
    """A single value stands for a list of one."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


Positive = Annotated[int, Strict(), Gt(0), Le(MOST), Words(f"a whole number > 0, of at most {MOST:,}")]
_Numbers = Annotated[list[Positive], BeforeValidator(as_list)]
Widths = Annotated[
    _Numbers,
    MinLen(1),
    Words("a whole number > 0 or a list of them (for a model without hidden layers use mlr or linear)"),
]
Layers = Annotated[_Numbers, Words("a whole number > 0 or a list of them, which may be empty")]
Image = Annotated[list[Positive], MinLen(2), MaxLen(3), Words("[height, width] or [height, width, channels]")]
Penalty = Annotated[Number, Ge(0), Words("a finite number >= 0")]
Loss = one_of("loss", tuple(LOSSES))
ClassWeights = one_of("class weights", ("none", "balanced"))
ActivationName = one_of("activation", tuple(ACTIVATIONS))
PaddingName = one_of("padding", PADDINGS)
ConvolutionMethod = one_of("convolution", METHODS)
Initialisation = one_of("initialisation", tuple(INITIALISATIONS))
