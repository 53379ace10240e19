"""Settings that come from a file or the command line: refuse an unknown key and name the nearest one."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from idiolect.errors import unknown

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def keywords(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in _NAMED]


def check_keywords(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    what: str,
    *,
    hidden: Iterable[str] = (),
    also: Iterable[str] = (),
) -> None:
    """Refuse a key that the function does not take.

    hidden: arguments that a person does not give; also: keys that the function passes on.
    """
    known = sorted({*keywords(function), *also} - set(hidden))
    for key in given:
        if key not in known:
            raise unknown(f"key for {what}", key, known)
