"""A command as idiolect has it: its help ends with examples and what it writes; JAX starts when it is run."""

import re
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from idiolect.core.cores import cores
from idiolect.core.errors import ConfigError
from idiolect.core.forking import serve_forks
from idiolect.core.loading import loading

EXAMPLES, WRITES = "\n\nExamples:\n", "\n\nWrites: "


class Command(TyperCommand):
    """A command whose docstring ends with a block `Examples:`, one command per line, and a sentence `Writes: ...`.

    help: the text before the examples.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        text, _, writes = (self.help or "").partition(WRITES)
        self.help, _, examples = text.partition(EXAMPLES)
        self.examples = [line.strip() for line in examples.splitlines() if line.strip()]
        self.writes = " ".join(writes.split())

    def get_params(self, ctx: Any) -> list[Any]:
        """The arguments and options, shown without Python's types."""
        return without_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the line of usage: NAME must be given, [NAME] may be given."""
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, then the examples, each on a line of its own that can be copied, and what is written."""
        super().format_help(ctx, formatter)
        if self.examples:
            typer.echo(textwrap.indent("\n".join(["Examples:", *(f"  {line}" for line in self.examples)]), " "))
        if self.writes:
            typer.echo(textwrap.indent(textwrap.fill(f"Writes: {self.writes}", 78), " "))
        typer.echo()

    def invoke(self, ctx: Any) -> Any:
        """Run the command on all cores of this machine, or as one of several processes."""
        if _starts_workers(ctx.params):
            serve_forks("idiolect.cli.preload")
        with loading():
            from idiolect.runtime.devices import use_cores  # here: it imports JAX, and --help must not wait for it
            from idiolect.runtime.distributed import join
        if not join(bool(ctx.find_root().params.get("distributed"))):
            with suppress(ConfigError):  # a program that has computed with JAX keeps its devices
                use_cores()
        return super().invoke(ctx)


def _starts_workers(given: Mapping[str, Any]) -> bool:
    """Whether a command may run in several processes on this machine."""
    return "jobs" in given and given["jobs"] != 1 and not given.get("debug") and len(cores()) > 1


class Group(TyperGroup):
    """A group of commands in the order in which they were registered."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options, shown without Python's types."""
        return without_types(super().get_params(ctx))


def without_types(params: list[Any]) -> list[Any]:
    """The same parameters. A flag has no value to be named, and the name of an argument says what it is."""
    for one in params:
        if getattr(one, "is_flag", False):
            one.metavar = ""
        elif one.param_type_name == "argument":
            one.display_type_rich = lambda *_, **__: ""
    return params
