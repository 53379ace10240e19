"""What a registry holds: what a package's own files define, and what other installed packages provide.

A file registers what it defines. Methods and metrics are classes with a `name`, in `idiolect/algorithms/` and
`idiolect/metrics/`. Data sets, models, graphs and a report's tables are functions marked by `named`, in
`idiolect/data/sets/`, `idiolect/models/`, `idiolect/graphs/` and `idiolect/report/sections/`. Nothing else lists
them.

Those of other packages have entry points.

    [project.entry-points."idiolect.methods"]    # a method's class
    fedmedian = "their_package.fedmedian:FedMedian"

The groups are `idiolect.methods`, `idiolect.metrics`, `idiolect.data`, `idiolect.models`, `idiolect.graphs` and
`idiolect.sections`. A registry reads its group when a name is first looked up or listed. By then idiolect is loaded,
so the package may import any part of it. An object that cannot be used is left out with a warning, so a broken
package never stops idiolect.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.metadata import entry_points, version
from pkgutil import iter_modules
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from idiolect.core.errors import ConfigError, require

T = TypeVar("T")
F = TypeVar("F", bound=FunctionType)
MARK = "idiolect_names"
"""The attribute of a function that `named` has marked."""
PACKAGES: dict[str, str] = {}
"""The packages that have provided something to this process, with their versions."""


class PluginWarning(UserWarning):
    """Something that an installed package provides cannot be used."""


class Registry(MutableMapping[str, T]):
    """Objects by name: idiolect's own, and, from the first look on, those that other packages provide.

    own: idiolect's; a function finds them at the first look, in modules that may import the registry's.
    group, taken: see `provided`.
    """

    def __init__(
        self, group: str, own: Mapping[str, T] | Callable[[], Mapping[str, T]], taken: Callable[[str, object], T]
    ) -> None:
        find = own if callable(own) else dict[str, T]
        self._known = {} if callable(own) else dict(own)
        self._pending: tuple[str, Callable[[], Mapping[str, T]], Callable[[str, object], T]] | None
        self._pending = group, find, taken

    def _all(self) -> dict[str, T]:
        if self._pending is not None:
            (group, find, taken), self._pending = self._pending, None  # first: what is loaded may look here, too
            self._known = {**find(), **self._known}
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


def named(name: str, **facts: Any) -> Callable[[F], F]:
    """Mark a function as that of a name; a function may have several names.

    Args:
        facts: What a registry holds of it next to the function. Each registry says which facts it takes.
    """

    def marked(function: F) -> F:
        setattr(function, MARK, {name: facts, **names_of(function)})
        return function

    return marked


def names_of(function: object) -> dict[str, dict[str, Any]]:
    """The names by which a function is marked, each with its facts, in the order of the decorators."""
    return getattr(function, MARK, {})


def facts_of(function: object, name: str, example: str = "") -> dict[str, Any]:
    """The facts of a function's name. Raises `ConfigError` for what has no such name, with facts as an example."""
    is_marked = callable(function) and name in names_of(function)
    require(is_marked, f"it is not a function marked by named({name!r}{example})")
    return names_of(function)[name]


def named_functions(package: str) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """The functions that `named` marks in all modules of a package: name -> (function, facts)."""
    found: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {}
    for function in _defined(import_module(package), FunctionType):
        for name, facts in names_of(function).items():
            if name in found:
                raise ConfigError(f"{found[name][0].__module__} and {function.__module__} both define '{name}'")
            found[name] = function, facts
    return found


def named_classes(package: ModuleType, *bases: type[Any]) -> list[type[Any]]:
    """The classes below any of `bases` that have a `name`, of all modules of a package; each in its own module."""
    classes = _defined(package, type)
    return [one for one in classes if issubclass(one, bases) and isinstance(vars(one).get("name"), str)]


def _defined(package: ModuleType, kind: type[T]) -> Iterator[T]:
    """The objects of a kind that modules of a package define, also in its sub-packages."""
    for file in sorted(iter_modules(package.__path__), key=lambda file: file.name):
        module = import_module(f"{package.__name__}.{file.name}")
        objects = [one for one in vars(module).values() if isinstance(one, kind)]
        yield from (one for one in objects if one.__module__ == module.__name__)
        if file.ispkg:
            yield from _defined(module, kind)


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
