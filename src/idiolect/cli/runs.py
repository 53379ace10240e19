"""The commands report, watch and track: one page of runs, runs as they happen, runs sent to MLflow or TensorBoard."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live

from idiolect.cli.options import MORE, Json, MLflowTo, TensorBoardTo, check_output, file_path, folder_path
from idiolect.cli.terminal import console, print_file, print_json, print_outcome, resume_command
from idiolect.core.errors import ConfigError, StoreError
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.report.standing import Watching


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            parser=folder_path,
            help="Folders of runs, an advice's, or folders that hold only table.csv and clients.csv.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            parser=file_path,
            metavar="FILE",
            help="The page (default: report.html in the first folder).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a self-contained HTML page: the conclusion, the table, every client, how it was made.

    The page makes no request: it can be sent, printed and kept. Several folders of runs become one page.

    Examples:
    idiolect report runs/penguins-1a2b3c
    idiolect report runs/penguins-1a2b3c runs/mnist-4d5e6f -o both.html

    Writes: report.html in the first folder, or the file of --out.
    """
    with loading():
        from idiolect.report.page import PAGE, folders_page
    target = out or runs[0] / PAGE
    if not target.is_dir():
        check_output(target, *runs, unread=(".html",))
    page = folders_page(runs, out)
    if as_json:
        print_json({"page": str(page)})
    else:
        print_file("page", page)


LOOK = 1.0
"""Seconds between two reads of the folder."""


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="A folder of runs, also a hub's, which may not exist yet.")
    ],
    page: Annotated[bool, typer.Option("--page", help="Serve a page for a browser on this machine.")] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="N",
            help="Port of the page (default: a free one).",
            show_default=False,
        ),
    ] = 0,
    linger: Annotated[
        float,
        typer.Option(
            "--linger",
            rich_help_panel=MORE,
            min=0,
            metavar="SECONDS",
            help="Time without a reader after which the page of a run ends.",
        ),
    ] = 30.0,
    as_json: Json = False,
) -> None:
    """Watch runs while another process is at work on them; nothing is written.

    It ends when the runs do, or with Ctrl-C, which stops only the watching.

    Examples:
    idiolect watch runs/penguins-1a2b3c
    idiolect watch runs/penguins-1a2b3c --page --port 8000

    Writes: nothing.
    """
    with loading():
        from idiolect.report.standing import Watching
        from idiolect.study.advice.stored import is_advice
        from idiolect.study.run.following import is_run
    if is_advice(folder):
        raise StoreError(
            f"'{folder}' holds an advice, which has no runs to watch; see: idiolect show {shlex.quote(str(folder))}"
        )
    if not is_run(folder):
        raise StoreError(f"'{folder}' is no folder of runs; name one that 'idiolect compare' wrote with --out")
    watching = Watching(folder)
    if as_json:
        if page or port:
            raise ConfigError("--json prints the state of the runs once; leave --page and --port out")
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
        print(f"no process works on it; resume with: {resume_command(folder)}")


def _show(watching: "Watching", folder: Path) -> None:
    """Show the folder until its runs end."""
    from idiolect.report.progress import live

    screen = console()
    if not watching.look().begun and not screen.is_terminal:  # progress is drawn only on terminals
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


def _serve(watching: "Watching", port: int, linger: float) -> None:
    """Serve the page until the runs end and nobody has read it for a while."""
    from idiolect.report.live_page import LivePage

    with LivePage(watching.look, port) as page:
        print(f"{page.url}  (this machine only; Ctrl-C ends it)", flush=True)
        while not (page.idle > linger and watching.ended()):
            time.sleep(min(LOOK, max(linger, 0.05)))
            watching.look()


def track(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs, also while they are at work.")],
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Send runs to MLflow or TensorBoard: every number by round, the settings, and the files of finished runs.

    What is there already is not sent twice. With the same options demo, compare, run, resume, reproduce, sweep,
    federate and hub run send as they go.

    Examples:
    idiolect track runs/penguins-1a2b3c --mlflow tracked
    idiolect track runs/penguins-1a2b3c --tensorboard tracked

    Writes: the folder of --mlflow or --tensorboard; nothing in RUN.
    """
    with loading():
        from idiolect.report.trackers.tracking import export, trackers_of
    if not mlflow and not tensorboard:
        raise ConfigError("name where to: --mlflow FOLDER or an address, or --tensorboard FOLDER")
    for option, place in (("--mlflow", mlflow), ("--tensorboard", tensorboard)):
        if place and "://" not in place:
            check_output(Path(place), folder, option=option)
    trackers = trackers_of(mlflow, tensorboard)
    try:
        count = export(folder, trackers, final=True)
    finally:
        for tracker in trackers:
            tracker.close()
    places = [tracker.where for tracker in trackers]
    runs = "1 run" if count == 1 else f"{count} runs"
    print_outcome({"runs": count, "see": places}, [f"{runs} sent; see: {place}" for place in places], as_json)
