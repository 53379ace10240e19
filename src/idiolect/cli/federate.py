"""The command federate: an experiment between processes, each with only its own samples; its progress and results."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.options import (
    FEDERATED,
    DataDir,
    Json,
    MLflowTo,
    Out,
    Settings,
    TensorBoardTo,
    assignments,
    check_output,
    inputs_of,
)
from idiolect.cli.results import print_results
from idiolect.cli.stopping import stoppable, this_command
from idiolect.core.errors import ConfigError
from idiolect.core.repeating import repeating
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.nvflare.local_federation import run_here
from idiolect.deploy.this_machine import divided, forget_samples, prepare, run_quick
from idiolect.experiments import names, packaged
from idiolect.report.progress import Display
from idiolect.report.trackers.tracking import tracked, trackers_of
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import raise_diverged
from idiolect.study.run.recording import Progress
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.change import override
from idiolect.study.spec.experiment import Experiment, load_experiment
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import Store

LOOK = 0.5
"""Seconds between two reads of the hub's folder."""
LAST = 10
"""Rounds of which the speed is the mean."""


def experiment_of(name: str) -> Experiment:
    """A file's experiment, or a packaged one. Raises `ConfigError` if there is neither."""
    if not Path(name).is_file() and name in {key.partition(" ")[0] for key in names()}:
        return packaged(name)
    if not Path(name).is_file():
        raise ConfigError(f"no such experiment file: {name}; 'idiolect federate sites' needs none")
    return load_experiment(name)


def recorded(folder: Path, command: str, as_json: bool) -> None:
    """Write the report of a hub's folder and print its results. Raises `DivergedError` if a run diverged."""
    from idiolect.report.page import write_report  # here: it loads slowly, and most commands never need it

    with Store(folder, create=False) as store:
        store.set_fact("options", {"command": command, "jobs": 1})
        results = Results(store, stored_experiment(store))
        write_report(results, folder, command)
        print_results(results, as_json, folder, skip=1)
        raise_diverged(results)


@contextmanager
def shown(experiment: Experiment, folder: Path) -> Generator[Display]:
    """The progress of a hub's runs, read from its folder, which another process writes."""
    display = Display(experiment, folder=folder)
    rounds = {f"{cell.id}/{method.title}": cell.rounds for cell in experiment.cells for method in cell.methods}
    with display.shown(), repeating(lambda: _update(display, rounds, folder), LOOK):
        yield display


def _update(display: Display, rounds: dict[str, int], folder: Path) -> None:
    done, seconds = dict[str, int](), dict[str, list[float]]()
    for line in Participation(folder).lines():
        done[line["run"]] = int(line["round"]) + 1
        seconds.setdefault(line["run"], []).append(float(line.get("seconds", 0.0)))
    for run, round in done.items():
        total, last = rounds.get(run.rpartition("/")[0]), seconds[run][-LAST:]
        if total is not None:
            display.progress(run, Progress(round, total, len(last) / max(sum(last), 1e-9), {}))


def federate(
    experiment_file: Annotated[str, typer.Argument(metavar="EXPERIMENT.toml", help="A file, or a packaged name.")],
    sites: Annotated[int | None, typer.Option("--sites", min=1, help="Sites (default: one per client).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run without network and certificates.")] = False,
    deadline: Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds of a round.")] = 60.0,
    quorum: Annotated[
        int | None, typer.Option("--quorum", min=1, help="Answers that a round needs (default: half of its cohort).")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A cell, a method, or cell/method.")] = None,
    set_: Settings = None,
    out: Out = None,
    data_dir: DataDir = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Run an experiment between real processes on this machine: a hub, and sites that keep their samples.

    Every message is sent over mutual TLS; the same command again resumes after a stop.

    idiolect federate sites

    idiolect federate hospitals.toml --sites 4

    idiolect federate hospitals.toml --quick
    """
    if out is not None:
        check_output(out, Path(experiment_file), written=FEDERATED)
    experiment = override(experiment_of(experiment_file), assignments(set_)).only(tuple(only or ()))
    target = out or Path("runs") / f"{experiment.name.replace('/', '-')}-sites"
    check_output(target, Path(experiment_file), *inputs_of(experiment), written=FEDERATED)
    data = divided(experiment, Workbench(data_dir), sites)
    trackers = trackers_of(mlflow, tensorboard)
    use_compilation_cache()
    with stoppable(target), tracked(target, trackers):
        site_names = prepare(target, experiment, data, deadline=deadline, quorum=quorum)
        with shown(experiment, target) as display:
            if quick:
                run_quick(target, site_names, data)
                forget_samples(target)
            else:
                run_here(target, site_names, data, display.console.print)
        recorded(target, this_command(), as_json)
