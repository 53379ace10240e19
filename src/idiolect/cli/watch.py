"""The command watch: a run as it happens, from another terminal or in a browser."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from idiolect.cli.options import Json
from idiolect.cli.terminal import console, print_json, resume_command
from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.live_page import LivePage
from idiolect.report.progress import live
from idiolect.report.standing import Watching
from idiolect.study.advice.stored import is_advice
from idiolect.study.following import is_run

LOOK = 1.0
"""Seconds between two looks at the folder."""


def watch(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs, also a hub's, or one to come.")],
    page: Annotated[bool, typer.Option("--page", help="As a page for a browser on this machine.")] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of the page.  [default: a free one]")] = 0,
    linger: Annotated[
        float, typer.Option("--linger", min=0, help="Seconds without a reader after which the page of a run ends.")
    ] = 30.0,
    as_json: Json = False,
) -> None:
    """Watch runs while another process is at work on them; nothing is written.

    It ends when the runs do, or with Ctrl-C, which stops the watching alone.

    idiolect watch runs/penguins-1a2b3c

    idiolect watch runs/penguins-1a2b3c --page --port 8000

    idiolect watch runs/penguins-1a2b3c --json
    """
    if is_advice(folder):
        raise StoreError(
            f"'{folder}' holds an advice, which has no runs to watch; see: idiolect show {shlex.quote(str(folder))}"
        )
    if not is_run(folder):
        raise StoreError(f"'{folder}' is no folder of runs; name one that 'idiolect compare' wrote with --out")
    watching = Watching(folder)
    if as_json:
        if page or port:
            raise ConfigError("--json prints how the runs stand once; leave --page and --port out")
        print_json(watching.look().to_dict())
        return
    if port and not page:
        raise ConfigError(f"--port {port} is of the page; add --page")
    try:
        if page:
            _serve(watching, port, linger)
        else:
            _show(watching, folder)
    except KeyboardInterrupt:
        return
    standing = watching.standing
    if standing.begun and not standing.over:
        print(f"no process works on it; go on with: {resume_command(folder)}")


def _show(watching: Watching, folder: Path) -> None:
    """Show the folder until its runs end."""
    screen = console()
    if not watching.look().begun and not screen.is_terminal:  # what comes is drawn on terminals alone
        print(f"waiting for the first round of a run in '{folder}'", flush=True)
    if watching.ended():
        screen.print(live(watching.standing, screen, room=10_000))
        return
    with Live(get_renderable=lambda: live(watching.standing, screen), console=screen, transient=True) as shown:
        while not watching.ended():
            time.sleep(LOOK)
            watching.look()
            shown.refresh()
    screen.print(live(watching.standing, screen, room=10_000))


def _serve(watching: Watching, port: int, linger: float) -> None:
    """Serve the page until the runs end and nobody has read it for a while."""
    with LivePage(watching.look, port) as page:
        print(f"{page.url}  (this machine only; Ctrl-C ends it)", flush=True)
        while not (page.idle > linger and watching.ended()):
            time.sleep(min(LOOK, max(linger, 0.05)))
            watching.look()
