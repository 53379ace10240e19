"""The command predict: a table's raw rows by a model file, or each by its client's model."""

import sys
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from idiolect.api.predict import predict as predicted
from idiolect.cli.options import file_path
from idiolect.core.files import atomic_write
from idiolect.metrics.registry import METRICS

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
) -> None:
    """Predict raw rows: labels in the table's words, numbers in its units, and each class's probability."""
    found = predicted(model, table, with_input=with_input)
    shares = [name for name in found.frame.columns if name.startswith("P(")]
    content = _csv(found.frame.round(dict.fromkeys(shares, 6)))
    if out is None:
        sys.stdout.write(content.decode())
    else:
        with atomic_write(out) as file:
            file.write(content)
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
