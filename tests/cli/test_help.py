"""The help of every command: two examples that can be read, what it writes, one style of names, and --json."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from idiolect.cli.command import Command
from idiolect.cli.main import app

SILENT = {"idiolect launch", "idiolect site run"}
"""Commands that print no result of their own."""
INTO_AN_ARGUMENT = {
    *("idiolect combine", "idiolect site combine"),
    *("idiolect launch", "idiolect resume", "idiolect track"),
    *("idiolect hub init", "idiolect hub run", "idiolect hub add", "idiolect hub remove"),
    *("idiolect hub forget", "idiolect site accept-changes"),
    *("idiolect site init", "idiolect site run", "idiolect site approve", "idiolect site revoke"),
    *("idiolect hub revoke", "idiolect hub renew", "idiolect site renew"),
    *("idiolect hub score", "idiolect hub describe"),
    *("idiolect site init", "idiolect site run"),
}
"""Commands that write into the folder that another option or an argument names."""
LONGEST = 77
"""Characters of an example, which a terminal of 80 columns shows on one line."""
TABLES = {"advise", "compare", "inspect", "personalize", "predict", "sweep", "site init"}
"""Commands that read a user's table."""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below one, by its path."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, one in command.commands.items():
        yield from commands(one, f"{path} {name}")


TOP: Any = typer.main.get_command(app)
ALL: dict[str, Command] = dict(commands(TOP, "idiolect"))


def context_of(line: str) -> Any:
    """Read a line without running it; raises for what cannot be read."""
    words = shlex.split(line)[1:]
    command, context = TOP, typer.Context(TOP, info_name="idiolect")
    while hasattr(command, "commands"):
        name = words.pop(0)
        command = command.commands[name]
        context = typer.Context(command, parent=context, info_name=name)
    return command.make_context(context.info_name, words, parent=context.parent)


@pytest.mark.parametrize("path", ALL)
def test_two_examples_that_can_be_read(path):
    found = ALL[path].examples
    assert len(found) == len({*found}) == 2, f"the help of '{path}' has no two examples"
    for line in found:
        assert f"{line} ".startswith(f"{path} ")
        assert len(line) <= LONGEST, line
        context_of(line)


@pytest.mark.parametrize("path", ALL)
def test_what_a_command_writes_is_said_and_o_names_it(path):
    command, options = ALL[path], {name for option in ALL[path].params for name in option.opts}
    assert re.fullmatch(r"\S.*\.", command.writes), f"the help of '{path}' does not end with 'Writes: ...'"
    assert ("-o" in options) == ("--out" in options)
    assert ("-o" in options) == (command.writes != "nothing." and path not in INTO_AN_ARGUMENT)


@pytest.mark.parametrize("path", ALL)
def test_names_of_values_have_one_style(path, commandline):
    for option in ALL[path].params:
        value = getattr(option, "is_flag", False)
        assert value or re.fullmatch(r"(-- )?[A-Z]+(=[A-Z]+)?( \.\.\.|\.\.\.)?", option.metavar or ""), option.name
    code, out, err = commandline(*path.split()[1:], "--help")
    assert (code, err) == (0, "")
    assert not re.search(r"[<>{}](?!=)", out)
    assert out.index("Options") < out.index("Examples:") < out.index("Writes: ")


@pytest.mark.parametrize("path", [path for path in ALL if path not in SILENT])
def test_a_result_can_be_had_as_json(path):
    assert any("--json" in option.opts for option in ALL[path].params), f"'{path}' has no --json"


def test_every_command_and_option_says_what_it_is():
    for path, command in ALL.items():
        assert command.help, path
        assert "idiolect " not in command.help.replace("'idiolect ", ""), f"{path}: an example outside of Examples"
        for option in command.params:
            assert getattr(option, "help", None), f"{path} {option.name}"


@pytest.mark.parametrize("path", sorted(TABLES))
def test_a_table_is_an_argument(path):
    named = {option.metavar for option in ALL[f"idiolect {path}"].params if option.param_type_name == "argument"}
    assert "TABLE" in named
    options = {name for option in ALL[f"idiolect {path}"].params for name in option.opts}
    assert "--data" in options or path == "predict"
