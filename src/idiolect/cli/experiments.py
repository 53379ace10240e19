"""The commands demo, run, resume and reproduce: experiments that a file or a folder describes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.cli.execute import execute
from idiolect.cli.options import (
    DataDir,
    Debug,
    Jobs,
    Json,
    MetricName,
    MLflowTo,
    Models,
    Out,
    Saved,
    Settings,
    Splits,
    TensorBoardTo,
    assignments,
    default_folder,
    seeding,
)
from idiolect.cli.outputs import check_output
from idiolect.core.errors import StoreError
from idiolect.experiments import packaged
from idiolect.study.advice.stored import how_it_goes_on, is_advice
from idiolect.study.run.launch import stored_options
from idiolect.study.spec.change import located, override
from idiolect.study.spec.experiment import load_experiment
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import Store


def demo(
    out: Out = None,
    jobs: Jobs = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Compare methods on a small synthetic federation: two minutes, no download.

    idiolect demo --out demo
    """
    experiment = packaged("demo")
    target = out or Path("demo")
    execute(experiment, target, jobs=jobs, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)


def run(
    experiment_file: Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml")],
    metric: MetricName = "",
    set_: Settings = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A cell, a method, or cell/method.")] = None,
    out: Out = None,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    save_models: Models = Saved.first,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    debug: Debug = False,
    as_json: Json = False,
) -> None:
    """Run an experiment file; what the folder already has is not run again.

    idiolect run hospitals.toml --only fedavg --set rounds=50 --out hospitals
    """
    if out is not None:
        check_output(out, experiment_file)
    changed = assignments(set_, metric)
    experiment = override(load_experiment(experiment_file), changed).only(tuple(only or ()))
    target = out or default_folder(experiment, changed)
    check_output(target, experiment_file)
    options: dict[str, Any] = {"jobs": jobs, "save_models": save_models.value, "debug": debug}
    execute(experiment, target, folder=data_dir, **options, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that was stopped.")],
    data: Annotated[str | None, typer.Option("--data", help="Where the run's table is now, if it has moved.")] = None,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    save_models: Annotated[Saved | None, typer.Option("--save-models", help="As before, unless given.")] = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Resume an interrupted run; the result is identical to an uninterrupted one.

    idiolect resume runs/penguins-1a2b3c
    """
    if is_advice(folder):
        raise StoreError(how_it_goes_on(folder))
    with Store(folder, create=False) as store:
        experiment, stored = stored_experiment(store), stored_options(store)
    experiment = located(experiment, folder, stored["started_in"], data)
    options = {
        "folder": data_dir or stored["folder"],
        "save_models": stored["save_models"] if save_models is None else save_models.value,
        "command": stored["command"],
    }
    execute(experiment, folder, jobs=jobs, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json, **options)


def reproduce(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="For example pfedme/table1.")],
    protocol: Annotated[str, typer.Option("--protocol", help="as-written or as-published.")] = "as-written",
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Number of seeds.")] = None,
    splits: Splits = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A cell, a method, or cell/method.")] = None,
    metric: MetricName = "",
    set_: Settings = None,
    out: Out = None,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    save_models: Models = Saved.none,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Run a paper's table or figure and set it beside the published values.

    idiolect reproduce pfedme/table1 --only mnist-clean-mlr --seeds 3
    """
    experiment = packaged(name, protocol)
    changed = assignments(set_, metric) | seeding(seeds, splits)
    experiment = override(experiment, changed).only(tuple(only or ()))
    target = out or default_folder(experiment, changed)
    options: dict[str, Any] = {"jobs": jobs, "save_models": save_models.value}
    execute(experiment, target, folder=data_dir, **options, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)
