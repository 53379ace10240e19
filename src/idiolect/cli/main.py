"""The command line. Modules of commands import JAX and pandas inside their functions: help must not wait for them."""

import sys
from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.completion import (
    completion_init,  # pyright: ignore[reportPrivateImportUsage]
    get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
)

from idiolect.cli import hub, site
from idiolect.cli.advise import advise
from idiolect.cli.combine import combine
from idiolect.cli.command import Command, Group
from idiolect.cli.encode import encode
from idiolect.cli.experiments import compare, demo, reproduce, resume, run
from idiolect.cli.federate import federate
from idiolect.cli.figure import figure
from idiolect.cli.inspect import inspect
from idiolect.cli.launch import launch
from idiolect.cli.models import export, personalize, predict
from idiolect.cli.runs import report, track, watch
from idiolect.cli.schema import schema
from idiolect.cli.show import list_, show
from idiolect.cli.stopping import STOPPED, this_command
from idiolect.cli.sweep import sweep
from idiolect.cli.terminal import UsageError, fail, unreadable
from idiolect.core.errors import DivergedError, IdiolectError

COMMANDS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Start": {"demo": demo, "inspect": inspect, "advise": advise, "compare": compare, "list": list_},
    "Results": {"report": report, "show": show, "watch": watch, "figure": figure, "track": track},
    "Experiments": {
        "run": run,
        "resume": resume,
        "sweep": sweep,
        "reproduce": reproduce,
        "launch": launch,
        "schema": schema,
        "encode": encode,
    },
    "Models": {"predict": predict, "combine": combine, "personalize": personalize, "export": export},
    "Sites": {"federate": federate, "hub": hub.app, "site": site.app},
}
"""Every command, in the groups in which `idiolect --help` lists them."""

app = typer.Typer(
    cls=Group,
    help="Personalized federated learning: every client ends with its own model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


class Shell(StrEnum):
    """The shells that typer has a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"
    pwsh = "pwsh"


def show_completion(shell: Shell | None) -> Shell | None:
    """Print the script of a shell, which its user sources or saves, and end."""
    if shell is not None:
        print(get_completion_script(prog_name="idiolect", complete_var="_IDIOLECT_COMPLETE", shell=shell.value))
        raise typer.Exit
    return shell


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
            metavar="SHELL",
            callback=show_completion,
            is_eager=True,
            help="Print what makes bash, zsh, fish or powershell complete commands and options; "
            "for example: source <(idiolect --show-completion bash).",
        ),
    ] = None,
) -> None:
    """Personalized federated learning: every client ends with its own model."""
    # `Command` reads --distributed when a command is run


def _register() -> None:
    for panel, commands in COMMANDS.items():
        for name, command in commands.items():
            if isinstance(command, typer.Typer):
                for info in command.registered_commands:
                    info.cls = Command
                app.add_typer(command, name=name, cls=Group, rich_help_panel=panel)
            else:
                context: dict[str, Any] = {"ignore_unknown_options": True} if command is launch else {}
                app.command(name, cls=Command, rich_help_panel=panel, context_settings=context)(command)


_register()


def main() -> None:
    """Run the command line; every error is printed in one line.

    Exit codes: 1 for a known error, 2 for a command that cannot be read, 3 for a run that diverged, 130 for Ctrl-C.
    """
    completion_init()  # answers when a shell asks what may follow (the variable _IDIOLECT_COMPLETE)
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="idiolect", standalone_mode=False)
    except typer.Abort:  # Ctrl-C that `stoppable` has reported
        sys.exit(STOPPED)
    except UsageError as error:
        if not error.format_message():  # a group without a command, whose help has been printed
            sys.exit(0)
        fail(*unreadable(error))
    except DivergedError as error:
        fail(f"diverged: {error}", 3)
    except IdiolectError as error:
        fail(f"error: {error}", 1)
    else:
        if code == STOPPED:  # Ctrl-C anywhere else
            fail(f"stopped; nothing was kept; begin again with: {this_command()}", STOPPED)
        sys.exit(code if isinstance(code, int) else 0)
