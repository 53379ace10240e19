"""The command `personalize`: models for clients that join after training."""

import os
from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.options import DataDir, Json, Out
from idiolect.cli.outputs import check_output
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import print_json
from idiolect.core.errors import ConfigError, require
from idiolect.data.sets.like import encode_like
from idiolect.study.run.finished import is_inside, load_finished
from idiolect.study.run.personalized import COUNTS
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.store import Store


def personalize(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs.")],
    data: Annotated[str, typer.Option("--data", help="The new clients' table: CSV, Parquet, JSON or Excel.")],
    cell: Annotated[str, typer.Option("--cell", help="The cell, if the folder has several.")] = "",
    method: Annotated[str, typer.Option("--method", help="The method, if the folder has several.")] = "",
    seed: Annotated[int | None, typer.Option("--seed", help="The run's seed (default: the first).")] = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", help="Rounds of each new client alone (default: as many as a known one had)."),
    ] = None,
    client: Annotated[str, typer.Option("--client", help="The client column (default: the run's).")] = "",
    label: Annotated[str, typer.Option("--label", help="The label column (default: the run's).")] = "",
    test: Annotated[float, typer.Option("--test", help="The fraction of each client's rows to test on.")] = 0.25,
    split_seed: Annotated[int, typer.Option("--split-seed", help="Draws these rows.")] = 0,
    curve: Annotated[bool, typer.Option(help="Also score with 1, 2, 5, ... own samples.")] = True,
    out: Out = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Give new clients their models by a finished run's method; nothing of the run changes.

    idiolect personalize runs/penguins-1a2b3c --data newcomers.csv --method ditto
    """
    from idiolect.report.newcomers import (  # here: it loads slowly, and most commands never need it
        check_new,
        write_newcomers,
    )

    target = out or Path(f"{Path(os.path.abspath(folder)).name}-{Path(data).stem}")
    require(not is_inside(target, folder), f"--out {target} lies in the run's folder, which stays as it is")
    check_output(target, Path(data))
    if not Path(data).is_file():
        raise ConfigError(f"--data {data}: no such file")
    check_new(target)
    with Store(folder, create=False) as store:
        loaded = load_finished(store, Workbench(data_dir), cell=cell, method=method, seed=seed)
    new = encode_like(loaded.data, data, client=client, label=label, test=test, split_seed=split_seed)
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
