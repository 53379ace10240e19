"""The command line; each command has a module of its own."""

import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated

import typer

from idiolect.cli.advise import advise
from idiolect.cli.compare import compare
from idiolect.cli.completion import Shell, completes, show_completion
from idiolect.cli.experiments import demo, reproduce, resume, run
from idiolect.cli.export import export
from idiolect.cli.federate import federate
from idiolect.cli.figure import figure
from idiolect.cli.hub import app as hub
from idiolect.cli.inspect import inspect
from idiolect.cli.personalize import personalize
from idiolect.cli.predict import predict
from idiolect.cli.report import report
from idiolect.cli.show import list_, show
from idiolect.cli.site import app as site
from idiolect.cli.stopping import STOPPED, this_command
from idiolect.cli.sweep import sweep
from idiolect.cli.terminal import UsageError, fail, unreadable
from idiolect.cli.track import track
from idiolect.cli.watch import watch
from idiolect.core.errors import ConfigError, DivergedError, IdiolectError
from idiolect.runtime.devices import use_cores
from idiolect.runtime.distributed import join, start

app = typer.Typer(
    help="Personalized federated learning: every client ends with its own model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> bool:
    if wanted:
        print(version("idiolect"))
        raise typer.Exit
    return wanted


@app.callback()
def _top(  # pyright: ignore[reportUnusedFunction]
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    distributed: Annotated[
        bool, typer.Option("--distributed", help="One of several processes that a cluster (Slurm, ...) started.")
    ] = False,
    _script: Annotated[
        Shell | None,
        typer.Option(
            "--show-completion",
            callback=show_completion,
            is_eager=True,
            help="Print what makes a shell complete commands and options: source <(idiolect --show-completion bash).",
        ),
    ] = None,
) -> None:
    """Personalized federated learning: every client ends with its own model."""
    if not join(distributed):
        with suppress(ConfigError):  # a program that has computed with JAX keeps its devices
            use_cores()


@app.command(name="launch", context_settings={"ignore_unknown_options": True})
def launch_(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND ...", help="What each process runs.", show_default=False)
    ] = None,
    processes: Annotated[int, typer.Option("-n", "--processes", help="Processes on this machine.")] = 2,
) -> None:
    """Run a command in several processes that divide each cohort.

    idiolect launch -n 2 -- compare --data synthetic --methods fedavg
    """
    if not command:
        raise typer.BadParameter("name the command to run: idiolect launch -n 2 -- compare --data DATA")
    code = start(processes, command)
    if code:
        raise typer.Exit(code)


for command in (
    demo,
    advise,
    compare,
    sweep,
    run,
    resume,
    reproduce,
    report,
    show,
    watch,
    figure,
    inspect,
    predict,
    export,
    track,
    personalize,
    federate,
):
    app.command()(command)
app.command(name="list")(list_)
app.add_typer(hub, name="hub")
app.add_typer(site, name="site")


def main() -> None:
    """Run the command line; every error is printed in one line.

    Exit codes: 1 for a known error, 2 for a command that cannot be read, 3 for a run that diverged, 130 for Ctrl-C.
    """
    completes()
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="idiolect", standalone_mode=False)
    except typer.Abort:  # Ctrl-C of which `stoppable` has told
        sys.exit(STOPPED)
    except UsageError as error:
        fail(*unreadable(error))
    except DivergedError as error:
        fail(f"diverged: {error}", 3)
    except IdiolectError as error:
        fail(f"error: {error}", 1)
    else:
        if code == STOPPED:  # Ctrl-C anywhere else
            fail(f"stopped; nothing was kept; begin again with: {this_command()}", STOPPED)
        sys.exit(code if isinstance(code, int) else 0)
