"""Completion of commands and options in a shell, by the scripts that typer has for each."""

from enum import StrEnum

import typer
from typer.completion import (
    completion_init,  # pyright: ignore[reportPrivateImportUsage]
    get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
)


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
