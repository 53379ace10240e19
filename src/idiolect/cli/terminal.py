"""The output of the command line: tables, notes, and hints."""

import json
import re
import shlex
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from idiolect.core.errors import in_words

UsageError: Any = cast("type[Exception]", typer.BadParameter.__bases__[0])
"""Click's error for a command that cannot be read; typer exports only its sub-class."""


def console() -> Console:
    """A console as wide as the terminal, or 200 columns if the output is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    print(json.dumps(value, indent=2))


def print_outcome(value: dict[str, Any], lines: Sequence[str], as_json: bool) -> None:
    """Print what a command has done: one JSON object, or lines."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        console().print(Text(line), soft_wrap=True)


def print_entries(entries: dict[str, str]) -> None:
    """Print names, each with a line about it."""
    table = Table(show_header=False, box=None)
    for entry, text in entries.items():
        table.add_row(Text(entry, style="bold"), Text(text))
    console().print(table)


def print_file(kind: str, path: Path) -> None:
    """Print where a file is that a command has written."""
    console().print(Text(f"{kind}: {path}"), soft_wrap=True)


def resume_command(out: Path) -> str:
    """The command that resumes a stopped run."""
    return f"idiolect resume {shlex.quote(str(out))}"


def unreadable(error: Any) -> tuple[str, int]:
    """(message, exit code) for a command that cannot be parsed (click's `UsageError`)."""
    command = _typed_command() if error.ctx is None else error.ctx.command_path
    return f"error: {_usage(error)}; see: {command} --help", 2


_CLICK = {
    r"'-\w' / '(--[\w-]+)'": r"'\1'",
    r"'[^']*' is not a valid (integer|int)$": "it must be a whole number",
    r"'[^']*' is not a valid (float|number)$": "it must be a number",
    r"\S+ is not in the range x>=(\S+)$": r"it must be at least \1",
}
"""What click says, and what a user reads."""


def _usage(error: Any) -> str:
    """What is wrong with a command, in a user's words."""
    message = error.format_message().rstrip(".").removeprefix("Invalid value: ")
    for pattern, words in _CLICK.items():
        message = re.sub(pattern, words, message)
    if found := re.match(
        r"No such (option|command):? '?([^ .']+)'?\W+(?:Did you mean|Possible options)(.*)", message
    ):
        names = [one for one in re.findall(r"[\w-]+", found[3]) if one not in ("one", "of")]
        near = get_close_matches(found[2], names, n=1, cutoff=0.0)
        return f"No such {found[1]}: {found[2]}; did you mean {near[0]}?"
    if found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        return f"too many arguments: {found[1]}"
    if found := re.match(r"Option '(.*)' requires an argument", message):
        return f"{found[1]} needs a value"
    if found := re.match(r"(Invalid value for .*?: )(.*)", message):
        return f"{found[1]}{_choice(in_words(found[2]))}"
    words = getattr(getattr(error, "param", None), "help", None)
    return f"{message}: {words.rstrip('.')}" if message.startswith("Missing") and words else message


def _choice(message: str) -> str:
    """A refused value with the nearest one that may be given."""
    found = re.match(r"('.*') is not one of (.*)", message)
    if not found:
        return f"it {message}" if message.startswith("must ") else message
    near = get_close_matches(found[1].strip("'"), re.findall(r"'(.*?)'", found[2]), n=1, cutoff=0.5)
    return f"{message}; did you mean '{near[0]}'?" if near else message


def _typed_command() -> str:
    """The command that was typed, without its options: idiolect hub run."""
    words = list(takewhile(lambda word: re.fullmatch(r"[a-z]+", word), sys.argv[1:3]))
    return " ".join(["idiolect", *(words if words[:1] in (["hub"], ["site"]) else words[:1])])


def fail(message: str, code: int) -> NoReturn:
    """Print one line to standard error and exit with the code."""
    line = " ".join(message.splitlines())
    Console(stderr=True).print(line, style="red", soft_wrap=True, highlight=False, markup=False)
    sys.exit(code)
