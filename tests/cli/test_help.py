"""The help of every command: examples that can be run as they are written, and --json where a result is printed."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from idiolect.cli.main import app

SILENT = {"idiolect launch", "idiolect site run"}
"""Commands that print no result of their own."""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below one, by its path."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, one in command.commands.items():
        yield from commands(one, f"{path} {name}")


TOP: Any = typer.main.get_command(app)
ALL = dict(commands(TOP, "idiolect"))


def examples(command: Any) -> list[str]:
    """The lines of a command's help that begin with `idiolect`, without what is said of them after two spaces."""
    text = f"{command.help or ''}\n{command.epilog or ''}"
    lines = re.findall(r"^\s*(?:Examples?:\s*)?(idiolect .+)$", text, re.MULTILINE)
    return [re.split(r"\s{2,}", line)[0].strip() for line in lines]


@pytest.mark.parametrize("path", ALL)
def test_an_example_that_can_be_read(path):
    found = examples(ALL[path])
    assert [line for line in found if f"{line} ".startswith(f"{path} ")], f"the help of '{path}' has no example"
    for line in found:
        words = shlex.split(line)[1:]
        command, context = TOP, typer.Context(TOP, info_name="idiolect")
        while hasattr(command, "commands"):
            name = words.pop(0)
            command = command.commands[name]
            context = typer.Context(command, parent=context, info_name=name)
        command.make_context(context.info_name, words, parent=context.parent)  # raises for what cannot be read


@pytest.mark.parametrize("path", [path for path in ALL if path not in SILENT])
def test_a_result_can_be_had_as_json(path):
    assert any("--json" in option.opts for option in ALL[path].params), f"'{path}' has no --json"


def test_every_command_and_option_says_what_it_is():
    for path, command in ALL.items():
        assert command.help, path
        for option in command.params:
            told = getattr(option, "help", None)
            assert told or option.param_type_name == "argument" or option.name == "curve", f"{path} {option.name}"
