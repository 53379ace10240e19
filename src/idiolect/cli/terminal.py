"""The output of the command line: tables, notes, and hints."""

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])
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
    command = "idiolect" if error.ctx is None else error.ctx.command_path
    message = re.sub(r"'-\w' / '(--[\w-]+)'", r"'\1'", error.format_message().rstrip("."))
    return f"error: {message}; see: {command} --help", 2


def fail(message: str, code: int) -> NoReturn:
    """Print one line to standard error and exit with the code."""
    line = " ".join(message.splitlines())
    Console(stderr=True).print(line, style="red", soft_wrap=True, highlight=False, markup=False)
    sys.exit(code)
