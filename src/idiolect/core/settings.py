"""Settings that come from a file or the command line, checked against the signature of what takes them.

One validator for methods, models, data sets, partitions and graphs: a signature names the settings, their
types and their defaults; pydantic checks the values. Only plain values are settings (numbers, texts, true and false,
null, lists and tables of them): what else an annotation allows, an array or a function, can be given only from
Python.
"""

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from operator import index
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, Unpack, get_args, get_origin

from annotated_types import Interval
from pydantic import AllowInfNan, BeforeValidator, Strict, TypeAdapter, ValidationError

from idiolect.core.errors import ConfigError, shortened, unknown

REQUIRED: Any = inspect.Parameter.empty
MOST = 2**31 - 1
"""The largest whole number of a compiled program, which counts with 32 bits."""
LARGEST = float(2**128 - 2**104)
"""The largest number that a 32-bit float holds: what is beyond it would be infinite in a compiled program."""
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Setting(NamedTuple):
    """What may be given under a name: the type as annotated, and the default (`REQUIRED` if there is none)."""

    annotation: Any
    default: Any = REQUIRED


@dataclass(frozen=True)
class Words:
    """Inside `Annotated`: what a value must be, in words."""

    text: str


def settings_of(owner: Callable[..., Any], hidden: Iterable[str] = ()) -> dict[str, Setting]:
    """The settings that a function or a dataclass takes, by name.

    The keys of a typed dictionary that a function takes as keywords are among them. hidden: arguments that are not
    settings. Of a dataclass: the fields with a default.
    """
    if is_dataclass(owner):
        found = {f.name: Setting(f.type, f.default) for f in fields(owner) if f.init and f.default is not MISSING}
    else:
        found = {}
        for parameter in inspect.signature(owner).parameters.values():
            if parameter.kind in _NAMED:
                found[parameter.name] = Setting(parameter.annotation, parameter.default)
            elif get_origin(parameter.annotation) is Unpack:
                keys = inspect.get_annotations(get_args(parameter.annotation)[0])
                found |= {key: Setting(annotation, None) for key, annotation in keys.items()}
    return {name: setting for name, setting in found.items() if name not in {*hidden}}


def validated(
    settings: Mapping[str, Setting], given: Mapping[str, Any], what: str, prefix: str | None = None
) -> dict[str, Any]:
    """The given values, checked: a whole number where a float is meant becomes one, as 3.0 becomes 3.

    what: whose settings they are; prefix: what stands before a key in errors, `what` and a colon by default.
    Raises `ConfigError`, one line, for an unknown key (with the nearest known one), a missing one, or a value of
    another type.
    """
    for key in given:
        if key not in settings:
            raise unknown(f"key of {what}", str(key), settings)
    for key, setting in settings.items():
        if setting.default is REQUIRED and key not in given:
            raise ConfigError(f"{what} needs {key}, which must be {words(setting.annotation)}")
    start = f"{what}: " if prefix is None else prefix
    return {key: checked(settings[key].annotation, value, f"{start}{key}") for key, value in given.items()}


