"""The pages of the commands, from what `--help` says: one page per command, and one that lists them all."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from idiolect.cli.main import app

HEAD = """# Commands

Each command has a page with all its options. `idiolect COMMAND --help` prints the same.
"""
NAME = "idiolect"


def pages() -> dict[str, str]:
    """Return the page of each command and the list of commands, by path in the site."""
    found = {path(name): page(name, command) for name, command in every() if name != NAME}
    return {"commands.md": overview(), **found}


def navigation() -> list[Any]:
    """Return the entries of the site's navigation; a group of commands is one entry that holds its commands."""
    entries: list[Any] = [{"All commands": "commands.md"}]
    for name, command in children(NAME, typer.main.get_command(app)):
        inner = [path(one) for one, _ in children(name, command)]
        entries.append({title(name): [{f"All of {title(name)}": path(name)}, *inner]} if inner else path(name))
    return entries


def path(name: str) -> str:
    """Return the path in the site of a command's page: `idiolect hub run` is commands/hub-run.md."""
    return f"commands/{title(name).replace(' ', '-')}.md"


def title(name: str) -> str:
    """Return a command's name without that of the program."""
    return name.removeprefix(f"{NAME} ")


def every() -> Iterator[tuple[str, Any]]:
    """Yield each command (click's) with its full name, a group before the commands that it holds."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for inner, one in children(name, command):
            yield from walk(inner, one)

    yield from walk(NAME, typer.main.get_command(app))


def children(name: str, command: Any) -> list[tuple[str, Any]]:
    """Return the commands of a group with their full names; none for a command that is no group."""
    return [(f"{name} {inner}", one) for inner, one in sorted(getattr(command, "commands", {}).items())]


def overview() -> str:
    """Return the page that lists all commands, and the options of the program itself."""
    program = typer.main.get_command(app)
    rows = [row(name, command, "commands/") for name, command in every() if name != NAME]
    listed = ["| command | what it does |", "|---|---|", *rows]
    return "\n".join([HEAD, *listed, "", f"## {NAME}", "", *body(NAME, program)])


def row(name: str, command: Any, folder: str) -> str:
    """Return a line of a table: the command as a link, and the first sentence of its help."""
    target = folder + path(name).removeprefix("commands/")
    sentence = re.split(r"(?<=[.!?])\s", words_and_examples(command)[0])[0]
    return f"| [`{title(name)}`]({target}) | {_cell(sentence)} |"


def page(name: str, command: Any) -> str:
    """Return the page of one command."""
    lines = [f"# {title(name)}", "", *body(name, command)]
    if inner := children(name, command):
        lines += ["", "| command | what it does |", "|---|---|", *(row(*one, "") for one in inner)]
    return "\n".join([*lines, ""])


def words_and_examples(command: Any) -> tuple[str, list[str]]:
    """Return what a command does and writes as one line, and its examples."""
    writes = getattr(command, "writes", "")
    words = f"{command.help or ''}{f' Writes: {writes}' if writes else ''}"
    return " ".join(words.split()), list(getattr(command, "examples", []))


def body(name: str, command: Any) -> list[str]:
    """Return what a command does, how it is written, and a table of its options, as lines."""
    parameters = [p for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    usage = [name, *map(_metavar, arguments), *(["[OPTIONS]"] if options else [])]
    usage += ["COMMAND ..."] if getattr(command, "commands", None) else []
    words, examples = words_and_examples(command)
    lines = [_cell(words), "", "```text", " ".join(usage), "```", ""]
    lines += ["For example:", "", "```sh", *examples, "```", ""] if examples else []
    rows = [(_metavar(a), getattr(a, "help", "") or "", a.default) for a in arguments]
    rows += [(", ".join((*o.opts, *o.secondary_opts)), o.help or "", o.default) for o in options]
    if rows:
        lines += [
            '<div class="stacked options" markdown>',
            "",
            "| option | what it does | default |",
            "|---|---|---|",
        ]
        lines += [f"| `{names}` | {_cell(text)} | {_default(value)} |" for names, text, value in rows]
        lines += ["", "</div>"]
    return lines


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("--") else f"[{name}]"


def _default(value: Any) -> str:
    if value is None or value is False or value in ("", ()) or callable(value) or "Sentinel" in type(value).__name__:
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
