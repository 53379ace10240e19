"""The command line; each command has a module of its own."""

import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated

import typer

from idiolect.cli.completion import Shell, completes, show_completion
from idiolect.cli.lazy import Place, lazy_group
from idiolect.cli.stopping import STOPPED, this_command
from idiolect.cli.terminal import UsageError, fail, unreadable
from idiolect.core.errors import ConfigError, DivergedError, IdiolectError

COMMANDS = {
    "demo": Place(
        "idiolect.cli.experiments",
        "demo",
        "Compare methods on a small synthetic federation: two minutes, no download.",
    ),
    "advise": Place(
        "idiolect.cli.advise",
        "advise",
        "Should these clients federate, with what, and who gains or loses: one page, with its uncertainty.",
    ),
    "compare": Place(
        "idiolect.cli.compare",
        "compare",
        "Compare methods on one federation: one table, curves, and every client's model as a file.",
    ),
    "sweep": Place(
        "idiolect.cli.sweep",
        "sweep",
        "Try settings of methods as few compiled programs; choose on validation data, then show the test score.",
    ),
    "run": Place(
        "idiolect.cli.experiments", "run", "Run an experiment file; what the folder already has is not run again."
    ),
    "resume": Place(
        "idiolect.cli.experiments",
        "resume",
        "Resume an interrupted run; the result is identical to an uninterrupted one.",
    ),
    "reproduce": Place(
        "idiolect.cli.experiments",
        "reproduce",
        "Run a paper's table or figure and set it beside the published values.",
    ),
    "report": Place(
        "idiolect.cli.report",
        "report",
        "Write one self-contained HTML page: the answer, the table, every client, how it was made.",
    ),
    "show": Place("idiolect.cli.show", "show", "Show what a folder holds: results, and runs that are not finished."),
    "watch": Place(
        "idiolect.cli.watch", "watch", "Watch runs while another process is at work on them; nothing is written."
    ),
    "figure": Place(
        "idiolect.cli.figure",
        "figure",
        "Draw a figure of a run for a paper, or write its table in LaTeX; its caption is printed for LaTeX.",
    ),
    "inspect": Place(
        "idiolect.cli.inspect",
        "inspect",
        "Look at a table: clients, labels, columns, gaps, suspected identifiers and leaks, and the command to run.",
    ),
    "predict": Place(
        "idiolect.cli.predict",
        "predict",
        "Predict raw rows: labels in the table's words, numbers in its units, and each class's probability.",
    ),
    "export": Place(
        "idiolect.cli.export",
        "export",
        "Write a model as plain arrays or as ONNX, beside a JSON with its schema, classes and shapes.",
    ),
    "track": Place(
        "idiolect.cli.track",
        "track",
        "Send runs to MLflow or TensorBoard: every number by round, the settings, and the files of finished runs.",
    ),
    "personalize": Place(
        "idiolect.cli.personalize",
        "personalize",
        "Give new clients their models by a finished run's method; nothing of the run changes.",
    ),
    "federate": Place(
        "idiolect.cli.federate",
        "federate",
        "Run an experiment between real processes on this machine: a hub, and sites that keep their samples.",
    ),
    "list": Place(
        "idiolect.cli.show",
        "list_",
        "List what can be named: methods, data, models, metrics, experiments; with a name, its page.",
    ),
    "hub": Place("idiolect.cli.hub", "app", "The hub of a federation: it sees no row."),
    "site": Place("idiolect.cli.site", "app", "A site of a federation: its data stay here."),
}
"""Every command. `launch` is made here."""

app = typer.Typer(
    cls=lazy_group(COMMANDS),
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
    from idiolect.runtime.devices import use_cores  # imported here: it imports JAX, and --help must not
    from idiolect.runtime.distributed import join

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
    from idiolect.runtime.distributed import start

    code = start(processes, command)
    if code:
        raise typer.Exit(code)


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
