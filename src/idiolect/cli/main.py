"""The command line: a command's module is imported when the command is used, so `idiolect --help` imports no JAX."""

import sys
from collections import UserDict
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple, cast

import typer
from typer.completion import (
    completion_init,  # pyright: ignore[reportPrivateImportUsage]
    get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
)
from typer.core import TyperCommand, TyperGroup

from idiolect.cli.stopping import STOPPED, this_command
from idiolect.cli.terminal import UsageError, fail, unreadable
from idiolect.core.errors import ConfigError, DivergedError, IdiolectError
from idiolect.core.loading import loading


class Place(NamedTuple):
    """Where a command is defined. object: a function, or a `Typer` with commands of its own; help: its first line."""

    module: str
    object: str
    help: str


class _Commands(UserDict[str, Any]):
    """Commands by name; one that is given as a `Place` is made when it is read."""

    def __getitem__(self, key: str) -> Any:
        value = self.data[key]
        if isinstance(value, Place):
            value = self.data[key] = made(key, value)
        return value

    def help_of(self, name: str) -> Any:
        """A command to be listed in the group's help, without its module."""
        value = self.data[name]
        return TyperCommand(name, help=value.help) if isinstance(value, Place) else value


def made(name: str, place: Place) -> Any:
    """Import a command's module and make the command (click's)."""
    with loading():
        found = getattr(import_module(place.module), place.object)
    outer = typer.Typer(rich_markup_mode="rich")
    outer.callback()(_nothing)  # with it, `outer` stays a group, also of one command
    if isinstance(found, typer.Typer):
        outer.add_typer(found, name=name)
    else:
        outer.command(name=name)(found)
    group: Any = typer.main.get_command(outer)
    return group.commands[name]


def _nothing() -> None:
    """Do nothing before the command."""


def lazy_group(places: Mapping[str, Place]) -> type[TyperGroup]:
    """Make a class of groups with these commands, in this order, before those that are registered."""

    class Lazy(TyperGroup):
        """A group of commands whose modules are imported when they are used."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = cast("Any", _Commands({**places, **self.commands}))
            self._lists = False

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            commands = cast("_Commands", self.commands)
            if self._lists and cmd_name in commands:
                return commands.help_of(cmd_name)
            return commands.get(cmd_name)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            self._lists = True
            try:
                super().format_help(ctx, formatter)
            finally:
                self._lists = False

    return Lazy


class Shell(StrEnum):
    """The shells that typer has a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"
    pwsh = "pwsh"


def completes() -> None:
    """Let this process answer when a shell asks what may follow (the variable _IDIOLECT_COMPLETE)."""
    completion_init()


def show_completion(shell: Shell | None) -> Shell | None:
    """Print the script of a shell, which its user sources or saves, and end."""
    if shell is not None:
        print(get_completion_script(prog_name="idiolect", complete_var="_IDIOLECT_COMPLETE", shell=shell.value))
        raise typer.Exit
    return shell


COMMANDS = {
    "demo": Place(
        "idiolect.cli.experiments",
        "demo",
        "Compare methods on a small synthetic federation: two minutes, no download.",
    ),
    "advise": Place(
        "idiolect.cli.advise",
        "advise",
        "Advise whether to federate, with which method, and who gains or loses; with the uncertainty.",
    ),
    "compare": Place(
        "idiolect.cli.experiments",
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
        "Run a paper's table or figure and compare it with the published values.",
    ),
    "report": Place(
        "idiolect.cli.runs",
        "report",
        "Write a self-contained HTML page: the conclusion, the table, every client, how it was made.",
    ),
    "show": Place("idiolect.cli.show", "show", "Show what a folder holds: results, and runs that are not finished."),
    "watch": Place(
        "idiolect.cli.runs", "watch", "Watch runs while another process is at work on them; nothing is written."
    ),
    "figure": Place(
        "idiolect.cli.figure",
        "figure",
        "Draw a figure of a run for a paper, or write its table in LaTeX; its caption is printed for LaTeX.",
    ),
    "inspect": Place(
        "idiolect.cli.inspect",
        "inspect",
        "Inspect a table: clients, labels, columns, gaps, suspected identifiers and leaks, and the command to run.",
    ),
    "predict": Place(
        "idiolect.cli.models",
        "predict",
        "Predict raw rows: labels in the table's words, numbers in its units, and each class's probability.",
    ),
    "export": Place(
        "idiolect.cli.models",
        "export",
        "Write a model as plain arrays or as ONNX, and a JSON file with its schema, classes and shapes.",
    ),
    "track": Place(
        "idiolect.cli.runs",
        "track",
        "Send runs to MLflow or TensorBoard: every number by round, the settings, and the files of finished runs.",
    ),
    "personalize": Place(
        "idiolect.cli.models",
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
    "hub": Place("idiolect.cli.hub", "app", "The hub of a federation; it receives no rows."),
    "site": Place("idiolect.cli.site", "app", "A site of a federation; its data stay on this machine."),
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
    except typer.Abort:  # Ctrl-C that `stoppable` has reported
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
