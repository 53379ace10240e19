"""Old names that still work for a while: each warns once, with its new name and the version that removes it."""

import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from idiolect.core.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")

_warned: set[tuple[str, str]] = set()
_inside: tuple[str, ...] = (str(Path(__file__).parents[1]),)
"""Beginnings of the file names of code that is not the user's."""


class RenamedWarning(FutureWarning):
    """An old name was used. Python shows this warning by default, unlike `DeprecationWarning`."""


def warn_renamed(kind: str, old: str, new: str, removal: str) -> None:
    """Warn that an old name was used; a second use in the same process gives no warning.

    The warning names the line that called idiolect, however deep inside idiolect the old name is noticed.

    Args:
        kind: What has the name, such as "setting", "function" or "module".
        old: The name that was used.
        new: The name to use.
        removal: The version of idiolect that no longer has the old name.
    """
    if (kind, old) in _warned:
        return
    _warned.add((kind, old))
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_inside):
        frame = frame.f_back
    warnings.warn_explicit(
        f"the {kind} '{old}' is now called '{new}'; use the new name, because idiolect {removal} removes the old one",
        RenamedWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
    )


def renamed_function(function: Callable[P, R], old: str, removal: str) -> Callable[P, R]:
    """Make a function that has an old name, warns, and calls the new one.

    Args:
        function: The function with the new name.
        old: The old name. Assign the result to it: `old = renamed_function(new, "old", "0.3")`.
        removal: The version of idiolect that no longer has the old name.
    """

    @functools.wraps(function)
    def renamed(*args: P.args, **kwargs: P.kwargs) -> R:
        warn_renamed("function", old, function.__name__, removal)
        return function(*args, **kwargs)

    renamed.__name__ = old
    return renamed


def renamed_settings(settings: Mapping[str, Any], names: Mapping[str, str], removal: str) -> dict[str, Any]:
    """Replace the old names in settings by the new ones, and warn of each old name.

    Args:
        settings: What the user gave, by name.
        names: The new name for each old name.
        removal: The version of idiolect that no longer has the old names.

    Returns:
        The settings by their new names, in the same order.

    Raises:
        ConfigError: If a setting is given by both of its names.
    """
    renamed: dict[str, Any] = {}
    for name, value in settings.items():
        new = names.get(name, name)
        if new != name and new in settings:
            raise ConfigError(f"'{name}' and '{new}' are the same setting; leave out '{name}', which is its old name")
        if new != name:
            warn_renamed("setting", name, new, removal)
        renamed[new] = value
    return renamed


def renamed_module(old: str, new: str, removal: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module that has moved: each name comes from the new module, with a warning.

    Args:
        old: The old module's name, `__name__` in its file.
        new: The new module's name.
        removal: The version of idiolect that no longer has the old module.
    """

    def attribute(name: str) -> Any:
        if name.startswith("__"):  # what Python's import looks for is not a use of the module
            raise AttributeError(f"module '{old}' has no attribute '{name}'")
        try:
            value = getattr(importlib.import_module(new), name)
        except AttributeError:
            raise AttributeError(f"neither '{old}' nor '{new}' has '{name}'") from None
        warn_renamed("module", old, new, removal)
        return value

    return attribute
