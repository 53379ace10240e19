"""What commands print of a name's page and of results. It imports the report, which `terminal` must not."""

import json
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from idiolect.cli.pages import REQUIRED, Page
from idiolect.cli.terminal import console, print_json, resume_command
from idiolect.report.terminal import rich_extra, rich_table
from idiolect.report.text import MISSING
from idiolect.report.view.as_json import to_dict
from idiolect.report.view.from_store import view_of
from idiolect.study.launch import stored_options
from idiolect.study.results import Results


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
        print_json(to_dict(view_of(results, str(stored_options(results.store)["command"]))))
        return
    screen, view = console(), view_of(results, clients=False)
    for part in view.parts:
        screen.print(rich_table(part))
        for extra in part.extras:
            screen.print(rich_extra(extra))
        for note in (*part.notes, *(part.audit or ())):
            screen.print(Text.assemble(("note: ", "yellow"), note))
    if view.verdict:
        screen.print(view.verdict)
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
