"""The command line: idiolect demo | compare | sweep | run | resume | reproduce | show | list."""

import shlex
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from idiolect.cli import pages
from idiolect.cli.options import (
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
    ModelName,
    Models,
    Out,
    Rounds,
    SamplingKind,
    Saved,
    Seeds,
    Settings,
    Splits,
    assignments,
    auto_model,
    data_spec,
    default_folder,
    seeding,
)
from idiolect.cli.sweep import sweep
from idiolect.cli.terminal import (
    UsageError,
    fail,
    print_entries,
    print_json,
    print_page,
    print_results,
    resume_command,
    unreadable,
)
from idiolect.core.errors import ConfigError, DivergedError, IdiolectError, StoreError, unknown
from idiolect.experiments import packaged
from idiolect.report.launch import launch
from idiolect.runtime.devices import use_cores
from idiolect.runtime.distributed import join, speaks_of_a_loss, start
from idiolect.study.comparison import comparison_of
from idiolect.study.engine import stored_experiment
from idiolect.study.experiment import Experiment, digest, load_experiment
from idiolect.study.launch import raise_diverged, stored_options
from idiolect.study.override import override
from idiolect.study.resolve import Workbench
from idiolect.study.results import Results
from idiolect.study.store import DATABASE, Store

app = typer.Typer(
    help="Personalized federated learning: every client ends with its own model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> bool:
    if wanted:
        print(version("idiolect"))
        raise typer.Exit
    return wanted


@app.callback()
def _top(  # pyright: ignore[reportUnusedFunction]
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    distributed: Annotated[
        bool, typer.Option("--distributed", help="One of several processes that a cluster (Slurm, ...) started.")
    ] = False,
) -> None:
    """Personalized federated learning: every client ends with its own model."""
    if not join(distributed):
        with suppress(ConfigError):  # a program that has computed with JAX keeps its devices
            use_cores()


@app.command(name="launch", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def launch_(
    context: typer.Context,
    processes: Annotated[int, typer.Option("-n", "--processes", help="Processes on this machine.")] = 2,
) -> None:
    """Run a command in several processes that divide each cohort: idiolect launch -n 2 -- compare --data ..."""
    code = start(processes, context.args)
    if code:
        raise typer.Exit(code)


@app.command()
def demo(out: Out = None, jobs: Jobs = None, as_json: Json = False) -> None:
    """Compare methods on a small synthetic federation: two minutes, no download."""
    experiment = packaged("demo")
    _execute(experiment, out or Path("demo"), jobs=jobs, as_json=as_json)


@app.command()
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
    debug: Debug = False,
    as_json: Json = False,
) -> None:
    """Compare methods on one federation: one table, curves, and every client's model as a file."""
    spec, name = data_spec(data, client, label)
    bench = Workbench(data_dir, debug=debug)
    if model == "auto":
        model = auto_model(spec, bench)
    experiment = comparison_of(
        name,
        spec,
        {"name": model},
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
    experiment = override(experiment, assignments(set_))
    # The number of seeds is left out, so that more seeds continue in the same folder.
    key = digest(experiment.model_dump(mode="json", exclude={"seeds"}))[:6]
    target = out or Path("runs") / f"{experiment.name}-{key}"
    options = {"folder": data_dir, "jobs": jobs, "save_models": save_models.value, "debug": debug}
    _execute(experiment, target, bench=bench, **options, as_json=as_json)


app.command()(sweep)


@app.command()
def run(
    experiment_file: Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml")],
    metric: MetricName = "",
    set_: Settings = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A cell, a method, or cell/method.")] = None,
    out: Out = None,
    data_dir: DataDir = None,
    jobs: Jobs = None,
    save_models: Models = Saved.first,
    debug: Debug = False,
    as_json: Json = False,
) -> None:
    """Run an experiment file; what the folder already has is not run again."""
    changed = assignments(set_, metric)
    experiment = override(load_experiment(experiment_file), changed).only(tuple(only or ()))
    target = out or default_folder(experiment, changed)
    _execute(
        experiment, target, folder=data_dir, jobs=jobs, save_models=save_models.value, debug=debug, as_json=as_json
    )


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that was stopped.")],
    data_dir: DataDir = None,
    jobs: Jobs = None,
    save_models: Annotated[Saved | None, typer.Option("--save-models", help="As before, unless given.")] = None,
    as_json: Json = False,
) -> None:
    """Go on with a stopped run, to the result it would have had."""
    with Store(folder, create=False) as store:
        experiment, stored = stored_experiment(store), stored_options(store)
    options = {
        "folder": data_dir or stored["folder"],
        "save_models": stored["save_models"] if save_models is None else save_models.value,
        "command": stored["command"],
    }
    _execute(experiment, folder, jobs=jobs, as_json=as_json, **options)


@app.command()
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
    as_json: Json = False,
) -> None:
    """Run a paper's table or figure and set it beside the published values."""
    experiment = packaged(name, protocol)
    changed = assignments(set_, metric) | seeding(seeds, splits)
    experiment = override(experiment, changed).only(tuple(only or ()))
    target = out or default_folder(experiment, changed)
    _execute(experiment, target, folder=data_dir, jobs=jobs, save_models=save_models.value, as_json=as_json)


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs.")], as_json: Json = False
) -> None:
    """Show what a folder holds: results, and runs that are not finished."""
    with Store(folder, create=False) as store:
        print_results(Results(store, stored_experiment(store)), as_json, folder)


@app.command(name="list")
def list_(
    kind: Annotated[str, typer.Argument(help="methods, data, models, metrics or experiments.")],
    name: Annotated[str | None, typer.Argument(help="One of them: what it is and its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List what can be named: methods, data, models, metrics, experiments; with a name, its page."""
    if kind not in pages.PAGES:
        raise unknown("kind", kind, pages.PAGES)
    if name is not None:
        print_page(kind, name, pages.PAGES[kind](name), as_json)
    elif as_json:
        print_json(pages.LISTS[kind]())
    else:
        print_entries(pages.LISTS[kind]())


def _execute(experiment: Experiment, out: Path, *, as_json: bool, **options: Any) -> None:
    """Launch an experiment, print its results, and raise `DivergedError` if a run diverged."""
    options.setdefault("command", shlex.join(["idiolect", *sys.argv[1:]]))
    try:
        results = launch(experiment, out, **options)
    except KeyboardInterrupt:
        stored = (out / DATABASE).is_file()
        print(f"stopped; {f'go on with: {resume_command(out)}' if stored else 'nothing was kept'}", file=sys.stderr)
        raise typer.Exit(130) from None
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if not speaks_of_a_loss(error):
            raise
        reason = f"another process of this run was lost ({str(error).splitlines()[0][:200]})"
        raise StoreError(f"{reason}; go on, with any number of devices: {resume_command(out)}") from error
    print_results(results, as_json, out)
    raise_diverged(results)


def main() -> None:
    """Run the command line; every error is printed in one line.

    Exit codes: 1 for a known error, 2 for a command that cannot be read, 3 for a run that diverged.
    """
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="idiolect", standalone_mode=False)
    except UsageError as error:
        fail(*unreadable(error))
    except DivergedError as error:
        fail(f"diverged: {error}", 3)
    except IdiolectError as error:
        fail(f"error: {error}", 1)
    else:
        sys.exit(code if isinstance(code, int) else 0)
