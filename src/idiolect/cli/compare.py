"""The command `compare`: several methods on one federation."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.execute import execute
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
    data_spec,
    seeding,
    with_auto_model,
)
from idiolect.cli.outputs import check_output
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.change import override
from idiolect.study.spec.experiment import comparison_of, digest


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
