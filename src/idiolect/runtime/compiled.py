"""Functions that are compiled once in a process, and shared by all settings, seeds and data.

Settings that are floats are arguments of what is compiled, like arrays. So another rate, another seed, or other data
of the same shapes reuse it. A Python 0 stays a constant, so that what it switches off costs nothing (`tree.is_off`).
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from idiolect.core.files import cache_folder
from idiolect.core.rights import make_folder
from idiolect.runtime.devices import Devices

MOST = 24  # programs kept; each holds compiled code, but no data
Built = TypeVar("Built")


class Argument:
    """Stands, in a skeleton, for a leaf that is an argument of the program."""


class Identity:
    """A value that cannot be compared by content: equal to itself only."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a Python number; a bool is none."""
    return isinstance(leaf, int | float) and not isinstance(leaf, bool)


def is_argument(leaf: Any) -> bool:
    """Whether a leaf is an argument of the program: an array, or a number that is not a Python 0."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic) or (is_number(leaf) and leaf != 0)


class Skeleton:
    """A tree without its argument leaves; trees that differ only in these leaves have equal keys.

    given: whether each leaf is an argument, in order; by default as `is_argument` says.
    """

    def __init__(self, whole: PyTree, given: Sequence[bool] | None = None) -> None:
        leaves, self._structure = jax.tree.flatten(whole)
        self.given = [is_argument(leaf) for leaf in leaves] if given is None else list(given)
        pairs = zip(leaves, self.given, strict=True)
        self._fixed = [Argument if is_given else leaf for leaf, is_given in pairs]
        self.key = content(self._structure.unflatten(self._fixed))

    def leaves(self, whole: PyTree) -> list[Any]:
        """The argument leaves of a tree with this skeleton; integers as floats."""
        pairs = zip(jax.tree.leaves(whole), self.given, strict=True)
        return [float(leaf) if isinstance(leaf, int) else leaf for leaf, is_given in pairs if is_given]

    def filled(self, leaves: Sequence[Any]) -> Any:
        """Build the tree with these argument leaves."""
        given = iter(leaves)
        return self._structure.unflatten([next(given) if leaf is Argument else leaf for leaf in self._fixed])


def content(value: Any) -> Hashable:
    """A hashable that is equal for values of equal content: arrays by their numbers, dataclasses by their fields."""
    if isinstance(value, jax.Array | np.ndarray):
        array = np.asarray(value)
        return array.shape, array.dtype.str, array.tobytes()
    if isinstance(value, Devices):
        return value.all, value.together
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(content(getattr(value, field.name, None)) for field in fields(value))
    if isinstance(value, Mapping):
        return type(value), tuple((key, content(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(content(part) for part in value)
    if isinstance(value, partial):
        return partial, content(value.func), content(value.args), content(value.keywords)
    try:
        hash(value)
    except TypeError:
        return Identity(value)
    return type(value), value


_programs: OrderedDict[Hashable, Any] = OrderedDict()


def once(key: Hashable, build: Callable[[], Built]) -> Built:
    """Return what `build` made for an equal key, else call it now; the least recently used programs are dropped."""
    if key not in _programs:
        _programs[key] = build()
        while len(_programs) > MOST:
            _programs.popitem(last=False)
    _programs.move_to_end(key)
    return _programs[key]


def forget() -> None:
    """Drop all programs, so that they are compiled again."""
    _programs.clear()


_SHORTEST = 0.03  # seconds of compiling; to read a program takes a hundredth of a second


def use_compilation_cache() -> None:
    """Keep compiled programs between processes, in the user's cache folder; IDIOLECT_CACHE="" turns it off.

    Programs that compile faster than they are read again are not kept, unless JAX's own variable sets a limit.
    """
    folder = cache_folder()
    if folder is None:
        return
    with suppress(OSError):  # a home that cannot be written to costs compile time, nothing else
        make_folder(folder)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
            jax.config.update("jax_persistent_cache_min_compile_time_secs", _SHORTEST)
