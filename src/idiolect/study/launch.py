"""From an experiment to its results: check it, run what is missing, and keep all of it in a folder."""

import json
import shutil
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax

from idiolect.core.errors import ConfigError, DataError, DivergedError, IdiolectError
from idiolect.core.files import alone, clear_scratch
from idiolect.data.federated import FederatedData
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.devices import agreed_text, is_leader
from idiolect.study.engine import Engine, Group, claim, follow, missing, run_id, run_serial
from idiolect.study.experiment import Experiment
from idiolect.study.parallel import default_jobs, run_parallel
from idiolect.study.recording import Progress
from idiolect.study.resolve import Workbench
from idiolect.study.results import Results
from idiolect.study.store import RunRow, Store

SAVE_MODELS = ("first", "all", "none")


class Watcher(Protocol):
    """Shows where an experiment's runs stand while they run."""

    def progress(self, name: str, progress: Progress) -> None:
        """A run has come further."""
        ...

    def finished(self, row: RunRow) -> None:
        """A run has ended, or had ended before."""
        ...

    def shown(self) -> AbstractContextManager[object]:
        """The time in which it is shown."""
        ...


class Unwatched:
    """Shows nothing."""

    def progress(self, name: str, progress: Progress) -> None:
        """Show nothing."""

    def finished(self, row: RunRow) -> None:
        """Show nothing."""

    def shown(self) -> AbstractContextManager[object]:
        """Nothing to begin or end."""
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
    """Run what the folder does not have yet; returns the results.

    Everything that can be known to be wrong beforehand is refused before the folder is created.

    folder: where data sets that are read from files lie. jobs: processes at once; by default as many as the folder
    had before, else one a core. A run's last bits depend on how many cores it has, so a resumed one has as many,
    even where it is the only one left. save_models: client models of the "first" seed, of "all", or "none". data,
    model: objects in place of specifications; these run in this process. A run that diverges is recorded as such and
    stops no other; see `raise_diverged`. bench: one that has data loaded already. report: called with the results
    while no other process may write to the folder. Of several processes that run together only the leader returns;
    the others end when all is computed.
    """
    out = Path(out)
    use_compilation_cache()
    bench = bench or Workbench(folder, data, model, debug)
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
        store.set_fact("options", options)
        engine = Engine(store, bench, tuple(seeds))
        work = missing(engine, experiment)
        agreed_text(json.dumps([astuple(group) for group in work]))
        count = min(jobs if jobs is not None else default_jobs(), len(runs)) if jax.process_count() == 1 else 1
        watcher = watcher or Unwatched()
        todo = {run_id(group.cell, group.title, seed) for group in work for seed in group.seeds}
        for row in store.runs():
            if row.id in {run.id for run in runs} - todo:
                watcher.finished(row)
        with watcher.shown():
            if work and count > 1 and data is None and model is None and not debug:
                bench.forget()  # the workers load their own data
                run_parallel(
                    out,
                    experiment,
                    work,
                    jobs=count,
                    folder=folder,
                    save_models=engine.save_models,
                    on_progress=watcher.progress,
                    on_done=watcher.finished,
                )
            else:
                run_serial(engine, experiment, work, watcher.progress, watcher.finished)
        results = Results(store, experiment)
        if report is not None:
            report(results)
    return results


@contextmanager
def mastered(out: Path) -> Generator[Store]:
    """The store of a folder, which is created; open while the block lasts, in which no other process may write.

    Input that is found to be wrong before the first evaluation leaves no new folder behind.
    """
    new = [folder for folder in (out, *out.parents) if not folder.exists()]
    worthless = False
    try:
        with (
            Store(out) as store,
            alone(out / ".lock", f"another idiolect process works in '{out}'; wait for it, or use another --out"),
        ):
            clear_scratch(out)
            try:
                yield store
            except (ConfigError, DataError):
                worthless = bool(new) and not any(store.evaluated(row.id) for row in store.runs())
                raise
    except IdiolectError:
        if worthless:
            shutil.rmtree(out, ignore_errors=True)
            for folder in new[1:]:
                with suppress(OSError):
                    folder.rmdir()
        raise


def stored_options(store: Store) -> dict[str, Any]:
    """How a folder was launched: `folder`, `save_models`, `command` and `jobs`, None for one process a core."""
    before = store.fact("options") or {}
    return {"folder": None, "save_models": "first", "command": "", "jobs": None, **before}


def raise_diverged(results: Results) -> None:
    """Raise `DivergedError` if any run of the experiment diverged, naming the first."""
    rows = results.diverged()
    if rows:
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        message = f"{rows[0].id}: {rows[0].message}{more}"
        raise DivergedError(message, round=rows[0].round, client=None, stage="training")
