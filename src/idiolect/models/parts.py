"""Separate a model's parameters into body and head: two trees, each with None in the place of the other's leaves."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import equinox as eqx
import jax
from jaxtyping import PyTree

from idiolect.core.errors import ConfigError
from idiolect.models.adapt import Adapted

Head = str | Callable[[str, Any], bool]


def separate(
    params: PyTree, head: Head = "last", *, setting: str = "head", also: Sequence[str] = ()
) -> tuple[PyTree, PyTree]:
    """Return (body, head) of a parameter tree; `tree.merged` combines them again.

    head: "last", the innermost module with the last leaf, which is the last layer (a model without sub-modules is
    all head), or what a model of another library says (`Adapted.head`); "none"; "all"; a name or path such as
    "output", "layers[1]" or "layers.1.bias", with all leaves below it; or a function of (path, leaf) that returns
    whether a leaf is in the head. setting: what the user calls the head, and also: further names that it may have,
    for errors. Leaves may be arrays, shapes or traced values. Raises `ConfigError` on a path that
    is not in the model, and on "last" for a model with an unknown last layer.
    """
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if head == "last" and isinstance(params, Adapted):
        if params.head is None:
            raise ConfigError(
                "which parameters are the model's last layer is unknown, since dictionaries have no order; say "
                f"from_functions(params, apply, head=...), one of {', '.join(_dotted(path) for path, _ in leaves)}"
            )
        head = params.head
    if callable(head):
        flags = [bool(head(_text(path), leaf)) for path, leaf in leaves]
    elif head in ("none", "all"):
        flags = [head == "all"] * len(leaves)
    elif head == "last":
        layer = leaves[-1][0][:-1]
        flags = [path[: len(layer)] == layer for path, _ in leaves]
    else:
        flags = [_is_below(_text(path), head) or _is_below(_dotted(path), head) for path, _ in leaves]
        if not any(flags):
            names, paths = [*also, "last", "none", "all"], [_text(path) for path, _ in leaves]
            near = get_close_matches(head, [*names, *paths], n=1, cutoff=0.5)
            raise ConfigError(
                f"{setting} = '{head}' is no part of the model; {f'did you mean {near[0]!r}? ' if near else ''}use "
                f"one of its paths, or the beginning of one ({', '.join(paths)}), or {', '.join(map(repr, names))}"
            )
    head_params, body = eqx.partition(params, jax.tree.unflatten(jax.tree.structure(params), flags))
    return body, head_params


def _text(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path).removeprefix(".")


def _dotted(path: tuple[Any, ...]) -> str:
    """As in a model file."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_below(path: str, prefix: str) -> bool:
    return path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", ".", "[")
