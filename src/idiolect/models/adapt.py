"""Adapters: a Flax network, or any parameters with a function, as an Equinox module that the methods train."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from idiolect.core.errors import ConfigError
from idiolect.models.foreign import refuse_model

Apply = Callable[[Any, Array], Array]


class Adapted(eqx.Module):
    """A model of parameters and a function: x -> apply(params, x), for one sample x.

    head: the path of the last layer, which methods with body and head take ("params.dense2"); None: unknown, and such
    a method must be told by its own setting `head`. See `models.parts.separate`.
    """

    params: PyTree
    apply: Apply = eqx.field(static=True)
    head: str | None = eqx.field(static=True)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Outputs for one sample."""
        return self.apply(self.params, x)


def from_functions(params: PyTree, apply: Apply | Any, *, head: str | None = None) -> Adapted:
    """A model of any parameters, a pytree of arrays, and a pure function: x -> apply(params, x).

    apply: maps (params, one sample (*feature_shape,)) to (num_outputs,); the same function object each time, since
    another one is compiled anew. head: the parameters of the last layer, a key or path such as "out" or
    "layers.2"; only methods with body and head need it. Without it that is the last entry of lists and tuples; the
    entries of dictionaries have no order, so a method that needs it then raises `ConfigError`.

    Raises `ConfigError` if there is nothing to train, apply is no function, or head names no parameters.
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
    """A Flax network (`flax.nnx.Module`) as a model; its parameters are those of type `nnx.Param`.

    Flax's layers take batches, so one sample is given to the network as a batch of one. head: the last layer, an
    attribute or path such as "out" or "layers.2"; by default the attribute that was set last, which in most networks
    is the last layer. What the network holds is copied: the module itself is not trained.

    Raises `ConfigError` if Flax is not installed, for a module of another kind, and for state beside the parameters:
    the running statistics of BatchNorm, random streams (dropout that is on), caches.
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
