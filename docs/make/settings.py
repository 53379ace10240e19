"""The settings of a method in words: what each is, its unit and range, and when to change it."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from docs.make import notation
from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.registry import build, hyperparameters
from idiolect.core.errors import ConfigError
from idiolect.core.settings import settings_of

WORDS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "settings.toml").read_text())
SHAPES = {
    ("afl", "mixture"): "one number per client",
    ("mocha", "relation"): "a number per pair of clients",
    ("l2gd", "probability"): "number &gt; 0 and &lt; 1",
    ("mmfl", "modalities"): "names",
    ("mmfl-fusion", "modalities"): "names",
}
"""What a setting holds that is neither one number nor one word."""
POINTER = re.compile(r"^(?:see `[\w.]+`\.?|see above)$|^\W*$")
"""A docstring's text that only points elsewhere."""


def rows(cls: type[Algorithm], said: Mapping[str, str]) -> list[str]:
    """Return a line of the table per setting. said: what the docstrings say of each."""
    return [
        f"| `{key}` | `{value}` | {_unbroken(choices(cls, key))} | {meaning(cls.name, key, said.get(key, ''))} |"
        for key, value in hyperparameters(cls).items()
    ]


def _unbroken(text: str) -> str:
    return re.sub(r"(≥|≤|&[gl]t;) ", r"\1&nbsp;", text)


def in_words(name: str, key: str) -> str:
    """Return what a setting of a method is and when to change it; empty for a setting that nobody has described."""
    return WORDS.get(name, {}).get(key, WORDS["all"].get(key, ""))


def meaning(name: str, key: str, said: str) -> str:
    """Return the words on a setting, with its letter where the docstring gives one."""
    words = notation.symbols(in_words(name, key))
    letter = re.fullmatch(r"(\S{1,12})[.;]", said)
    if not words:
        return notation.inline(said)
    return f"{words} In the equations: {notation.inline(letter[1])}." if letter else words


def details(said: Mapping[str, str]) -> str:
    """Return what the docstrings say of each setting, in a box that opens."""
    lines = [f"    - `{key}`: {notation.inline(text)}" for key, text in said.items() if not POINTER.match(text)]
    return "\n".join(['??? note "The settings in the words of the source file"', "", *lines]) if lines else ""


def choices(cls: type[Algorithm], key: str) -> str:
    """Return the range of a setting, or the values that it can have, as the method itself checks them."""
    if (cls.name, key) in SHAPES:
        return SHAPES[cls.name, key]
    annotation = settings_of(cls)[key].annotation
    options = _literals(annotation)
    if options:
        return ", ".join(f"`{one}`" for one in options)
    default = hyperparameters(cls)[key]
    kinds = {annotation, *get_args(annotation)}
    if bool in kinds:
        return "`True`, `False`"
    if str in kinds:
        message = _refusal(cls, key, "no-such-word")
        found = re.search(r"(?:not one of|known:) (.*)$", message)
        words = [one.strip("'") for one in found[1].split(", ")] if found else []
        none = ["None"] if words and default is None else []
        return ", ".join(f"`{one}`" for one in [*none, *words]) or "a name"
    many = isinstance(default, tuple)
    if many and default and isinstance(default[0], float):
        return "numbers &gt; 0"
    if many:
        return "names"
    if int in kinds:
        return f"whole number, {_least(cls, key, -1)}"
    if isinstance(default, float) or default is None:
        low = _least(cls, key, -1.0)
        high = _refusal(cls, key, 2.0)
        top = " and ≤ 1" if "greater than 1" in high else " and &lt; 1" if "less than 1" in high else ""
        return f"number {low}{top}"
    return ""


def _least(cls: type[Algorithm], key: str, below: float) -> str:
    message = _refusal(cls, key, below)
    least = "≥ 1" if isinstance(below, int) else "&gt; 0"
    return least if "greater than 0" in message else "≥ 0" if "negative" in message else "any"


def _refusal(cls: type[Algorithm], key: str, value: Any) -> str:
    """Return what the method says of a value; empty if it takes it."""
    try:
        build({"name": cls.name, key: value})
    except ConfigError as error:
        return str(error)
    return ""


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(one) for one in get_args(annotation)]
    return [one for inner in get_args(annotation) for one in _literals(inner)]
