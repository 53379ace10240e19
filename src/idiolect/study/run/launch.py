"""Launch an experiment: check it, run what is missing, and record everything in a folder."""

import json
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import astuple
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax

from idiolect.core.errors import ConfigError, DataError, DivergedError, IdiolectError
from idiolect.core.files import alone, clear_scratch, no_empty_folders
from idiolect.data.federated import FederatedData
from idiolect.data.sets.pool import table_kept
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.devices import agreed_text, is_leader
from idiolect.study.analyse.results import Results
from idiolect.study.run.automatic import resolved
from idiolect.study.run.engine import Engine, Group, follow, missing, run_serial
from idiolect.study.run.parallel import default_jobs, run_parallel
from idiolect.study.run.recording import Progress
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment, run_id
from idiolect.study.store.claim import claim
from idiolect.study.store.store import RunRow, Store


class Watcher(Protocol):
    """Displays the progress of an experiment's runs."""

    def preparing(self) -> AbstractContextManager[object]:
        """A context manager: inside it data are read and settings are checked."""
        ...

    def progress(self, name: str, progress: Progress) -> None:
        """Called when a run has progressed. name: its id."""
        ...

    def finished(self, row: RunRow) -> None:
        """Called when a run has ended, or had ended before the launch."""
        ...

    def shown(self) -> AbstractContextManager[object]:
        """A context manager: the display is visible inside it."""
        ...


class Unwatched:
    """A watcher that displays nothing."""

    def preparing(self) -> AbstractContextManager[object]:
        """A context manager that does nothing."""
        return nullcontext()

    def progress(self, name: str, progress: Progress) -> None:
        """Do nothing."""

    def finished(self, row: RunRow) -> None:
        """Do nothing."""

    def shown(self) -> AbstractContextManager[object]:
        """A context manager that does nothing."""
        return nullcontext()


def launch(
    experiment: Experiment,
    out: str | Path,
    *,
    command: str = "",
    folder: str | None = None,
    jobs: int | None = None,
    data: FederatedData | None = None,
    model: eqx.Module | None = None,
    save_models: str = "first",
    debug: bool = False,
    bench: Workbench | None = None,
    watcher: Watcher | None = None,
    report: Callable[[Results], object] | None = None,
) -> Results:
    """Run what the folder does not have yet, and return the results.

    Invalid settings are refused before the folder is created. A diverged run is recorded and stops no other run; see
    `raise_diverged`. In a distributed run only the leader returns; the other processes exit when all is computed.

    folder: holds the data sets that are read from files. jobs: number of parallel processes; by default as many as
    the folder had before, otherwise one per core. (A run's last bits depend on its number of cores, so a resumed run
    gets as many as before, even if it is the only one left.) data, model: objects that replace the specifications;
    their runs stay in this process. save_models: client models of the "first" seed, of "all", or "none". bench: a
    workbench that has data loaded already. report: called with the results while the folder is still locked.
    """
    out = Path(out)
    use_compilation_cache()
    bench, watcher = bench or Workbench(folder, data, model, debug), watcher or Unwatched()
    with watcher.preparing(), table_kept():  # with `new_splits`, all divisions are of one table
        experiment = resolved(experiment, bench)
        runs = bench.check(experiment)
    seeds = {"first": experiment.seed_list[:1], "all": experiment.seed_list, "none": ()}[save_models]
    if not is_leader():
        follow(bench, experiment, [Group(*group) for group in json.loads(agreed_text(""))], seeds)
        raise SystemExit(0)
    with mastered(out) as store:
        claim(store, experiment, runs)
        data_folder = str(Path(folder).resolve()) if folder else None
        jobs = jobs if jobs is not None else stored_options(store)["jobs"]
        options = {"folder": data_folder, "save_models": save_models, "command": command, "jobs": jobs}
        options["started_in"] = os.path.abspath(out)
        store.set_fact("options", options)
        engine = Engine(store, bench, tuple(seeds))
        work = missing(engine, experiment)
        agreed_text(json.dumps([astuple(group) for group in work]))
        num_jobs = min(jobs if jobs is not None else default_jobs(), len(runs)) if jax.process_count() == 1 else 1
        unfinished = {run_id(group.cell, group.title, seed) for group in work for seed in group.seeds}
        for row in store.runs():
            if row.id in {run.id for run in runs} - unfinished:
                watcher.finished(row)
        with watcher.shown():
            if work and num_jobs > 1 and data is None and model is None and not debug:
                with bench.giving(experiment) as loaded:
                    run_parallel(
                        out,
                        experiment,
                        work,
                        jobs=num_jobs,
                        folder=folder,
                        save_models=engine.save_models,
                        on_progress=watcher.progress,
                        on_done=watcher.finished,
                        loaded=loaded,
                    )
            else:
                run_serial(engine, experiment, work, watcher.progress, watcher.finished)
        results = Results(store, experiment)
        if report is not None:
            report(results)
    return results


@contextmanager
def mastered(out: Path) -> Generator[Store]:
    """Create a folder if needed and open its store, locked against other processes while the block runs.

    A new folder is removed again if a `ConfigError` or `DataError` occurs before the first evaluation.
    """
    new, discard = not os.path.exists(out), False
    with no_empty_folders(out):
        try:
            with (
                Store(out) as store,
                alone(out / ".lock", f"another idiolect process works in '{out}'; wait for it, or use another --out"),
            ):
                clear_scratch(out)
                try:
                    yield store
                except (ConfigError, DataError):
                    discard = new and not any(store.evaluated(row.id) for row in store.runs())
                    raise
        except IdiolectError:
            if discard:
                shutil.rmtree(out, ignore_errors=True)
            raise


def stored_options(store: Store) -> dict[str, Any]:
    """The options of the last launch: `folder`, `save_models`, `command`, `jobs` (None: one process per core).

    started_in: the folder of the run as it was then, None if that is not known.
    """
    stored = store.fact("options")
    known = {"folder": None, "save_models": "first", "command": "", "jobs": None, "started_in": None}
    return known | ({key: stored[key] for key in known if key in stored} if isinstance(stored, dict) else {})


def raise_diverged(results: Results) -> None:
    """Raise `DivergedError`, naming the first one, if any run of the experiment diverged."""
    rows = results.diverged()
    if rows:
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        message = f"{rows[0].id}: {rows[0].message}{more}"
        raise DivergedError(message, round=rows[0].round, client=None, stage="training")
