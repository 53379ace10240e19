"""The commands predict, export and personalize: use a run's models, and make models for clients that join later."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from idiolect.cli.options import MORE, DataDir, Json, check_output, file_path, folder_path, one_table
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import print_json, print_outcome
from idiolect.core.errors import ConfigError, require
from idiolect.core.loading import loading

if TYPE_CHECKING:
    import pandas as pd

LONG = 100_000
"""Rows from which on speed matters more than the fewest quotation marks."""


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model file, or the folder of all clients' models, which predicts each row by its client's.",
            show_default=False,
        ),
    ],
    table: Annotated[
        Path,
        typer.Argument(metavar="TABLE", help="Rows with the columns of the training table.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", parser=file_path, metavar="FILE", help="The CSV file to write (default: print it)."
        ),
    ] = None,
    with_input: Annotated[bool, typer.Option("--with-input", help="Also write the columns of the table.")] = False,
    as_json: Json = False,
) -> None:
    """Predict raw rows: labels in the table's words, numbers in its units, and each class's probability.

    Examples:
    idiolect predict mine/models/penguins/ditto/seed0/personal new.csv
    idiolect predict personal-north.safetensors new.csv -o predictions.csv

    Writes: the CSV file of --out; without it the predictions are printed.
    """
    with loading():
        from idiolect.api.predict import predict as predicted
        from idiolect.cli.inputs import check_file
        from idiolect.core.files import atomic_write
        from idiolect.metrics.registry import METRICS
        from idiolect.report.view.as_json import plain
    check_file(table)
    if out is not None:
        check_output(out, model, table)
    found = predicted(model, table, with_input=with_input)
    shares = [name for name in found.frame.columns if name.startswith("P(")]
    rounded = found.frame.round(dict.fromkeys(shares, 6))
    if out is not None:
        with atomic_write(out) as file:
            file.write(_csv(rounded))
    elif not as_json:
        sys.stdout.write(_csv(rounded).decode())
    if as_json:
        rows = rounded.astype(object)
        value = {"scores": found.scores, "notes": found.notes, "rows": len(rows)}
        where = (
            {"out": str(out)} if out else {"predictions": rows.where(rows.notna(), None).to_dict(orient="records")}
        )
        print_json(plain({**value, **where}))
        return
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    scores = ", ".join(
        f"{METRICS[name].column} {value * METRICS[name].unit:.4g}{' %' if METRICS[name].percent else ''}"
        for name, value in found.scores.items()
    )
    if scores:
        print(f"on the labels of this table: {scores}", file=sys.stderr)
    if out is not None:
        print(f"{len(found.frame):,} predictions in {out}", file=sys.stderr)


def _csv(frame: "pd.DataFrame") -> bytes:
    """The table as CSV; a long one by pyarrow where that is installed, which takes a ninth of pandas' time."""
    if len(frame) >= LONG:
        try:
            from pyarrow import BufferOutputStream, Table, csv
        except ImportError:
            pass
        else:
            out = BufferOutputStream()
            csv.write_csv(Table.from_pandas(frame, preserve_index=False), out)
            return out.getvalue().to_pybytes()
    return frame.to_csv(index=False).encode()


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="safetensors, numpy or onnx.")
    ] = "safetensors",
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", parser=file_path, metavar="FILE", help="Without its suffix (default: ./MODEL's name)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model as plain arrays or as ONNX, and a JSON file with its schema, classes and shapes.

    Examples:
    idiolect export personal-north.safetensors
    idiolect export personal-north.safetensors --format onnx -o north

    Writes: FILE.safetensors, FILE.npz or FILE.onnx, and FILE.json; FILE is that of --out, by default MODEL-exported.
    """
    with loading():
        from idiolect.models.client_model import load_model
        from idiolect.models.export import export_model, exported_files
        from idiolect.study.store.model_files import INDEX
    if model.is_dir():
        first = next(iter(sorted(model.rglob("*.safetensors"))), None)
        hint = f"for example {first}" if first else "it holds none"
        raise ConfigError(f"'{model}' is a folder; name one model file in it, {hint}")
    kind: Any = format_
    target = out or Path(f"{model.stem}-exported")
    for file in exported_files(target, kind):
        check_output(file, model, model.parent / INDEX)
    files = [str(file) for file in export_model(load_model(model), target, kind)]
    print_outcome({"files": files}, files, as_json)


def personalize(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs.", show_default=False)],
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="The new clients' table: a CSV, Parquet, JSON or Excel file.", show_default=False
        ),
    ] = None,
    data: Annotated[str | None, typer.Option("--data", metavar="FILE", help="The same, as an option.")] = None,
    cell: Annotated[str, typer.Option("--cell", metavar="NAME", help="The cell, if the folder has several.")] = "",
    method: Annotated[
        str, typer.Option("--method", metavar="METHOD", help="The method, if the folder has several.")
    ] = "",
    seed: Annotated[
        int | None,
        typer.Option("--seed", rich_help_panel=MORE, metavar="N", help="The run's seed (default: the first)."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            rich_help_panel=MORE,
            metavar="N",
            help="Rounds of each new client by itself (default: as many as a known one had).",
        ),
    ] = None,
    client: Annotated[
        str, typer.Option("--client", metavar="COLUMN", help="The client column (default: the run's).")
    ] = "",
    label: Annotated[
        str, typer.Option("--label", metavar="COLUMN", help="The label column (default: the run's).")
    ] = "",
    test: Annotated[
        float,
        typer.Option(
            "--test", rich_help_panel=MORE, metavar="SHARE", help="The fraction of each client's rows to test on."
        ),
    ] = 0.25,
    split_seed: Annotated[
        int,
        typer.Option("--split-seed", rich_help_panel=MORE, metavar="N", help="The seed that draws the test rows."),
    ] = 0,
    curve: Annotated[
        bool,
        typer.Option("--curve/--no-curve", rich_help_panel=MORE, help="Also score with 1, 2, 5, ... own samples."),
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            parser=folder_path,
            metavar="FOLDER",
            help="Folder for the report and the models (default: RUN-TABLE, outside RUN).",
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Give new clients their models by a finished run's method; nothing of the run changes.

    Examples:
    idiolect personalize runs/penguins-1a2b3c newcomers.csv
    idiolect personalize runs/penguins-1a2b3c newcomers.csv --method ditto -o new

    Writes: the folder of --out, by default RUN-TABLE, with report.md, CSV files, figures and the new clients' models.
    """
    source = one_table(table, data)
    with loading():
        from idiolect.cli.inputs import check_file, check_runs
        from idiolect.data.sets.like import encode_like
        from idiolect.report.newcomers import check_new, write_newcomers
        from idiolect.study.run.finished import is_inside, load_finished
        from idiolect.study.run.personalized import COUNTS
        from idiolect.study.run.resolve import Workbench
        from idiolect.study.store.store import Store
    check_file(Path(source))
    target = out or Path(f"{Path(os.path.abspath(folder)).name}-{Path(source).stem}")
    require(not is_inside(target, folder), f"--out {target} is in the run's folder, which does not change")
    check_output(target, Path(source))
    check_runs(folder)
    check_new(target)
    with Store(folder, create=False) as store:
        loaded = load_finished(store, Workbench(data_dir), cell=cell, method=method, seed=seed)
    new = encode_like(loaded.data, source, client=client, label=label, test=test, split_seed=split_seed)
    with stoppable():
        made = loaded.finished.personalize(new, rounds)
        points = made.curve(COUNTS) if curve and new.test.count else None
        written = write_newcomers(loaded, made, points, target, this_command())
    if as_json:
        rows = made.table().astype(object)
        clients = rows.where(rows.notna(), None).to_dict(orient="records")
        print_json({"out": str(target), "run": loaded.row.id, "clients": clients, "files": written})
        return
    print((target / "report.md").read_text(), end="")
    print(f"\nreport, models: {target}")
