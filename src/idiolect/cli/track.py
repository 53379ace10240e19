"""The command track: runs sent to MLflow or TensorBoard."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.options import Json, MLflowTo, TensorBoardTo
from idiolect.cli.outputs import check_output
from idiolect.cli.terminal import print_told
from idiolect.core.errors import ConfigError
from idiolect.report.trackers.tracking import export, trackers_of


def track(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs, also while they are at work.")],
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Send runs to MLflow or TensorBoard: every number by round, the settings, and the files of finished runs.

    What is there already is not sent twice. With the same options demo, compare, run, resume, reproduce, sweep,
    federate and hub run send as they go.

    idiolect track runs/penguins-1a2b3c --mlflow tracked

    idiolect track runs/penguins-1a2b3c --tensorboard tracked --json
    """
    if not mlflow and not tensorboard:
        raise ConfigError("name where to: --mlflow FOLDER or an address, or --tensorboard FOLDER")
    for option, place in (("--mlflow", mlflow), ("--tensorboard", tensorboard)):
        if place and "://" not in place:
            check_output(Path(place), folder, option=option)
    trackers = trackers_of(mlflow, tensorboard)
    try:
        count = export(folder, trackers, final=True)
    finally:
        for tracker in trackers:
            tracker.close()
    places = [tracker.where for tracker in trackers]
    runs = "1 run" if count == 1 else f"{count} runs"
    print_told({"runs": count, "see": places}, [f"{runs} sent; see: {place}" for place in places], as_json)
