"""Commands whose modules are imported when they are used: `idiolect --help` imports no JAX."""

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup

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
