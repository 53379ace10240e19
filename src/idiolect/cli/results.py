"""Print results. This module imports the report, which `terminal` must not."""

from pathlib import Path

from rich.text import Text

from idiolect.cli.terminal import console, print_json, resume_command
from idiolect.report.terminal import rich_extra, rich_table
from idiolect.report.view.as_json import to_dict
from idiolect.report.view.from_store import view_of
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import stored_options


def print_results(results: Results, as_json: bool, out: Path, skip: int = 0) -> None:
    """Print every cell's table with its notes, unfinished runs and how to resume them, and the paths of the files.

    skip: number of diverged runs, from the first, that are not printed, since the command's error names them.
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
        screen.print(Text(f"not finished: {names}{more}; resume with: {resume_command(out)}"), soft_wrap=True)
    for row in results.diverged()[skip:]:
        screen.print(Text(f"{row.id}: {row.message}", style="red"), soft_wrap=True)
    places = {"report, figures, CSV": out / "report.md", "client models": out / "models", "page": out / "report.html"}
    existing = [f"{kind}: {path}" for kind, path in places.items() if path.exists()]
    if existing:
        screen.print(Text("   ".join(existing)), soft_wrap=True)
