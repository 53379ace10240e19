"""Adapters: a Flax network, or any parameters with a function, as an Equinox module that the methods train.

`check_model` checks a user's module before anything is compiled with it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from idiolect.core.errors import ConfigError

_LIBRARIES = {
    "flax.nnx": "wrap it: idiolect.models.from_flax(model)",
    "flax.linen": "a linen module holds no parameters: idiolect.models.from_functions(model.init(key, x)['params'], "
    "lambda params, x: model.apply({'params': params}, x[None])[0], head=...)",
    "torch.nn": "PyTorch's operations cannot be traced by JAX: write it as an Equinox or Flax module",
    "haiku": "idiolect.models.from_functions(transformed.init(key, x), lambda params, x: "
    "transformed.apply(params, None, x), head=...)",
    "keras": "take its stateless call: idiolect.models.from_functions(weights, lambda weights, x: "
    "model.stateless_call(weights, [], x[None])[0][0])",
    "tensorflow": "TensorFlow's operations cannot be traced by JAX: write it as an Equinox or Flax module",
    "sklearn": "scikit-learn's estimators are not trained by gradients: take 'mlr' or 'linear' for a linear model, "
    "'mlp' for a network",
}


def refuse_model(model: Any) -> NoReturn:
    """Raise the `ConfigError` that says what is missing for this to be a model, and what to write."""
    kind = model if isinstance(model, type) else type(model)
    start = "a model must be an equinox.Module, or a name or specification such as 'mlr'"
    if isinstance(model, type):
        raise ConfigError(f"{start}, not the class {kind.__name__}; make one of it first: {kind.__name__}(...)")
    for library, advice in _LIBRARIES.items():
        if any(f"{ancestor.__module__}.".startswith(f"{library}.") for ancestor in kind.__mro__):
            raise ConfigError(f"{start}, not a {kind.__name__} of {library}; {advice}")
    if isinstance(model, tuple | list) and len(model) == 2 and callable(model[1]):
        raise ConfigError(f"{start}, not a pair; idiolect.models.from_functions(params, apply) makes one of it")
    if callable(model):
        raise ConfigError(
            f"{start}, not a {kind.__name__}: a function has no parameters to train; "
            "idiolect.models.from_functions(params, apply) makes a model of both"
        )
    raise ConfigError(f"{start}, not a {kind.__name__}")


def check_model(model: Any, feature_shape: tuple[int, ...], num_outputs: int) -> None:
    """Raise `ConfigError` unless `model` can be trained on features of this shape.

    Nothing is computed: shapes are inferred.

    Args:
        model: An `equinox.Module` with float32 parameters (float64 too where JAX has x64 enabled) that maps ONE
            sample, (*feature_shape,) float32, to (num_outputs,) floats; for a single output also to a scalar ().
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


Apply = Callable[[Any, Array], Array]


