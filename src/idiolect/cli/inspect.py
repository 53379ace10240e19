"""The command inspect: what a table holds, before anything is trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from idiolect.cli.options import ClientColumn, Json, LabelColumn, one_table
from idiolect.cli.terminal import console, print_json
from idiolect.core.errors import ConfigError
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.data.inspection import Inspection

SHOWN = 30


def inspect(
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="Your table: a CSV, Parquet, JSON or Excel file.", show_default=False),
    ] = None,
    data: Annotated[str | None, typer.Option("--data", metavar="FILE", help="The same, as an option.")] = None,
    client: ClientColumn = "client",
    label: LabelColumn = "label",
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TASK", help="classification or regression (default: by the labels)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Inspect a table: clients, labels, columns, gaps, suspected identifiers and leaks, and the command to run.

    A table that cannot be trained on yet is shown too, with what to mend in it.

    Examples:
    idiolect inspect patients.csv --client hospital --label outcome
    idiolect inspect houses.xlsx --client town --label price --task regression

    Writes: nothing.
    """
    source = one_table(table, data)
    with loading():
        from idiolect.cli.inputs import check_file, looks_like_file
        from idiolect.data.inspection import inspect_table
        from idiolect.data.sets.registry import SOURCES
    if source in SOURCES and not looks_like_file(source) and not Path(source).exists():
        raise ConfigError(
            f"'{source}' is a named data set; inspect reads a table's file. See: idiolect list data {source}"
        )
    check_file(Path(source))
    found = inspect_table(source, client, label, task=task)
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


def _clients(found: "Inspection") -> Table:
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


def _columns(found: "Inspection") -> Table:
    table = Table("column", box=None, title="columns")
    table.add_column("missing", justify="right")
    table.add_column("distinct", justify="right")
    table.add_column("what would be done")
    for one in found.columns[:200]:
        table.add_row(one.name, f"{one.missing:.0%}" if one.missing else "", f"{one.distinct:,}", one.done)
    return table
