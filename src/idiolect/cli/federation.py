"""A hub's runs as the commands federate and hub show them: the experiment, its progress, and its results."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from idiolect.cli.inputs import no_experiment
from idiolect.cli.results import print_results
from idiolect.core.repeating import repeating
from idiolect.deploy.hub.journal import Participation
from idiolect.experiments import names, packaged
from idiolect.report.progress import Display
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import raise_diverged
from idiolect.study.run.recording import Progress
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
        raise no_experiment(name, "federate")
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
