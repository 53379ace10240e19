"""Named initialisations for the Linear and convolution layers of any Equinox module."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from idiolect.core.errors import ConfigError, unknown
from idiolect.core.linalg import polar
from idiolect.models.conv import Conv2d

Model = TypeVar("Model", bound=eqx.Module)
Layer: TypeAlias = eqx.nn.Linear | eqx.nn.Conv | Conv2d


class Fans(NamedTuple):
    """fan_in: inputs that one output sums over; fan_out: out channels * kernel area; outputs: their axis.

    convolution: whether the layer is one, so that its weights are shared by all places of an image.
    """

    fan_in: int
    fan_out: int
    outputs: int
    convolution: bool


Draw: TypeAlias = Callable[[PRNGKeyArray, tuple[int, ...], Fans], Array]
"""Maps (key, shape, fans) to a layer's initial weight or bias."""
Joint: TypeAlias = Callable[[Array, Array | None, Fans], tuple[Array, Array | None]]
"""Maps (weight, bias, fans) of a layer, as they were drawn, to those that it starts with."""

_CUT = 0.87962566103423978  # the standard deviation of a standard normal that is cut at -2 and 2


def _zeros(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:  # noqa: ARG001
    return jnp.zeros(shape, jnp.float32)


def _unit(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:  # noqa: ARG001
    return jax.random.uniform(key, shape, jnp.float32)


def _inverse_root(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:
    limit = 1 / sqrt(fans.fan_in)
    return jax.random.uniform(key, shape, jnp.float32, -limit, limit)


def _glorot(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:
    limit = sqrt(6 / (fans.fan_in + fans.fan_out))
    return jax.random.uniform(key, shape, jnp.float32, -limit, limit)


def _glorot_normal(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:
    deviation = sqrt(2 / (fans.fan_in + fans.fan_out)) / _CUT
    return deviation * jax.random.truncated_normal(key, -2, 2, shape, jnp.float32)


def _stax_bias(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:
    return (1e-6 if fans.convolution else 1e-2) * jax.random.normal(key, shape, jnp.float32)


def _he(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:
    return sqrt(2 / fans.fan_in) * jax.random.normal(key, shape, jnp.float32)


def _orthogonal(key: PRNGKeyArray, shape: tuple[int, ...], fans: Fans) -> Array:
    return jax.nn.initializers.orthogonal(column_axis=fans.outputs)(key, shape, jnp.float32)


def _polar(weight: Array, bias: Array | None, fans: Fans) -> tuple[Array, Array | None]:
    """Replace A = [weight, bias], one row per output, with its polar factor U V', where A = U S V'."""
    by_output = jnp.moveaxis(weight, fans.outputs, 0)
    rows = by_output.reshape(len(by_output), -1)
    inputs = rows.shape[1]
    whole = rows if bias is None else jnp.concatenate([rows, bias.reshape(-1, 1)], axis=1)
    whole = polar(whole)
    weight = jnp.moveaxis(whole[:, :inputs].reshape(by_output.shape), 0, fans.outputs)
    return weight, None if bias is None else whole[:, inputs].reshape(bias.shape)


@dataclass(frozen=True)
class Initialisation:
    """An initialisation: how a layer's weight and its bias are drawn, and what is then made of the two together."""

    description: str
    weight: Draw
    bias: Draw
    joint: Joint | None = None


INITIALISATIONS: dict[str, Initialisation] = {
    "pytorch": Initialisation(
        "PyTorch's default: weight and bias uniform in +-1/sqrt(fan_in)", _inverse_root, _inverse_root
    ),
    "zeros": Initialisation("all zero; for models of one linear layer", _zeros, _zeros),
    "glorot_uniform": Initialisation(
        "weight uniform in +-sqrt(6 / (fan_in + fan_out)), bias zero (Glorot and Bengio, 2010)",
        _glorot,
        _zeros,
    ),
    "he_normal": Initialisation("weight normal with variance 2 / fan_in, bias zero (He et al., 2015)", _he, _zeros),
    "orthogonal": Initialisation(
        "weights of the outputs orthonormal, or of the inputs if these are fewer, bias zero (Saxe et al., 2014)",
        _orthogonal,
        _zeros,
    ),
    "uniform": Initialisation(
        "weight and bias uniform in [0, 1); for a head, as PFLEGO's published code", _unit, _unit
    ),
    "uniform_orthogonal": Initialisation(
        "[weight, bias] drawn uniform in [0, 1), then replaced with the nearest matrix whose rows are orthonormal; "
        "FedBABU's head in PFLEGO's published code",
        _unit,
        _unit,
        _polar,
    ),
    "stax": Initialisation(
        "JAX's stax: weight normal with variance 2 / (fan_in + fan_out), cut at two deviations; bias normal with "
        "standard deviation 0.01, of a convolution 1e-6; the networks of PFLEGO's published code",
        _glorot_normal,
        _stax_bias,
    ),
}


def initialise(model: Model, name: str, key: PRNGKeyArray) -> Model:
    """Reinitialise every `eqx.nn.Linear`, `eqx.nn.Conv` and `Conv2d` of `model` by the named initialisation.

    A layer's stream is the key folded with the layer's path in the module (`layers/0`), so it does not depend on the
    order or number of other layers. Other arrays (embeddings, norms) keep their values, and layers whose weight is
    None (in a partial tree) are skipped.

    Raises:
        ConfigError: On an unknown name, on a model without such layers, and on "zeros" for a model with more than
            one.
    """
    if name not in INITIALISATIONS:
        raise unknown("initialisation", name, INITIALISATIONS)
    initialisation = INITIALISATIONS[name]
    leaves = jax.tree.leaves(model, is_leaf=_is_layer)
    depth = sum(_is_layer(leaf) for leaf in leaves)
    if depth == 0:
        raise ConfigError(f"{type(model).__name__} has no Linear or convolution layer to initialise by '{name}'")
    if name == "zeros" and depth > 1:
        raise ConfigError(
            f"init 'zeros' cannot train {type(model).__name__}: of its {depth} layers, hidden units that "
            "start equal stay equal; use 'pytorch', 'glorot_uniform' or 'he_normal'"
        )

    def redraw(path: tuple[Any, ...], leaf: Any) -> Any:
        if not _is_layer(leaf):
            return leaf
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        return _redrawn(leaf, initialisation, jax.random.fold_in(key, crc32(name.encode())))

    return jax.tree_util.tree_map_with_path(redraw, model, is_leaf=_is_layer)


def _is_layer(node: Any) -> bool:
    return isinstance(node, Layer) and bool(jax.tree.leaves(node.weight))


def _redrawn(layer: Layer, initialisation: Initialisation, key: PRNGKeyArray) -> Layer:
    fans = _fans(layer)
    weight_key, bias_key = jax.random.split(key)
    weight = initialisation.weight(weight_key, layer.weight.shape, fans)
    bias = None if layer.bias is None else initialisation.bias(bias_key, layer.bias.shape, fans)
    if initialisation.joint is not None:
        weight, bias = initialisation.joint(weight, bias, fans)
    weight = weight.astype(layer.weight.dtype)
    if layer.bias is None or bias is None:
        return eqx.tree_at(lambda layer: layer.weight, layer, weight)
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (weight, bias.astype(layer.bias.dtype)))


def _fans(layer: Layer) -> Fans:
    """Fans as PyTorch counts them."""
    shape = layer.weight.shape
    if isinstance(layer, Conv2d):  # (kh, kw, in, out)
        area = shape[0] * shape[1]
        return Fans(area * shape[2], area * shape[3], -1, True)
    convolution = isinstance(layer, eqx.nn.Conv)
    return Fans(prod(shape[1:]), shape[0] * prod(shape[2:]), 0, convolution)  # (out, in, *kernel)