def checked(annotation: Any, value: Any, label: str) -> Any:
    """One value, checked against a type; `ConfigError` names it by its label."""
    try:
        return _reader(annotation)(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if isinstance(cause := detail.get("ctx", {}).get("error"), ConfigError):
                raise cause from None
    wanted = words(annotation)
    if isinstance(value, float) and not math.isfinite(value):
        wanted = wanted.replace("a number", "a finite number")
    elif isinstance(value, int | float) and abs(value) > LARGEST:
        wanted = f"{wanted}, and of at most {LARGEST:.3g}"
    options = [str(option) for member in _members(annotation) for option in _options(member)]
    near = get_close_matches(value, options, n=1, cutoff=0.5) if isinstance(value, str) else []
    raise ConfigError(f"{label} = {_short(value)} must be {wanted}{f'; did you mean {near[0]!r}?' if near else ''}")


def whole(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """A whole number in its range, as an int; raises `ConfigError` that names the argument."""
    wanted = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = int(value) if isinstance(value, float) and value.is_integer() else None
    if number is None or number < least or (most is not None and number > most):
        raise ConfigError(f"{name} = {shortened(value)} must be {wanted}")
    return number


def words(annotation: Any) -> str:
    """What a value of a type must be, in words: "a number, a name or null"."""
    parts: list[str] = []
    for member in _members(annotation):
        if member is None or member is types.NoneType:
            parts.append("null")
        elif texts := [word.text for word in getattr(member, "__metadata__", ()) if isinstance(word, Words)]:
            parts.append(texts[0])
        elif options := _options(member):
            parts += [repr(option) for option in options]
        elif (kind := _list_of(member)) is not None:
            several = {words(part).replace("a ", "", 1) for part in kind}
            parts.append(f"a list of {'s or '.join(sorted(several))}s")
        elif get_origin(member) in (dict, Mapping):
            parts.append("a table")
        else:
            parts.append(_NAMES.get(member, "a plain value"))
    parts = list(dict.fromkeys(parts))
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def json_schema(annotation: Any) -> dict[str, Any]:
    """The JSON schema of a setting's plain values, without null, which TOML does not have."""
    kinds = [_json(member) for member in _members(annotation) if member not in (None, types.NoneType)]
    kinds = [kind for at, kind in enumerate(kinds) if kind not in kinds[:at]]
    if not kinds:  # what only Python can give is checked where it is used
        return {}
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _json(member: Any) -> dict[str, Any]:
    if options := _options(member):
        return {"enum": [*options]}
    if (entries := _list_of(member)) is not None:
        inner = json_schema(entries[0]) if entries else {}
        several = {"type": "array", "items": inner}
        return {"anyOf": [inner, several]} if get_origin(member) is tuple and inner else several
    if get_origin(member) is Annotated:
        base, *extra = get_args(member)
        kind = json_schema(base)
        if kind.get("type") == "array" and any(isinstance(one, BeforeValidator) for one in extra):
            return {"anyOf": [kind["items"], {**kind, **_bounds(extra)}]}
        return {**kind, **_bounds(extra)}
    if get_origin(member) in (dict, Mapping):
        return {"type": "object"}
    return {"type": _JSON[member]}


def _bounds(extra: Iterable[Any]) -> dict[str, Any]:
    """The bounds that an annotated type has, but for the largest numbers of 32 bits."""
    found = {word: getattr(one, key, None) for key, word in _BOUNDS.items() for one in extra if hasattr(one, key)}
    return {word: value for word, value in found.items() if value is not None and abs(value) < MOST}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 80 else f"{shown[:76]}..."


@cache
def _reader(annotation: Any) -> Callable[[Any], Any]:
    return TypeAdapter(_plain(annotation)).validate_python


def _plain(annotation: Any) -> Any:
    """The type of the plain values among those that an annotation allows, strict about what is what."""
    members = [_plain_member(member) for member in _members(annotation)]
    return Union[tuple(members)] if members else Any  # noqa: UP007


def _plain_member(member: Any) -> Any:
    if (kind := _list_of(member)) is not None:
        inner = _plain(kind[0]) if kind else Any
        return Annotated[tuple[inner, ...], BeforeValidator(_several)] if get_origin(member) is tuple else list[inner]
    return _STRICT.get(member, member)


def _members(annotation: Any) -> list[Any]:
    """The types of a union, or the type itself; of those, the ones whose values are plain."""
    union = get_origin(annotation) in (Union, types.UnionType)
    members = [one for part in get_args(annotation) for one in _members(part)] if union else [annotation]
    plain = [member for member in members if _is_plain(member)]
    return [member for member in plain if member is not str] if Path in plain else plain


def _is_plain(member: Any) -> bool:
    if member in (None, types.NoneType, Path, *_STRICT):
        return True
    origin = get_origin(member)
    return origin in (Literal, Annotated, dict, Mapping) or _list_of(member) is not None


def _list_of(member: Any) -> tuple[Any, ...] | None:
    """The types of a list's or tuple's entries; None if the type is neither."""
    if get_origin(member) not in (tuple, list, Sequence):
        return None
    return tuple(part for part in get_args(member) if part is not Ellipsis)[:1]


def _options(member: Any) -> tuple[Any, ...]:
    return get_args(member) if get_origin(member) is Literal else ()


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _several(value: Any) -> Any:
    """A lone value stands for a list of one."""
    return (value,) if isinstance(value, str | int | float) and not isinstance(value, bool) else value


_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a name",
    Path: "a path",
}
_BOUNDS = {
    **{"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"},
    **{"min_length": "minItems", "max_length": "maxItems"},
}
_JSON: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}
Whole = Annotated[int, Strict(), BeforeValidator(_whole)]
"""A whole number, also written as 3.0; no text, and neither true nor false."""
Number = Annotated[float, Strict(), AllowInfNan(False), Interval(ge=-LARGEST, le=LARGEST)]
"""A finite number that a 32-bit float holds."""
_STRICT: dict[Any, Any] = {
    bool: Annotated[bool, Strict()],
    int: Whole,
    float: Number,
    str: Annotated[str, Strict()],
    Path: Annotated[str, Strict()],  # as text, which JSON can hold
}
