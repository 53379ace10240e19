"""Ctrl-C: one line that says the command that goes on, and exit code 130."""

import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import typer

from idiolect.study.advice.pieces import has_pieces
from idiolect.study.store import DATABASE

STOPPED = 130
"""The exit code of a command that was stopped by Ctrl-C, as shells have it."""


def this_command() -> str:
    """The command as it was typed."""
    return shlex.join(["idiolect", *sys.argv[1:]])


@contextmanager
def stoppable(out: Path | None = None, goes_on: Callable[[], str] = this_command) -> Generator[None]:
    """Turn Ctrl-C inside the block into a line, and `typer.Abort`, which `main` turns into the exit code.

    out: the folder that a stopped command leaves; None: it leaves nothing. goes_on: the command that goes on from it.
    """
    try:
        yield
    except KeyboardInterrupt:
        kept = out is not None and ((out / DATABASE).is_file() or has_pieces(out))
        told = f"go on with: {goes_on()}" if kept else f"nothing was kept; begin again with: {this_command()}"
        print(f"stopped; {told}", file=sys.stderr)
        raise typer.Abort from None
