"""Check a user's module before anything is compiled with it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect.core.errors import ConfigError
from idiolect.models.foreign import refuse_model


def check_model(model: Any, feature_shape: tuple[int, ...], num_outputs: int) -> None:
    """Raise `ConfigError` unless `model` can be trained on features of this shape.

    model: an `equinox.Module` with float32 parameters (float64 too where JAX has x64 enabled) that maps ONE
    sample, (*feature_shape,) float32, to (num_outputs,) floats; for a single output also to a scalar (). Nothing is
    computed: shapes are inferred.
    """
    name = type(model).__name__
    if not isinstance(model, eqx.Module):
        refuse_model(model)
    if not callable(model):
        raise ConfigError(f"a model must be an equinox.Module with a __call__(x) for one sample, not {name}")
    _check_state(model)
    _check_parameters(model, name)
    sample = jax.ShapeDtypeStruct(feature_shape, jnp.float32)
    try:
        output = eqx.filter_eval_shape(model, sample)
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), "no message")
        raise ConfigError(
            f"{name} cannot take one sample of shape {feature_shape}: {type(error).__name__}: {reason}"
        ) from error
    expected = f"{(num_outputs,)}" + (" or ()" if num_outputs == 1 else "")
    if not isinstance(output, jax.ShapeDtypeStruct):
        raise ConfigError(f"{name} must return one array of shape {expected}, but returns a {type(output).__name__}")
    accepted = {(num_outputs,), ()} if num_outputs == 1 else {(num_outputs,)}
    if output.shape not in accepted:
        raise ConfigError(
            f"{name} must map one sample of shape {feature_shape} to outputs of shape {expected}, "
            f"but gives {output.shape}"
        )
    if not jnp.issubdtype(output.dtype, jnp.floating):
        raise ConfigError(f"{name} must return floats, but returns {output.dtype}")


def _check_state(model: eqx.Module) -> None:
    """Refuse what needs more than one sample and the parameters: running statistics, random keys."""

    def needs_more(node: Any) -> bool:
        stateful = isinstance(node, eqx.nn.StatefulLayer) and not isinstance(node, eqx.nn.Sequential)
        return stateful or isinstance(node, eqx.nn.Dropout)

    for path, layer in jax.tree_util.tree_leaves_with_path(model, is_leaf=needs_more):
        where = f"{type(model).__name__}{jax.tree_util.keystr(path)} is a {type(layer).__name__}"
        if isinstance(layer, eqx.nn.StatefulLayer):
            raise ConfigError(
                f"{where}, whose running state is no parameter and would not be kept; use GroupNorm or LayerNorm"
            )
        if isinstance(layer, eqx.nn.Dropout) and not layer.inference and layer.p != 0:
            raise ConfigError(
                f"{where}, which draws at random in each call, and a model here has no random key; leave it out, or "
                "switch it off: equinox.nn.inference_mode(model)"
            )


def _check_parameters(model: eqx.Module, name: str) -> None:
    trainable = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_inexact_array))
    if sum(np.size(leaf) for _, leaf in trainable) == 0:
        raise ConfigError(f"{name} has no trainable array: nothing in it is a floating-point JAX array")
    allowed = sorted({"float32", str(jnp.result_type(float))})
    for path, leaf in trainable:
        if str(leaf.dtype) not in allowed:
            raise ConfigError(
                f"{name}{jax.tree_util.keystr(path)} is {leaf.dtype}; parameters must be {' or '.join(allowed)}"
            )
