"""Commands are imported when they are used, and are the same as if they had been from the start."""

import subprocess
import sys
from importlib import import_module
from inspect import cleandoc
from typing import Any

import pytest
import typer

from idiolect.cli.lazy import Place, lazy_group, made
from idiolect.cli.main import COMMANDS, app

CODE = """
import sys
from idiolect.cli.main import main
sys.argv = ["idiolect", *sys.argv[1:]]
try:
    main()
finally:
    print(*(name for name in ("jax", "pandas", "matplotlib", "sqlite3") if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_the_list_of_commands_imports_nothing_heavy(word):
    done = subprocess.run([sys.executable, "-c", CODE, word], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    if word == "--help":
        assert all(name in done.stdout for name in (*COMMANDS, "launch"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_the_first_sentence_of_its_own_help(name):
    place = COMMANDS[name]
    found = getattr(import_module(place.module), place.object)
    text = found.info.help if isinstance(found, typer.Typer) else cleandoc(found.__doc__)
    assert place.help == " ".join(text.split("\n\n")[0].split())


def test_a_command_is_made_once_with_its_own_options_and_an_unknown_one_is_none():
    group: Any = typer.main.get_command(app)
    assert group.get_command(None, "compare") is group.commands["compare"]
    assert {"--data", "--methods"} <= {option for p in group.commands["compare"].params for option in p.opts}
    assert "run" in group.commands["hub"].commands
    assert group.get_command(None, "nothing") is None
    assert group.commands.get("nothing", 3) == 3
    assert [command.name for command in group.commands.values()] == [name for name, _ in group.commands.items()]
    assert group.list_commands(None) == [*COMMANDS, "launch"]


def test_a_place_is_a_function_or_a_group():
    function = made("show", Place("idiolect.cli.show", "show", ""))
    group = made("site", Place("idiolect.cli.site", "app", ""))
    assert (function.name, group.name) == ("show", "site")
    assert [p.name for p in group.params if "completion" in str(p.name)] == []
    assert hasattr(group, "commands")
    assert not hasattr(function, "commands")
    assert issubclass(lazy_group({}), typer.core.TyperGroup)
