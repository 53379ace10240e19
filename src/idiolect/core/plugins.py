"""What a registry holds: the classes of a package's own files, and what other installed packages provide.

Methods and metrics register by being there: a file of `idiolect/algorithms/` or `idiolect/metrics/` with a named
class is found. Methods, metrics and data sets of other packages have entry points.

    [project.entry-points."idiolect.methods"]    # a method's class
    fedmedian = "their_package.fedmedian:FedMedian"

The groups are `idiolect.methods`, `idiolect.metrics` and `idiolect.data`. A registry reads its group when a name is
first looked up or listed. By then idiolect is loaded, so the package may import any part of it. An object that cannot
be used is left out with a warning, so a broken package never stops idiolect.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.metadata import entry_points, version
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from idiolect.core.errors import ConfigError

T = TypeVar("T")
PACKAGES: dict[str, str] = {}
"""The packages that have provided something to this process, with their versions."""


class PluginWarning(UserWarning):
    """Something that an installed package provides cannot be used."""


class Registry(MutableMapping[str, T]):
    """Objects by name: idiolect's own, and, from the first look on, those that other packages provide.

    group, taken: see `provided`.
    """

    def __init__(self, group: str, own: Mapping[str, T], taken: Callable[[str, object], T]) -> None:
        self._known = dict(own)
        self._pending: tuple[str, Callable[[str, object], T]] | None = group, taken

    def _all(self) -> dict[str, T]:
        if self._pending is not None:
            (group, taken), self._pending = self._pending, None  # first: what is loaded may look here, too
            self._known |= provided(group, frozenset(self._known), taken)
        return self._known

    def __getitem__(self, name: Any) -> T:  # whatever a user has written; only texts are found
        return self._all()[name]

    def __setitem__(self, name: str, value: T) -> None:
        self._known[name] = value  # does not need to look

    def __delitem__(self, name: str) -> None:
        del self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def named_classes(package: ModuleType, *bases: type[Any]) -> list[type[Any]]:
    """The classes below any of `bases` that have a `name`, of all modules of a package; each in its own module."""
    found: list[type[Any]] = []
    for file in sorted(iter_modules(package.__path__), key=lambda file: file.name):
        if file.ispkg:
            continue
        module = import_module(f"{package.__name__}.{file.name}")
        classes = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, bases)]
        found += [
            one for one in classes if one.__module__ == module.__name__ and isinstance(vars(one).get("name"), str)
        ]
    return found


def provided(group: str, known: Collection[str], taken: Callable[[str, object], T]) -> dict[str, T]:
    """What installed packages provide in a group, by name.

    known: names that are in use already. taken(name, object): what to register; it raises `ConfigError` for an object
    that does not fit.
    """
    found: dict[str, T] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        package = "an unknown package" if entry.dist is None else entry.dist.name
        try:
            if entry.name in known or entry.name in found:
                raise ConfigError("this name is in use already")
            found[entry.name] = taken(entry.name, entry.load())
        except Exception as error:  # whatever the other package's code raises
            lines = str(error).splitlines() or [""]
            reason = lines[0] if isinstance(error, ConfigError) else f"{type(error).__name__}: {lines[0]}"
            warnings.warn(f"{group} '{entry.name}' of {package} is left out: {reason}", PluginWarning, stacklevel=3)
        else:
            if entry.dist is not None:
                PACKAGES[package] = version(package)
    return found
