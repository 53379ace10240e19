"""The page of all commands, from what `--help` says."""

from collections.abc import Iterator
from typing import Any

import typer

from idiolect.cli.main import app

HEAD = """# Commands

Every command and option, as `idiolect COMMAND --help` prints them.
"""


def page() -> str:
    """Markdown of every command with its arguments and options."""
    return "\n".join([HEAD, *(section(name, command) for name, command in every())])


def every() -> Iterator[tuple[str, Any]]:
    """Each command (click's) with its full name, a group's before those that it holds."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for inner, one in sorted(getattr(command, "commands", {}).items()):
            yield from walk(f"{name} {inner}", one)

    yield from walk("idiolect", typer.main.get_command(app))


def section(name: str, command: Any) -> str:
    """A command: what it does, how it is written, a table of its options."""
    parameters = [p for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    usage = [name, *map(_metavar, arguments), *(["[OPTIONS]"] if options else [])]
    usage += ["COMMAND ..."] if getattr(command, "commands", None) else []
    examples, writes = getattr(command, "examples", []), getattr(command, "writes", "")
    words = f"{command.help or ''}{f' Writes: {writes}' if writes else ''}"
    lines = [f"## {name}", "", _cell(words), "", "```text", " ".join(usage), "```", ""]
    lines += ["For example:", "", "```sh", *examples, "```", ""] if examples else []
    rows = [(_metavar(a), getattr(a, "help", "") or "", a.default) for a in arguments]
    rows += [(", ".join((*o.opts, *o.secondary_opts)), o.help or "", o.default) for o in options]
    if rows:
        lines += ["| | | default |", "|---|---|---|"]
        lines += [f"| `{names}` | {_cell(text)} | {_default(value)} |" for names, text, value in rows]
    return "\n".join([*lines, ""])


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("--") else f"[{name}]"


def _default(value: Any) -> str:
    if value is None or value is False or value in ("", ()) or callable(value) or "Sentinel" in type(value).__name__:
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
