"""The command `idiolect sweep`: settings tried on the same seeds, each method's best chosen on validation data."""

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from idiolect.cli.options import (
    MORE,
    ClientColumn,
    Cohort,
    Data,
    DataDir,
    EvalEvery,
    Json,
    LabelColumn,
    MetricName,
    MLflowTo,
    ModelName,
    Out,
    Rounds,
    SamplingKind,
    Seeds,
    Table,
    TensorBoardTo,
    assignments,
    check_output,
    names_in,
    one_table,
)
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import console, print_file, print_json
from idiolect.core.errors import ConfigError, require
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.study.search.choose import Swept


def divided(pairs: list[str] | None, names: list[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Divide --set pairs into (search space of each method, pairs that hold for all methods).

    A method's key is part of its search space, even with a single value; model.l2 is part of every search space.
    Raises `ConfigError` for a pair without key or value.
    """
    from idiolect.algorithms import registry as methods
    from idiolect.study.search.space import L2

    spaces: dict[str, dict[str, str]] = {name: {} for name in names}
    common: list[str] = []
    for pair in pairs or []:
        key, equals, text = pair.partition("=")
        head, _, tail = key.strip().partition(".")
        if not equals or not text.strip():
            raise ConfigError(f"--set {pair}: write key=value, key=value,value or key=log(a,b,n)")
        if key.strip() == L2:
            for space in spaces.values():
                space[L2] = text
        elif tail and head in methods.ALGORITHMS:
            spaces.setdefault(head, {})[tail] = text
        else:
            common.append(pair)
    return spaces, common


def sweep(
    table: Table = None,
    data: Data = None,
    methods_: Annotated[
        str,
        typer.Option("--methods", metavar="METHODS", help="Required. Comma-separated, see 'idiolect list methods'."),
    ] = "",
    model: ModelName = "auto",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUES",
            help="What to try: pfedme.prox_weight=1,5,15, pfedme.rate='log(0.001,1,7)', model.l2=0,0.01, "
            "'loguniform(a,b)' with --budget; or a setting for all: data.clients=20.",
        ),
    ] = None,
    seeds: Seeds = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", rich_help_panel=MORE, metavar="N", help="The first seed, also of random draws and folds."
        ),
    ] = 0,
    rounds: Rounds = 100,
    cohort: Cohort = None,
    sampling: SamplingKind = "fixed",
    eval_every: EvalEvery = 10,
    metric: MetricName = "",
    search: Annotated[
        str, typer.Option("--search", metavar="KIND", help="grid, random, optuna, halving or cv.")
    ] = "grid",
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="N", help="Settings of each method, drawn from the grid or ranges."),
    ] = None,
    eta: Annotated[
        int,
        typer.Option(
            "--eta", rich_help_panel=MORE, metavar="N", help="Halving keeps 1/eta of the settings at each rung."
        ),
    ] = 3,
    folds: Annotated[
        int,
        typer.Option(
            "--folds", rich_help_panel=MORE, metavar="N", help="Folds of each client's training samples (cv)."
        ),
    ] = 5,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            rich_help_panel=MORE,
            min=1,
            metavar="N",
            help="Settings that Optuna proposes at once (default: 8).",
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            rich_help_panel=MORE,
            metavar="GB",
            help="Memory that the runs at work at once may use (or IDIOLECT_MEMORY).",
        ),
    ] = None,
    show_test: Annotated[
        bool,
        typer.Option(
            "--show-test", rich_help_panel=MORE, help="Test scores of all settings; they are not used for the choice."
        ),
    ] = False,
    client: ClientColumn = "client",
    label: LabelColumn = "label",
    out: Out = None,
    data_dir: DataDir = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Try settings of methods as few compiled programs; choose on validation data, then show the test score.

    Examples:
    idiolect sweep patients.csv --methods ditto --set ditto.prox_weight=0.1,1,10
    idiolect sweep --data mnist --methods pfedme --set "pfedme.rate=log(0.1,1,5)"

    Writes: the folder of --out, by default runs/sweep-NAME-..., with report.html, report.md, sweep.csv and
    chosen.toml, an experiment file with the chosen settings.
    """
    source = one_table(table, data)
    if not names_in(methods_):
        raise typer.BadParameter("name the methods to sweep: --methods ditto,pfedme; see 'idiolect list methods'")
    with loading():
        from idiolect.cli.inputs import START, data_spec, inputs_of, with_auto_model
        from idiolect.report.html.render import PAGE
        from idiolect.report.progress import SweepDisplay
        from idiolect.report.sweeps import rich_sweep, to_dict
        from idiolect.report.trackers.tracking import tracked, trackers_of
        from idiolect.study.run.resolve import Workbench
        from idiolect.study.search.launch import launch_sweep
        from idiolect.study.spec.change import override
        from idiolect.study.spec.experiment import comparison_of, digest
    names = names_in(methods_)
    spaces, rest = divided(set_, names)
    spec, name = data_spec(source, client, label)
    if out is not None and "path" in spec:
        check_output(out, Path(spec["path"]))
    bench = Workbench(data_dir)
    experiment = comparison_of(
        name,
        spec,
        {"name": START if model == "auto" else model},
        names,
        select="last",
        rounds=rounds,
        cohort=cohort,
        sampling=sampling,
        eval_every=eval_every,
        metric=metric,
        seeds=1 if seeds is None else seeds,
        first_seed=seed,
    )
    changed = assignments(rest)
    experiment = override(experiment, changed).model_copy(update={"name": f"sweep-{name}"})
    if model == "auto":
        experiment = with_auto_model(experiment, changed, bench)
    options: dict[str, Any] = {"search": search, "budget": budget, "eta": eta, "folds": folds, "search_seed": seed}
    if search == "optuna":
        options["batch"] = batch
    if memory is not None:
        require(0 < memory < math.inf, f"--memory {memory} must be a number of GB greater than 0")
    key = digest(experiment.model_dump(mode="json", exclude={"seeds"}), spaces, options)[:6]
    target = out or Path("runs") / f"sweep-{name}-{key}"
    check_output(target, *inputs_of(experiment))
    display, trackers, command = SweepDisplay(folder=target), trackers_of(mlflow, tensorboard), this_command()
    with stoppable(target), tracked(target, trackers):
        with display.shown():
            swept = launch_sweep(
                experiment,
                spaces,
                bench,
                target,
                **options,
                memory=None if memory is None else int(memory * 1e9),
                show_test=show_test,
                on_progress=display.progress,
            )
        _write(swept, target, command)
    if as_json:
        print_json({**to_dict(swept), "folder": str(target)})
    else:
        console().print(rich_sweep(swept))
        for one in swept.tried:
            for failure in one.failures:
                console().print(Text(f"diverged: {failure}", style="red"), soft_wrap=True)
        if swept.chosen:
            chosen = shlex.quote(str(target / "chosen.toml"))
            console().print(Text(f"to run what was chosen: idiolect run {chosen}"), soft_wrap=True)
        print_file("page", target / PAGE)
    if not swept.chosen:
        raise ConfigError("every setting diverged; lower the learning rates")


def _write(swept: "Swept", folder: Path, command: str) -> None:
    """Write the report and the page of a sweep into its folder. command: made it."""
    from idiolect.report.page import write_folder
    from idiolect.report.sweeps import write_sweep
    from idiolect.study.store.store import Store

    write_sweep(swept, folder, command)
    with Store(folder, create=False) as store:
        store.set_fact("options", {"command": command})
    write_folder(folder)
