"""Settings that come from a file or the command line: refuse an unknown key or a value of the wrong type."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack, get_args, get_origin

from idiolect.core.errors import ConfigError, unknown

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def keywords(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments, with those of a typed dictionary that it takes as keywords."""
    found: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _NAMED:
            found.append(parameter.name)
        elif get_origin(parameter.annotation) is Unpack:
            found += inspect.get_annotations(get_args(parameter.annotation)[0])
    return found


def check_keywords(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    what: str,
    *,
    hidden: Iterable[str] = (),
) -> None:
    """Refuse a key that the function does not take; hidden: arguments that a person does not give."""
    known = sorted(set(keywords(function)) - set(hidden))
    for key in given:
        if key not in known:
            raise unknown(f"key for {what}", key, known)


def check_type(label: str, value: Any, default: Any) -> None:
    """Refuse a value of another type than the setting's default."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, bool):
        good, wanted = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        good, wanted = number and float(value).is_integer(), "a whole number"
    elif isinstance(default, float):
        good, wanted = number, "a number"
    elif isinstance(default, tuple):
        entries = value if isinstance(value, list | tuple) else [value]
        good = all(isinstance(entry, int | float | str) and not isinstance(entry, bool) for entry in entries)
        wanted = "a list"
    elif isinstance(default, str):
        good, wanted = isinstance(value, str), "a name"
    else:  # default None: a rate or the name of an optimiser
        good, wanted = value is None or number or isinstance(value, str), "a number, a name or null"
    if not good:
        raise ConfigError(f"{label} = {value!r} must be {wanted}")
