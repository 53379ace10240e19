"""What docstrings say of each setting: `rate, epochs: what they are.` Cards, the help and the schema show it."""

import re
from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

POINTS = re.compile(r",? ?see `\w+`")
"""The end of an explanation that is in another docstring."""
_NAME = r"([a-z][a-z0-9_]*(?:(?: \([^()]*\))?, [a-z][a-z0-9_]*)*(?: \([^()]*\))?)"
_SETTING = re.compile(rf"(?:^|(?<=[.;)\]] ))(?<!\w){_NAME}: ")
_ELSEWHERE = re.compile(r"\s*(?:The rest|The others): (?:see|as) (?:`\w+`(?: and )?)+\.$")


def text_of(described: Any) -> str:
    """A docstring without its indentation."""
    return cleandoc(described.__doc__ or "")


def explained(text: str, known: set[str]) -> tuple[dict[str, str], str]:
    """(what is said of each setting, the text without it). In a docstring: `rate, epochs: what they are.`"""
    said: dict[str, str] = {}
    kept: list[str] = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        first = next(
            (at for at, line in enumerate(lines) if (m := _SETTING.match(line)) and known & {*_words(m[1])}), 0
        )
        flat = " ".join(" ".join(lines[first:]).split())
        places = [m for m in _SETTING.finditer(flat) if known & {*_words(m[1])}]
        before = [*lines[:first], flat[: places[0].start()].strip()] if places else lines
        kept += ["\n".join(line for line in before if line)] if any(before) else []
        for at, place in enumerate(places):
            end = places[at + 1].start() if at + 1 < len(places) else len(flat)
            sentence = _ELSEWHERE.sub("", flat[place.end() : end].strip())
            said |= {one: sentence for one in _words(place[1]) if one in known}
    return said, "\n\n".join(kept)


def _words(names: str) -> list[str]:
    return re.split(r", ", re.sub(r" \([^()]*\)", "", names))


def meanings(texts: Iterable[str], known: set[str]) -> dict[str, str]:
    """What docstrings say of each setting; an earlier one goes before a later one, unless it points to that one."""
    said: dict[str, str] = {}
    for text in reversed([*texts]):
        found = explained(text, known)[0]
        said |= {key: words for key, words in found.items() if key not in said or not POINTS.search(words)}
    return said
