"""Run groups in several processes on one machine, which divide its cores."""

import gc
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from multiprocessing import active_children, parent_process
from multiprocessing.connection import wait as wait_for
from multiprocessing.queues import Queue
from multiprocessing.util import Finalize
from pathlib import Path
from queue import Empty
from typing import TypeAlias

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.core.cores import cores
from idiolect.core.errors import IdiolectError, StoreError
from idiolect.core.forking import uninterrupted, worker_context
from idiolect.core.handing import Handed
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.devices import are_cores, use_cores
from idiolect.study.run.engine import Engine, Group
from idiolect.study.run.recording import Progress
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment
from idiolect.study.store.store import RunRow, Store

Events: TypeAlias = "Queue[tuple[str, Progress] | RunRow]"
"""The workers' messages: (run id, progress), or the row of a run that has ended."""

_engine: Engine | None = None
_events: "Events | None" = None


def default_jobs() -> int:
    """The default number of processes: one per core on a CPU; a single one on accelerators or other devices."""
    return len(cores()) if are_cores() else 1


def shares(jobs: int) -> list[list[int]]:
    """Divide the cores over `jobs` processes; with more processes than cores, each gets all of them.

    Every process gets equally many, and left-over cores stay idle: a run's last bits must not depend on the process
    that runs it.
    """
    available = cores()
    if jobs > len(available):
        return [available] * jobs
    each = len(available) // jobs
    return [available[job * each : (job + 1) * each] for job in range(jobs)]


def divide(experiment: Experiment, work: list[Group], jobs: int) -> list[Group]:
    """Cut groups by seeds into a few pieces for each process: the first cell first, in a cell the costliest first.

    So the first cell's answer comes early, and within a cell the processes end at about the same time.
    """
    pieces = math.ceil(4 * jobs / max(len(work), 1))
    size = max(1, math.ceil(experiment.seeds / pieces))
    parts = [
        replace(group, seeds=group.seeds[i : i + size]) for group in work for i in range(0, len(group.seeds), size)
    ]
    places = {cell.id: place for place, cell in enumerate(experiment.cells)}
    return sorted(parts, key=lambda group: (places[group.cell], -_cost(experiment, group)))


def _cost(experiment: Experiment, group: Group) -> float:
    """Estimate a group's cost roughly: enough to start the longest first."""
    cell = experiment.cell(group.cell)
    spec = cell.method(group.title).spec
    known = {"local_steps": 1, "inner_steps": 1, **hyperparameters(ALGORITHMS[spec["name"]]), **spec}
    model = cell.model["name"]
    size = 20 if model.endswith("cnn") else {"mlr": 1, "linear": 1}.get(model, 3)
    return cell.rounds * max(known["local_steps"], 1) * max(known["inner_steps"], 1) * size * len(group.seeds)


def _begin(
    out: Path,
    folder: str | None,
    save_models: tuple[int, ...],
    events: Events,
    core_shares: "Queue[list[int]]",
    loaded: Handed | None,
    environment: dict[str, str],
) -> None:
    global _engine, _events
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # XLA starts a thread for each core it may use: without its own cores, every process would use all of them.
    own_cores = core_shares.get()
    with suppress(AttributeError, OSError):
        os.sched_setaffinity(0, own_cores)
    use_cores(len(own_cores))
    use_compilation_cache()
    store = Store(out)
    Finalize(None, store.close, exitpriority=1)  # runs when the worker exits
    bench = Workbench(folder)
    bench.take(loaded)
    _engine, _events = Engine(store, bench, save_models), events


def _end_with_parent() -> None:
    """Exit when the parent process is killed. A worker may end at any instant: the store stays valid."""
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _work(experiment: Experiment, group: Group) -> None:
    engine, events = _engine, _events
    assert engine is not None
    assert events is not None
    for row in engine.run_group(experiment, group, lambda name, progress: events.put((name, progress))):
        events.put(row)
    # JAX keeps small pieces of everything it compiles, group after group; the programs stay for the next group.
    gc.collect()


def run_parallel(
    out: Path,
    experiment: Experiment,
    work: list[Group],
    *,
    jobs: int,
    folder: str | None,
    save_models: tuple[int, ...],
    on_progress: Callable[[str, Progress], None],
    on_done: Callable[[RunRow], None],
    loaded: Handed | None = None,
) -> None:
    """Run all groups in `jobs` processes, each of which writes to the store at `out`.

    loaded: data that they share, see `Workbench.giving`; without it each loads its own. Raises the first error of a
    worker, or KeyboardInterrupt. The other workers are then stopped; a resumed run computes again what they lose.
    """
    context = worker_context()
    events: Events = context.Queue()
    core_shares: Queue[list[int]] = context.Queue()
    for share in shares(jobs):
        core_shares.put(share)

    def drain() -> None:
        with suppress(Empty):
            while True:
                event = events.get_nowait()
                if isinstance(event, RunRow):
                    on_done(event)
                else:
                    on_progress(*event)

    start = (out, folder, save_models, events, core_shares, loaded, dict(os.environ))
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=start)
    try:
        with uninterrupted():
            waiting: set[Future[None]] = {
                pool.submit(_work, experiment, group) for group in divide(experiment, work, jobs)
            }
        while waiting:
            done, waiting = wait(waiting, timeout=0.05, return_when=FIRST_COMPLETED)
            drain()
            for future in done:
                _check(future, out)
    except BaseException:
        for process in active_children():
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown(wait=True)
    drain()


def _check(future: "Future[None]", out: Path) -> None:
    try:
        future.result()
    except IdiolectError:
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise StoreError(f"a worker process failed: {reason}; continue with: idiolect resume {out}") from error
