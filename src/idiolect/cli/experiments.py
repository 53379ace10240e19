"""The commands demo, run, resume, reproduce and compare."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from idiolect.cli.options import (
    MORE,
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
    Only,
    Out,
    RateOrAuto,
    RoundsOrAuto,
    SamplingKind,
    Saved,
    Seeds,
    Settings,
    Splits,
    Table,
    TensorBoardTo,
    assignments,
    check_output,
    names_in,
    one_table,
    seeding,
)
from idiolect.core.errors import ConfigError, StoreError
from idiolect.core.loading import loading


def demo(
    out: Out = None,
    jobs: Jobs = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Compare methods on two made federations, where sharing helps and where it does not: a minute, no download.

    Examples:
    idiolect demo
    idiolect demo -o demo --jobs 1

    Writes: the folder demo with report.html, report.md, table.csv, clients.csv and figures; no model files.
    """
    with loading():
        from idiolect.cli.execute import execute
        from idiolect.experiments import packaged
    experiment = packaged("demo")
    target = out or Path("demo")
    trackers: dict[str, Any] = {"mlflow": mlflow, "tensorboard": tensorboard}
    execute(experiment, target, jobs=jobs, save_models=Saved.none.value, **trackers, as_json=as_json)


def run(
    experiment_file: Annotated[
        Path, typer.Argument(metavar="EXPERIMENT", help="An experiment's TOML file.", show_default=False)
    ],
    metric: MetricName = "",
    set_: Settings = None,
    only: Only = None,
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

    Examples:
    idiolect run hospitals.toml -o hospitals
    idiolect run hospitals.toml --only fedavg --set rounds=50

    Writes: the folder of --out, by default runs/NAME, with report.html, report.md, CSV files, figures and models.
    """
    with loading():
        from idiolect.cli.execute import execute
        from idiolect.cli.inputs import TABLES, default_folder, is_file, no_experiment
        from idiolect.study.spec.change import override
        from idiolect.study.spec.experiment import load_experiment
    if experiment_file.suffix.lower() in TABLES:
        raise ConfigError(
            f"'{experiment_file}' is a table; to compare methods on it: idiolect compare {experiment_file}"
        )
    if not is_file(experiment_file) and not experiment_file.is_dir():
        raise no_experiment(str(experiment_file))
    if out is not None:
        check_output(out, experiment_file)
    changed = assignments(set_, metric)
    experiment = override(load_experiment(experiment_file), changed, only or ())
    target = out or default_folder(experiment, changed)
    check_output(target, experiment_file)
    options: dict[str, Any] = {"jobs": jobs, "save_models": save_models.value, "debug": debug}
    execute(experiment, target, folder=data_dir, **options, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that was stopped.")],
    data: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="Where the run's table is now, if it has moved.")
    ] = None,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    save_models: Annotated[
        Saved | None,
        typer.Option(
            "--save-models",
            rich_help_panel=MORE,
            metavar="SEEDS",
            help="first, all or none (default: as the run was started).",
        ),
    ] = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Resume an interrupted run; the result is identical to an uninterrupted one.

    Examples:
    idiolect resume runs/penguins-1a2b3c
    idiolect resume runs/penguins-1a2b3c --data moved/penguins.csv

    Writes: the rest of the run and its report into the folder RUN.
    """
    with loading():
        from idiolect.cli.execute import execute
        from idiolect.cli.inputs import check_runs
        from idiolect.study.advice.stored import how_it_goes_on, is_advice
        from idiolect.study.run.launch import stored_options
        from idiolect.study.spec.change import located
        from idiolect.study.store.claim import stored_experiment
        from idiolect.study.store.store import Store
    if is_advice(folder):
        raise StoreError(how_it_goes_on(folder))
    check_runs(folder)
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
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A name of 'idiolect list experiments', such as pfedme/table1.", show_default=False
        ),
    ],
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            metavar="PROTOCOL",
            help="as-written: the paper's text; as-published: what its published code does.",
        ),
    ] = "as-written",
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, metavar="N", help="Number of seeds (default: the experiment's).")
    ] = None,
    splits: Splits = None,
    only: Only = None,
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

    Examples:
    idiolect reproduce fedu/table1 --only vehicle
    idiolect reproduce pfedme/table1 --only mnist-clean-mlr --seeds 3

    Writes: the folder of --out, by default runs/NAME, with report.html, report.md, CSV files and figures.
    """
    with loading():
        from idiolect.cli.execute import execute
        from idiolect.cli.inputs import default_folder
        from idiolect.experiments import packaged
        from idiolect.study.spec.change import override
    if name.endswith(".toml"):
        raise ConfigError(f"reproduce takes a packaged experiment; to run a file: idiolect run {name}")
    changed = assignments(set_, metric) | seeding(seeds, splits)
    experiment = override(packaged(name, protocol), changed, only or ())
    target = out or default_folder(experiment, changed)
    options: dict[str, Any] = {"jobs": jobs, "save_models": save_models.value}
    execute(experiment, target, folder=data_dir, **options, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)


def compare(
    table: Table = None,
    data: Data = None,
    methods_: Annotated[
        str | None, typer.Option("--methods", metavar="METHODS", help="Comma-separated, see 'idiolect list methods'.")
    ] = None,
    model: ModelName = "auto",
    rounds: RoundsOrAuto = None,
    rate: RateOrAuto = None,
    cohort: Cohort = None,
    sampling: SamplingKind = "fixed",
    seeds: Seeds = None,
    splits: Splits = None,
    seed: Annotated[int, typer.Option("--seed", rich_help_panel=MORE, metavar="N", help="The first seed.")] = 0,
    eval_every: EvalEvery = 10,
    select: Annotated[
        str | None,
        typer.Option(
            "--select",
            rich_help_panel=MORE,
            metavar="ROUND",
            help="Which round counts: last, last-10 or best-validation (default with --rounds auto, else last).",
        ),
    ] = None,
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

    Examples:
    idiolect compare patients.csv --client hospital --label outcome
    idiolect compare --data synthetic --methods fedavg,ditto,local --seeds 3

    Writes: the folder of --out, by default runs/compare-NAME-..., with report.html, report.md, CSV files, figures and
    every client's model.
    """
    source = one_table(table, data)
    if select == "":
        raise ConfigError("--select '' names no round; choose last, last-10 or best-validation")
    with loading():
        from idiolect.cli.execute import execute
        from idiolect.cli.inputs import START, data_spec, with_auto_model
        from idiolect.data.sets.registry import OF_PATH
        from idiolect.report.progress import reading
        from idiolect.study.run.automatic import default_methods, with_metric
        from idiolect.study.run.resolve import Workbench
        from idiolect.study.spec.change import override
        from idiolect.study.spec.experiment import comparison_of, digest
    spec, name = data_spec(source, client, label)
    if out is not None and "path" in spec:
        check_output(out, Path(spec["path"]))
    bench, own = Workbench(data_dir, debug=debug), spec["name"] in OF_PATH
    changed = assignments(set_)
    usual = ("auto", "auto") if own else (100, "method")  # rounds and rate
    most = changed.pop("rounds", usual[0] if rounds is None else rounds)
    experiment = comparison_of(
        name,
        spec,
        {"name": START if model == "auto" else model},
        default_methods(own) if methods_ is None else names_in(methods_),
        title=f"Comparison on {name}",
        rounds=most,
        rate=usual[1] if rate is None else rate,
        cohort=cohort,
        sampling=sampling,
        eval_every=eval_every,
        select=select or "",
        metric=metric,
        first_seed=seed,
        **seeding(seeds, splits),
    )
    experiment = override(experiment, changed)
    with reading(Console(stderr=True)):
        if model == "auto":
            experiment = with_auto_model(experiment, changed, bench)
        if own:
            experiment = with_metric(experiment, bench)
    # The number of seeds is left out, so that more seeds continue in the same folder.
    key = digest(experiment.model_dump(mode="json", exclude={"seeds"}))[:6]
    target = out or Path("runs") / f"{experiment.name}-{key}"
    options = {"folder": data_dir, "jobs": jobs, "save_models": save_models.value, "debug": debug}
    execute(experiment, target, bench=bench, **options, mlflow=mlflow, tensorboard=tensorboard, as_json=as_json)
