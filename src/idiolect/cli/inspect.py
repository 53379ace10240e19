"""The command inspect: what a table holds, before anything is trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from idiolect.cli.options import ClientColumn, Json, LabelColumn
from idiolect.cli.terminal import console, print_json
from idiolect.data.inspection import Inspection, inspect_table

SHOWN = 30


def inspect(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="A table: CSV, Parquet, JSON or Excel.")],
    client: ClientColumn = "client",
    label: LabelColumn = "label",
    task: Annotated[str | None, typer.Option("--task", help="classification or regression.")] = None,
    as_json: Json = False,
) -> None:
    """Inspect a table: clients, labels, columns, gaps, suspected identifiers and leaks, and the command to run.

    A table that cannot be trained on yet is shown too, with what to mend in it.

    idiolect inspect patients.csv --client hospital --label outcome
    """
    found = inspect_table(table, client, label, task=task)
    if as_json:
        print_json(found.to_dict())
        return
    out = console()
    out.print(f"{found.where}: {found.rows:,} rows, {len(found.clients):,} clients, {found.task}", markup=False)
    out.print(_clients(found))
    out.print(_columns(found))
    for line in found.faults:
        out.print(Text(f"to correct: {line}", style="red"), soft_wrap=True)
    for line in found.notes:
        out.print(Text(f"note: {line}"), soft_wrap=True)
    for line in found.suspicions:
        out.print(Text(f"check: {line}", style="yellow"), soft_wrap=True)
    then = "to compare methods, once the table is corrected" if found.faults else "to compare methods"
    out.print(Text(f"{then}: {found.command}"), soft_wrap=True)


def _clients(found: Inspection) -> Table:
    table = Table("client", box=None, title="clients")
    names = list(found.labels)
    shown = names[:8] if found.task == "classification" else names
    for heading in ("rows", *shown):
        table.add_column(heading, justify="right")
    form = "{:,.0f}" if found.task == "classification" else "{:.4g}"
    gaps = sum(one.unlabelled for one in found.clients)
    if gaps:
        table.add_column("no label", justify="right")

    def add(name: str, rows: int, labels: Mapping[str, float], unlabelled: int) -> None:
        numbers = [form.format(labels[name]) if name in labels else "" for name in shown]
        table.add_row(name, f"{rows:,}", *numbers, *([f"{unlabelled:,}"] if gaps else []))

    for one in found.clients[:SHOWN]:
        add(one.name, one.rows, one.labels, one.unlabelled)
    if len(found.clients) > SHOWN:
        table.add_row(f"… {len(found.clients) - SHOWN:,} more", "")
    add("all", found.rows, found.labels, gaps)
    return table


def _columns(found: Inspection) -> Table:
    table = Table("column", box=None, title="columns")
    table.add_column("missing", justify="right")
    table.add_column("distinct", justify="right")
    table.add_column("what would be done")
    for one in found.columns[:200]:
        table.add_row(one.name, f"{one.missing:.0%}" if one.missing else "", f"{one.distinct:,}", one.done)
    return table
