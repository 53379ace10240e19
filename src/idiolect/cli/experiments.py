"""The commands demo, run, resume, reproduce and compare: launch an experiment, print its results, resume it."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from idiolect.cli.options import (
    START,
    ClientColumn,
    Cohort,
    Data,
    DataDir,
    Debug,
    EvalEvery,
    Jobs,
    Json,
    LabelColumn,
    MetricName,
    MLflowTo,
    ModelName,
    Models,
    Out,
    Rounds,
    SamplingKind,
    Saved,
    Seeds,
    Settings,
    Splits,
    TensorBoardTo,
    assignments,
    check_output,
    data_spec,
    default_folder,
    inputs_of,
    seeding,
    with_auto_model,
)
from idiolect.cli.results import print_results
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import resume_command
from idiolect.core.errors import StoreError
from idiolect.experiments import packaged
from idiolect.report.launch import launch
from idiolect.report.trackers.tracking import tracked, trackers_of
from idiolect.runtime.distributed import speaks_of_a_loss
from idiolect.study.advice.stored import how_it_goes_on, is_advice
from idiolect.study.run.launch import raise_diverged, stored_options
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.change import located, override
from idiolect.study.spec.experiment import Experiment, comparison_of, digest, load_experiment
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import Store


def execute(
    experiment: Experiment,
    out: Path,
    *,
    as_json: bool,
    mlflow: str | None = None,
    tensorboard: str | None = None,
    **options: Any,
) -> None:
    """Launch an experiment, print its results, and raise `DivergedError` if a run diverged.

    mlflow, tensorboard: where the runs are sent, too, while they are at work and when they have ended.
    """
    check_output(out, *inputs_of(experiment))
    options.setdefault("command", this_command())
    trackers = trackers_of(mlflow, tensorboard)
    sent = [f"--{name} {shlex.quote(to)}" for name, to in (("mlflow", mlflow), ("tensorboard", tensorboard)) if to]

    def goes_on() -> str:
        return " ".join([resume_command(out), *sent])

    try:
        with stoppable(out, goes_on), tracked(out, trackers):
            results = launch(experiment, out, **options)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if not speaks_of_a_loss(error):
            raise
        reason = f"another process of this run was lost ({str(error).splitlines()[0][:200]})"
        raise StoreError(f"{reason}; resume, with any number of devices, with: {goes_on()}") from error
    print_results(results, as_json, out, skip=1)
    raise_diverged(results)


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
    """Run a paper's table or figure and compare it with the published values.

    idiolect reproduce pfedme/table1 --only mnist-clean-mlr --seeds 3
    """
    experiment = packaged(name, protocol)
    changed = assignments(set_, metric) | seeding(seeds, splits)
    experiment = override(experiment, changed).only(tuple(only or ()))
    target = out or default_folder(experiment, changed)
    options: dict[str, Any] = {"jobs": jobs, "save_models": save_models.value}
    execute(experiment, target, folder=data_dir, **options, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)


def compare(
    data: Data,
    methods_: Annotated[
        str, typer.Option("--methods", help="Comma-separated, see 'idiolect list methods'.")
    ] = "pfedme,perfedavg,fedavg-ft,local,global",
    model: ModelName = "auto",
    rounds: Rounds = 100,
    cohort: Cohort = None,
    sampling: SamplingKind = "fixed",
    seeds: Seeds = None,
    splits: Splits = None,
    seed: Annotated[int, typer.Option("--seed", help="The first seed.")] = 0,
    eval_every: EvalEvery = 10,
    select: Annotated[
        str, typer.Option("--select", help="Which round counts: last, last-10 or best-validation.")
    ] = "last",
    metric: MetricName = "",
    client: ClientColumn = "client",
    label: LabelColumn = "label",
    set_: Settings = None,
    out: Out = None,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    save_models: Models = Saved.first,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    debug: Debug = False,
    as_json: Json = False,
) -> None:
    """Compare methods on one federation: one table, curves, and every client's model as a file.

    idiolect compare --data patients.csv --client hospital --label outcome

    idiolect compare --data synthetic --methods fedavg,ditto,local --rounds 50 --seeds 3 --set ditto.rate=0.05
    """
    spec, name = data_spec(data, client, label)
    if out is not None and "path" in spec:
        check_output(out, Path(spec["path"]))
    bench = Workbench(data_dir, debug=debug)
    experiment = comparison_of(
        name,
        spec,
        {"name": START if model == "auto" else model},
        [m.strip() for m in methods_.split(",") if m.strip()],
        title=f"Comparison on {name}",
        rounds=rounds,
        cohort=cohort,
        sampling=sampling,
        eval_every=eval_every,
        select=select,
        metric=metric,
        first_seed=seed,
        **seeding(seeds, splits),
    )
    changed = assignments(set_)
    experiment = override(experiment, changed)
    if model == "auto":
        experiment = with_auto_model(experiment, changed, bench)
    # The number of seeds is left out, so that more seeds continue in the same folder.
    key = digest(experiment.model_dump(mode="json", exclude={"seeds"}))[:6]
    target = out or Path("runs") / f"{experiment.name}-{key}"
    options = {"folder": data_dir, "jobs": jobs, "save_models": save_models.value, "debug": debug}
    execute(experiment, target, bench=bench, **options, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)
