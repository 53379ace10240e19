"""Worker processes that start at once: forked from a server that loads its modules while the command loads its own.

A process that has computed with JAX must not be forked, as XLA's threads would be missing in the copy. The server
only loads modules: it computes nothing, so its copies are whole.
"""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext

_begun_with: dict[str, str] | None = None  # the environment of the server, once it is there


def serve_forks(module: str) -> None:
    """Start the server, which imports the module meanwhile; nothing happens where the system cannot have one.

    It ends with this process. Ctrl-C does not reach it, nor the processes that it forks.
    """
    global _begun_with
    if "forkserver" not in get_all_start_methods() or threading.current_thread() is not threading.main_thread():
        return
    from multiprocessing.forkserver import ensure_running, set_forkserver_preload  # absent on Windows

    set_forkserver_preload([module])
    try:
        with uninterrupted():
            ensure_running()
    except OSError:  # no room for its socket, or a path too long for one
        return
    _begun_with = dict(os.environ)


def worker_context() -> BaseContext:
    """The way to start workers: forked by the server where there is one, else each as a new process.

    The server has the environment that it was started in. After a change of what was there, workers are new
    processes; variables that were added since, as JAX does, must be given to workers.
    """
    fits = _begun_with is not None and _begun_with.items() <= os.environ.items()
    return get_context("forkserver" if fits else "spawn")


@contextmanager
def uninterrupted() -> Generator[None]:
    """Processes started inside the block ignore Ctrl-C: the parent stops them, so they print no tracebacks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
