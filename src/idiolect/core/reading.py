"""Read what a person or a file gives: a path, JSON, TOML. Each fault is an error of one kind."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, kind_of

_DEEP = "its lists or tables are nested too deeply"


def path_of(value: Any, wanted: str) -> Path:
    """Return the path that was given. Raises `ConfigError` unless it is a text or a path.

    wanted: what the argument must be, the beginning of the message: "a model is the path of its file".
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ConfigError(f"{wanted}, not {kind_of(value)}")
    return Path(value)


def json_of(content: str | bytes | bytearray) -> Any:
    """Parse JSON. Every fault is a `ValueError`, also a nesting deeper than Python can read."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(_DEEP) from None


def toml_of(text: str) -> dict[str, Any]:
    """Parse TOML. Every fault is a `tomllib.TOMLDecodeError`, also a nesting deeper than Python can read."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_DEEP) from None