class Adapted(eqx.Module):
    """A model of parameters and a function: x -> apply(params, x), for one sample x.

    head: the path of the last layer, which methods with body and head take ("params.dense2"); None: unknown, and such
    a method needs its setting `head`. See `models.parts.separate`.
    """

    params: PyTree
    apply: Apply = eqx.field(static=True)
    head: str | None = eqx.field(static=True)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Outputs for one sample."""
        return self.apply(self.params, x)


def from_functions(params: PyTree, apply: Apply | Any, *, head: str | None = None) -> Adapted:
    """Make a model of any parameters, a pytree of arrays, and a pure function: x -> apply(params, x).

    Args:
        apply: Maps (params, one sample (*feature_shape,)) to (num_outputs,); the same function object each time,
            since another one is compiled anew.
        head: The parameters of the last layer, a key or path such as "out" or "layers.2"; only methods with body and
            head need it. Without it that is the last entry of lists and tuples; the entries of dictionaries have no
            order, so a method that needs it then raises `ConfigError`.

    Raises:
        ConfigError: If there is nothing to train, apply is no function, or head names no parameters.
    """
    if not callable(apply):
        raise ConfigError(f"apply must be a function (params, x) -> outputs, not a {type(apply).__name__}")
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, params)
    arrays = jax.tree_util.tree_leaves_with_path(eqx.filter(params, eqx.is_inexact_array))
    if not arrays:
        raise ConfigError(
            f"params, a {type(params).__name__}, hold no floating-point JAX array to train; "
            "the first argument is a pytree of parameters, the second apply(params, x)"
        )
    apply = cast(Apply, apply)
    if head is not None:
        return Adapted(params, apply, _place(head, [path for path, _ in arrays]))
    return Adapted(params, apply, "last" if _is_ordered(params, arrays[-1][0]) else None)


def from_flax(module: Any, *, head: str | None = None) -> Adapted:
    """Make a model of a Flax network (`flax.nnx.Module`); its parameters are those of type `nnx.Param`.

    Flax's layers take batches, so one sample is given to the network as a batch of one. The
    parameters are copied: the module itself is not trained.

    Args:
        head: The last layer, an attribute or path such as "out" or "layers.2"; by default the attribute that was set
            last, which in most networks is the last layer.

    Raises:
        ConfigError: If Flax is not installed, for a module of another kind, and for state that is no parameter: the
            running statistics of BatchNorm, random streams (dropout that is on), caches.
    """
    try:
        from flax import nnx
    except ImportError as error:
        raise ConfigError(f"from_flax needs Flax ({error}): pip install 'idiolect[flax]'") from error
    if not isinstance(module, nnx.Module):
        refuse_model(module)
    for path, layer in nnx.iter_modules(module):
        where = ".".join(map(str, path)) or type(module).__name__
        if isinstance(layer, nnx.BatchNorm):
            raise ConfigError(
                f"{where} is a BatchNorm, whose running statistics are no parameters and would not be kept; "
                "use nnx.GroupNorm or nnx.LayerNorm"
            )
        if isinstance(layer, nnx.Dropout) and layer.rate > 0 and not layer.deterministic:
            raise ConfigError(
                f"{where} is a Dropout, which draws at random in each call, and models here have no random key; "
                "leave it out, or switch it off: module.eval()"
            )
    graph, params, streams, rest = nnx.split(module, nnx.Param, nnx.RngState, ...)
    if left := nnx.to_flat_state(rest):
        path, variable = left[0]
        raise ConfigError(
            f"{'.'.join(map(str, path))} is a {type(variable).__name__}, state that is no parameter: only "
            "nnx.Param is kept and trained; make it one, or a constant"
        )
    order = _in_order(module, nnx.to_pure_dict(params))

    def apply(params: PyTree, x: Array) -> Array:
        whole = nnx.merge(graph, nnx.State(_plain(params)), streams)
        return whole(x[None])[0]

    adapted = from_functions(order, apply, head=head)
    return adapted if head is not None else Adapted(order, apply, "last")


def _in_order(module: Any, params: Mapping[Any, Any]) -> OrderedDict[Any, Any]:
    """The parameters in the order in which the module's attributes were set: a dictionary would be sorted by name."""
    places = {_key(name): place for place, name in enumerate(vars(module))}
    ordered = sorted(params, key=lambda name: places.get(name, name if isinstance(name, int) else len(places)))
    return OrderedDict((name, _entry(module, name, params[name])) for name in ordered)


def _entry(module: Any, name: Any, params: Any) -> Any:
    if not isinstance(params, Mapping):
        return params
    inner = module[name] if isinstance(name, int) else getattr(module, name)
    return _in_order(inner, params) if hasattr(inner, "__dict__") else OrderedDict(sorted(params.items()))


def _key(name: str) -> Any:
    return int(name) if name.isdigit() else name


def _plain(params: Any) -> Any:
    return {name: _plain(part) for name, part in params.items()} if isinstance(params, Mapping) else params


def _place(head: str, paths: list[Any]) -> str:
    """The dotted path of what `head` names below `params`."""
    known = [jax.tree_util.keystr(path, simple=True, separator=".") for path in paths]
    given = head.removeprefix("params.")
    if not any(path == given or path.startswith(f"{given}.") for path in known):
        raise ConfigError(f"head = '{head}' is no part of the parameters; they are {', '.join(known)}")
    return f"params.{given}"


def _is_ordered(params: PyTree, last: Any) -> bool:
    """Whether the innermost part of the last leaf is surely the last layer: no dictionary decides what is last."""
    containers = list(_along(params, last))
    deciding = containers[:-1] or containers
    return not any(type(part) is dict and len(part) > 1 for part in deciding)


def _along(params: Any, path: Any) -> Iterator[Any]:
    for step in path:
        yield params
        key = getattr(step, "key", getattr(step, "idx", None))
        params = getattr(params, step.name) if hasattr(step, "name") else params[key]
