"""Several runs at once on one machine: one process a core, or each with its share of the cores."""

import gc
import math
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from multiprocessing.queues import Queue
from multiprocessing.util import Finalize
from pathlib import Path
from queue import Empty
from typing import TypeAlias

from idiolect.core.errors import IdiolectError, StoreError
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.devices import are_cores, cores, use_cores
from idiolect.study.engine import Engine, Group
from idiolect.study.experiment import Experiment
from idiolect.study.recording import Progress
from idiolect.study.resolve import Workbench
from idiolect.study.store import RunRow, Store

Events: TypeAlias = "Queue[tuple[str, Progress] | RunRow]"
"""What workers tell: where a run stands (by its name), or that it is finished."""

_engine: Engine | None = None
_events: "Events | None" = None


def default_jobs() -> int:
    """One process a core on a CPU; one where there are accelerators or other devices, which has them to itself."""
    return len(cores()) if are_cores() else 1


def shares(jobs: int) -> list[list[int]]:
    """The cores of each of `jobs` processes; with more processes than cores, all for each.

    All have equally many, and none takes what is left over: which process gets a run must not change its last bits.
    """
    own = cores()
    if jobs > len(own):
        return [own] * jobs
    each = len(own) // jobs
    return [own[job * each : (job + 1) * each] for job in range(jobs)]


def divide(experiment: Experiment, work: list[Group], jobs: int) -> list[Group]:
    """Order work by falling cost, and cut groups by seeds until there are a few pieces for each process."""
    pieces = math.ceil(4 * jobs / max(len(work), 1))
    size = max(1, math.ceil(experiment.seeds / pieces))
    cut = [
        replace(group, seeds=group.seeds[i : i + size]) for group in work for i in range(0, len(group.seeds), size)
    ]
    return sorted(cut, key=lambda group: -_cost(experiment, group))


def _cost(experiment: Experiment, group: Group) -> float:
    """A rough guess, good enough to start the longest first."""
    cell = experiment.cell(group.cell)
    spec = cell.method(group.title).spec
    steps = {"pfedme": spec.get("inner_steps", 5), "perfedavg": 5}.get(spec["name"], 1)
    model = cell.model["name"]
    size = 20 if model.endswith("cnn") else {"mlr": 1, "linear": 1}.get(model, 3)
    return cell.rounds * spec.get("local_steps", 20) * steps * size * len(group.seeds)


def _begin(
    out: Path, folder: str | None, save_models: tuple[int, ...], events: Events, mine: "Queue[list[int]]"
) -> None:
    global _engine, _events
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # XLA sizes its thread pool by the cores it may use: its own, or the processes fight for all of them.
    share = mine.get()
    with suppress(AttributeError, OSError):
        os.sched_setaffinity(0, share)
    use_cores(len(share))
    use_compilation_cache()
    store = Store(out)
    Finalize(None, store.close, exitpriority=1)  # a worker's own atexit
    _engine, _events = Engine(store, Workbench(folder), save_models), events


def _end_with_parent() -> None:
    """A killed parent leaves no workers behind; a worker may end at any instant."""
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
    # Of what is compiled, JAX keeps small pieces for ever, group after group; programs are kept for the next group.
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
) -> None:
    """Run all groups in `jobs` processes; each writes to the store at `out` itself.

    Raises the first error of a worker, or KeyboardInterrupt; the other workers are then stopped where they are,
    which loses nothing that a resumed run would not compute again.
    """
    context = get_context("spawn")
    events: Events = context.Queue()
    own: Queue[list[int]] = context.Queue()
    for share in shares(jobs):
        own.put(share)

    def drain() -> None:
        with suppress(Empty):
            while True:
                event = events.get_nowait()
                if isinstance(event, RunRow):
                    on_done(event)
                else:
                    on_progress(*event)

    start = (out, folder, save_models, events, own)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=start)
    try:
        with _uninterrupted():
            waiting: set[Future[None]] = {
                pool.submit(_work, experiment, group) for group in divide(experiment, work, jobs)
            }
        while waiting:
            done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
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
        raise StoreError(f"a worker process failed: {reason}; go on with: idiolect resume {out}") from error


@contextmanager
def _uninterrupted() -> Generator[None, None, None]:
    """Processes started inside the block ignore Ctrl-C: their parent stops them, without their tracebacks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
