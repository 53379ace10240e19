"""The command encode: a table, encoded once, in a folder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.cli.options import ClientColumn, Json, LabelColumn, Settings, assignments, folder_path
from idiolect.cli.stopping import stoppable
from idiolect.cli.terminal import print_outcome
from idiolect.core.errors import ConfigError
from idiolect.core.loading import loading


def encode(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="Your table; a Parquet file may be larger than memory.")
    ],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", parser=folder_path, metavar="FOLDER", help="The new folder.", show_default=False),
    ],
    client: ClientColumn = "client",
    label: LabelColumn = "label",
    set_: Settings = None,
    as_json: Json = False,
) -> None:
    """Encode a table once, into a folder that may be larger than memory.

    Clients, splits and features are as in the other commands, which then read the folder in place of the table. Give
    --client, --label and settings of the data here.

    Examples:
    idiolect encode patients.parquet --client ward --label outcome -o ward.data
    idiolect encode houses.csv --label price -o houses.data --set data.minimum=20

    Writes: the folder of --out, as large as the rows' features in single precision.
    """
    with loading():
        from idiolect.cli.inputs import data_spec
        from idiolect.core.settings import settings_of, validated
        from idiolect.data.sets.encoded import encode_table
        from idiolect.data.sets.table import from_table
        from idiolect.report.progress import SweepDisplay
    spec, name = data_spec(table, client, label)
    if spec["name"] != "table":
        raise ConfigError(f"'{table}' is a data set of its own; encode reads a table's file")
    given: dict[str, Any] = {"client": client, "label": label, "title": name}
    for key, value in assignments(set_).items():
        head, _, tail = key.partition(".")
        if head != "data" or not tail:
            raise ConfigError(f"--set {key}: encode takes settings of the data (data.minimum=20)")
        given[tail] = value
    options = validated(settings_of(from_table, hidden=("path",)), given, "the table")
    display = SweepDisplay(compiles=False)
    with stoppable(), display.shown():
        data = encode_table(spec["path"], out, on_progress=display.progress, **options)
    lines = [f"data: {out}", str(data), f"to compare methods: idiolect compare --data {out}"]
    print_outcome({"data": str(out), "fingerprint": data.fingerprint}, lines, as_json)
