"""The command federate: an experiment between processes, each with its own samples alone."""

import shlex
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.cli.options import DataDir, Json, Out, Settings, assignments
from idiolect.cli.terminal import print_results
from idiolect.core.errors import ConfigError
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.nvflare.here import run_here
from idiolect.deploy.this_machine import divided, forget_samples, prepare, run_quick
from idiolect.experiments import names, packaged
from idiolect.report.page import write_report
from idiolect.report.progress import Display
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.engine import stored_experiment
from idiolect.study.experiment import Experiment, load_experiment
from idiolect.study.launch import raise_diverged
from idiolect.study.override import override
from idiolect.study.recording import Progress
from idiolect.study.resolve import Workbench
from idiolect.study.results import Results
from idiolect.study.store import Store

EXAMPLES = """Examples:

idiolect federate sites                              a small federation, to see it work

idiolect federate hospitals.toml --sites 4           an experiment file, its clients merged to four sites

idiolect federate hospitals.toml --quick             without network and certificates
"""


def federate(
    experiment_file: Annotated[str, typer.Argument(metavar="EXPERIMENT.toml", help="A file, or a packaged name.")],
    sites: Annotated[int | None, typer.Option("--sites", min=1, help="Sites (default: one a client).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Without network and certificates.")] = False,
    deadline: Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds of a round.")] = 60.0,
    quorum: Annotated[
        int | None, typer.Option("--quorum", min=1, help="Answers that a round needs (default: half of its cohort).")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A cell, a method, or cell/method.")] = None,
    set_: Settings = None,
    out: Out = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Run an experiment between real processes on this machine: a hub, and sites that keep their samples.

    Every message goes over mutual TLS; the same command again goes on after a stop.
    """
    experiment = override(_experiment(experiment_file), assignments(set_)).only(tuple(only or ()))
    data = divided(experiment, Workbench(data_dir), sites)
    target = out or Path("runs") / f"{experiment.name.replace('/', '-')}-sites"
    use_compilation_cache()
    site_names = prepare(target, experiment, data, deadline=deadline, quorum=quorum)
    command = shlex.join(["idiolect", *sys.argv[1:]])
    try:
        with _shown(experiment, target) as display:
            if quick:
                run_quick(target, site_names, data)
                forget_samples(target)
            else:
                run_here(target, site_names, data, display.console.print)
    except KeyboardInterrupt:
        print(f"stopped; go on with: {command}", file=sys.stderr)
        raise typer.Exit(130) from None
    with Store(target, create=False) as store:
        store.set_fact("options", {"command": command, "jobs": 1})
        results = Results(store, stored_experiment(store))
        write_report(results, target, command)
        print_results(results, as_json, target, told=1)
        raise_diverged(results)


def _experiment(name: str) -> Experiment:
    """A file's experiment, or a packaged one. Raises `ConfigError` if there is neither."""
    if not Path(name).is_file() and name in {key.partition(" ")[0] for key in names()}:
        return packaged(name)
    if not Path(name).is_file():
        raise ConfigError(f"no such experiment file: {name}; 'idiolect federate sites' needs none")
    return load_experiment(name)


@contextmanager
def _shown(experiment: Experiment, folder: Path) -> Generator[Display]:
    """The progress of a hub's runs, read from its folder, which another process writes."""
    display, ended = Display(experiment), threading.Event()
    rounds = {f"{cell.id}/{method.title}": cell.rounds for cell in experiment.cells for method in cell.methods}

    def follow() -> None:
        while not ended.wait(0.5):
            _update(display, rounds, folder)

    thread = threading.Thread(target=follow, daemon=True)
    with display.shown():
        thread.start()
        try:
            yield display
        finally:
            ended.set()
            thread.join()


def _update(display: Display, rounds: dict[str, int], folder: Path) -> None:
    done: dict[str, Any] = {}
    for line in Participation(folder).lines():
        done[line["run"]] = int(line["round"]) + 1
    for run, round in done.items():
        total = rounds.get(run.rpartition("/")[0])
        if total is not None:
            display.progress(run, Progress(round, total, 0.0, {}))
