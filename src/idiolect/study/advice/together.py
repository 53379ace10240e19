"""Run several pieces of work side by side in threads: XLA computes and compiles without Python's lock."""

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from idiolect.core.cores import cores

Piece = TypeVar("Piece")
Check = Callable[[], None]


class StoppedError(Exception):
    """Another piece failed, or the user stopped: the work ends at its next check."""


def workers_for(work: Sequence[object]) -> int:
    """Threads for so many pieces of work: at most one for each core, and four."""
    return max(1, min(len(cores()), 4, len(work)))


def side_by_side(
    work: Sequence[Callable[[Check], Piece]], workers: int | None = None
) -> Generator[tuple[int, Piece]]:
    """Yield (place, result) of each piece of work as it is finished.

    work: functions of a check, which they call now and then; it raises `StoppedError` after a failure elsewhere or
    when the generator is closed. workers: threads, by default see `workers_for`. The first error
    is raised, after the others have stopped.
    """
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise StoppedError

    with ThreadPoolExecutor(workers or workers_for(work)) as pool:
        futures = {pool.submit(one, check): place for place, one in enumerate(work)}
        try:
            for done in as_completed(futures):
                yield futures[done], done.result()
        finally:
            stop.set()
            for future in futures:
                future.cancel()
