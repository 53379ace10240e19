"""Ctrl-C: one line with the command that resumes, and exit code 130."""

import gc
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer

STOPPED = 130
"""The exit code of a command that was stopped by Ctrl-C, as shells have it."""
AGAIN = 0.3
"""Seconds after which a Ctrl-C that has had no effect is heard again."""


def this_command() -> str:
    """The command as it was typed."""
    return shlex.join(["idiolect", *sys.argv[1:]])


@contextmanager
def stoppable(out: Path | None = None, goes_on: Callable[[], str] = this_command) -> Generator[None]:
    """Turn Ctrl-C inside the block into a line, and `typer.Abort`, which `main` turns into the exit code.

    out: the folder that a stopped command leaves; None: it leaves nothing. goes_on: the command that resumes it.
    """
    try:
        with _heard():
            yield
    except KeyboardInterrupt:
        kept = out is not None and _is_kept(out)
        hint = f"resume with: {goes_on()}" if kept else f"nothing was kept; begin again with: {this_command()}"
        print(f"stopped; {hint}", file=sys.stderr)
        raise typer.Abort from None


def _is_kept(out: Path) -> bool:
    """Whether the folder has finished work to continue from."""
    # Imported here: it takes seconds, and a command that prints its help must not wait for it.
    from idiolect.study.advice.pieces import has_pieces
    from idiolect.study.store.store import DATABASE

    return (out / DATABASE).is_file() or has_pieces(out)


@contextmanager
def _heard() -> Generator[None]:
    """Hear every Ctrl-C of the block: raise `KeyboardInterrupt` again until it ends the block.

    While JAX traces and compiles, one is often lost: its callbacks and its C++ parts drop what is raised in them.
    """
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    looks, over = False, False
    timer = threading.Timer(AGAIN, lambda: None)

    def look() -> None:
        nonlocal looks
        looks = True
        signal.raise_signal(signal.SIGINT)

    def interrupted(_: int, frame: FrameType | None) -> None:
        nonlocal looks, timer
        typed, looks = not looks, False
        if over:
            return
        timer.cancel()
        timer = threading.Timer(AGAIN, look)
        timer.daemon = True
        timer.start()
        # One that is on its way is not raised a second time: that would break off what cleans up.
        if not _collects(frame) and (typed or not _is_handled()):
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        over = True
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _collects(frame: FrameType | None) -> bool:
    """Whether a callback of the garbage collector is at work, in which an exception is printed and lost."""
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None:
        if frame.f_code in callbacks:
            return True
        frame = frame.f_back
    return False


def _is_handled() -> bool:
    """Whether a `KeyboardInterrupt` is on its way up, or was when what is on its way up now was raised."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
