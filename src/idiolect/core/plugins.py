"""Methods, metrics and data sets that other installed packages provide by entry points.

    [project.entry-points."idiolect.methods"]    # a method's class
    fedmedian = "their_package.fedmedian:FedMedian"

The groups are `idiolect.methods`, `idiolect.metrics` and `idiolect.data`. Each registry reads its group once, when
it is imported. An object that cannot be used is left out with a warning, so a broken package never stops idiolect.
"""

import warnings
from collections.abc import Callable, Collection
from importlib.metadata import entry_points, version
from typing import TypeVar

from idiolect.core.errors import ConfigError

T = TypeVar("T")
PACKAGES: dict[str, str] = {}
"""The packages that have provided something to this process, with their versions."""


class PluginWarning(UserWarning):
    """Something that an installed package provides cannot be used."""


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
