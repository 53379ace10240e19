"""Print results and advice. This module imports the report, which `terminal` must not."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markdown import Markdown
from rich.text import Text

from idiolect.cli.terminal import console, print_file, print_json, resume_command
from idiolect.report.html.render import PAGE
from idiolect.report.terminal import in_short, rich_extra, rich_table
from idiolect.report.view.as_json import to_dict
from idiolect.report.view.from_store import view_of
from idiolect.study.advice.advise import Advice
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
    if len(view.parts) > 1:
        for part, cell in zip(view.parts, results.experiment.cells, strict=True):
            screen.print(in_short(part, cell.note))
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


def print_advice(advice: Advice, folder: Path, as_json: bool) -> None:
    """Print an advice, and where its folder has the pages."""
    from idiolect.report.advice import page  # here: it loads slowly, and most commands never need it

    if as_json:
        print_json({**advice_values(advice), "folder": str(folder)})
        return
    console().print(Markdown(page(advice, figure=False)))
    console().print(f"page, tables, figure: {folder / 'advice.md'}", markup=False, highlight=False, soft_wrap=True)
    if (folder / PAGE).is_file():
        print_file("HTML page", folder / PAGE)


def advice_values(advice: Advice) -> dict[str, Any]:
    """The advice as plain values."""
    from idiolect.report.advice import answer  # here: it loads slowly, and most commands never need it

    decision = advice.decision
    plain = {
        "outcome": decision.outcome,
        "method": decision.method,
        "answer": answer(advice),
        "why": decision.why,
        "loss": advice.loss_name,
        "gain": _plain(decision.gain),
        "beyond": _plain(decision.beyond),
        "tested": [_plain(one) for one in decision.tested],
        "trees": None if decision.trees is None else {"name": decision.trees[0], **_plain(decision.trees[1])},
        "clients": [_plain(one) for one in decision.clients],
        "lines": [_plain(one) for one in advice.lines],
        "notes": list(advice.notes),
    }
    return _finite(plain)


def _plain(value: Any) -> Any:
    return None if value is None else asdict(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
