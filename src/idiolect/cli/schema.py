"""The command schema: the JSON schema of experiment files, for an editor."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.options import Json, file_path
from idiolect.cli.terminal import print_json, print_outcome
from idiolect.core.loading import loading


def schema(
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", parser=file_path, metavar="FILE", help="The file to write (default: print it)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the JSON schema of experiment files, with which an editor completes and checks them.

    In the first line of an experiment file, name the file of the schema: #:schema ./idiolect.schema.json

    Examples:
    idiolect schema
    idiolect schema -o idiolect.schema.json

    Writes: the file of --out; without it the schema is printed.
    """
    with loading():
        from idiolect.cli.experiment_schema import experiment_schema, text_of_schema
        from idiolect.core.files import write_text
    if out is None:
        print_json(experiment_schema())
        return
    write_text(out, text_of_schema(), shared=True)
    lines = [f"schema: {out}", f"first line of an experiment file in the same folder: #:schema ./{out.name}"]
    print_outcome({"schema": str(out)}, lines, as_json)
