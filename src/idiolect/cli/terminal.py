"""The output of the command line: tables, notes, and hints."""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from idiolect.cli.pages import REQUIRED, Page
from idiolect.report.extras import extras, rich_extra
from idiolect.report.table import rich_table
from idiolect.report.text import MISSING
from idiolect.report.to_json import to_dict
from idiolect.report.verdicts import verdict_sentence
from idiolect.study.results import Results

UsageError = cast("type[Exception]", typer.BadParameter.__bases__[0])
"""Click's error for a command that cannot be read; typer exports its sub-class alone."""


def console() -> Console:
    """A console as wide as the terminal, or 200 columns if the output is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    print(json.dumps(value, indent=2))


def print_told(value: dict[str, Any], lines: Sequence[str], as_json: bool) -> None:
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


def print_page(kind: str, name: str, page: Page, as_json: bool) -> None:
    """Print the page of a name: its text, its settings with their defaults, and how to set one."""
    if as_json:
        print_json({"name": name, "text": page.text, "settings": page.settings})
        return
    screen = console()
    screen.print(Text(page.text), soft_wrap=True)
    if not page.settings:
        return
    table = Table("setting", "default", box=None)
    for key, default in page.settings.items():
        table.add_row(Text(key, style="bold"), Text(_typed(default)))
    screen.print("\n", table)
    prefix = {"data": "data", "models": "model"}.get(kind, name)
    typed = {key: value for key, value in page.settings.items() if value not in (None, REQUIRED)} or page.settings
    key, value = next(iter(typed.items()))
    screen.print(Text(f"\nset one with, for example: --set {prefix}.{key}={_typed(value)}"))


def _typed(value: Any) -> str:
    """Format a value as it is typed after --set; a dash for None."""
    if value is None:
        return MISSING
    return value if isinstance(value, str) else json.dumps(value)


def print_results(results: Results, as_json: bool, out: Path, told: int = 0) -> None:
    """Print every cell's table with its notes, unfinished runs and how to resume them, and the paths of the files.

    told: this many of the diverged runs are left out, the first ones, which the command's error names.
    """
    if as_json:
        print_json(to_dict(results))
        return
    screen = console()
    for cell in results.experiment.cells:
        screen.print(rich_table(results, cell))
        for extra in extras(results, cell):
            screen.print(rich_extra(extra))
        for note in (*results.notes(cell), *results.audit(cell)):
            screen.print(Text.assemble(("note: ", "yellow"), note))
    if sentence := verdict_sentence(results):
        screen.print(sentence)
    if unfinished := results.unfinished():
        names = ", ".join(f"{row.id} at round {row.round}" for row in unfinished[:4])
        more = f" and {len(unfinished) - 4} more" if len(unfinished) > 4 else ""
        screen.print(Text(f"not finished: {names}{more}; go on with: {resume_command(out)}"), soft_wrap=True)
    for row in results.diverged()[told:]:
        screen.print(Text(f"{row.id}: {row.message}", style="red"), soft_wrap=True)
    places = {"report, figures, CSV": out / "report.md", "client models": out / "models", "page": out / "report.html"}
    existing = [f"{kind}: {path}" for kind, path in places.items() if path.exists()]
    if existing:
        screen.print(Text("   ".join(existing)), soft_wrap=True)


def told_file(kind: str, path: Path) -> None:
    """Print where a file is that a command has written."""
    console().print(Text(f"{kind}: {path}"), soft_wrap=True)


def resume_command(out: Path) -> str:
    """The command that resumes a stopped run."""
    return f"idiolect resume {shlex.quote(str(out))}"


def unreadable(error: Any) -> tuple[str, int]:
    """(message, exit code) for a command that cannot be parsed (click's `UsageError`)."""
    command = "idiolect" if error.ctx is None else error.ctx.command_path
    return f"error: {error.format_message().rstrip('.')}; see: {command} --help", 2


def fail(message: str, code: int) -> NoReturn:
    """Print one line to standard error and exit with the code."""
    line = " ".join(message.splitlines())
    Console(stderr=True).print(line, style="red", soft_wrap=True, highlight=False, markup=False)
    sys.exit(code)
