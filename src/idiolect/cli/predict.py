"""The command predict: a table's raw rows by a model file, or each by its client's model."""

import sys
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from idiolect.api.predict import predict as predicted
from idiolect.cli.options import Json, file_path
from idiolect.cli.outputs import check_output
from idiolect.cli.terminal import print_json
from idiolect.core.files import atomic_write
from idiolect.metrics.registry import METRICS
from idiolect.report.view.as_json import plain

LONG = 100_000
"""Rows from which on speed matters more than the fewest quotation marks."""


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A model file, or the folder of all clients' models: each row by its client's."
        ),
    ],
    table: Annotated[Path, typer.Argument(metavar="NEW.csv", help="Rows with the columns of the training table.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", parser=file_path, metavar="FILE", help="The CSV file to write (default: print it)."),
    ] = None,
    with_input: Annotated[bool, typer.Option("--with-input", help="Also write the columns of the table.")] = False,
    as_json: Json = False,
) -> None:
    """Predict raw rows: labels in the table's words, numbers in its units, and each class's probability.

    idiolect predict runs/penguins-1a2b3c/models/penguins/ditto/seed0 new.csv --out predictions.csv
    """
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


def _csv(frame: pd.DataFrame) -> bytes:
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
