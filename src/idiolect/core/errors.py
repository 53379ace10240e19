"""Errors of one line each: what was wrong, where, and what to do."""

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pydantic_core import ValidationError


class IdiolectError(Exception):
    """Base of every error that idiolect raises on purpose; the command line prints only its message."""


class DataError(IdiolectError):
    """A data set, table, partition or file cannot be used as it is."""


class ConfigError(IdiolectError, ValueError):
    """A setting is out of range, unknown or contradicts another."""


class StoreError(IdiolectError):
    """A run cannot be written, found, or continued."""


class DivergedError(IdiolectError):
    """A run produced NaN or infinity; the message names round, client and stage."""

    def __init__(self, message: str, *, round: int, client: str | None, stage: str) -> None:
        super().__init__(message)
        self.round, self.client, self.stage = round, client, stage

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with all fields, so that a worker process can send the error back."""
        return _diverged, (str(self), self.round, self.client, self.stage)


def _diverged(message: str, round: int, client: str | None, stage: str) -> DivergedError:
    return DivergedError(message, round=round, client=client, stage=stage)


# What other libraries and papers call settings.
_ELSEWHERE = {
    "lr": ("rate",),
    "learning_rate": ("rate",),
    "eta": ("rate",),
    "steps": ("local_steps",),
    "num_epochs": ("epochs",),
    "local_epochs": ("epochs",),
    "mu": ("prox_weight",),
    "lam": ("prox_weight", "coupling"),
    "lambda": ("prox_weight", "coupling"),
    "num_rounds": ("rounds",),
}


def unknown(kind: str, name: Any, known: Iterable[str]) -> ConfigError:
    """Build the error for an unknown name, suggesting the nearest known one.

    name: usually a text; whatever else was given is shown as text.
    """
    options, name = sorted(known), str(name)
    meant = [option for option in _ELSEWHERE.get(name, ()) if option in options]
    near = meant or get_close_matches(name, options, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(options)}"
    return ConfigError(f"unknown {kind} '{name}'; {hint}")


_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "tuple": "a list",
    "list": "a list",
    "dictionary": "a table",
}
"""What pydantic calls a type, and what a user calls it."""


def in_words(message: str) -> str:
    """What pydantic says of a value, as a user reads it: "must be a whole number"."""
    if found := re.match(r"Input should be a valid (\w+)", message):
        return f"must be {_KINDS.get(found[1], f'a {found[1]}')}"
    message = re.sub(
        r"^\w+ should have at least (\d+) items? after validation.*", r"must have at least \1 entry", message
    )
    message = message.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
    return message.removeprefix("Value error, ").replace("Input should be", "must be")


def first_of(error: ValidationError) -> str:
    """The first thing that a pydantic model found wrong, in one line: where, what."""
    first = error.errors(include_url=False, include_input=False)[0]
    # A validator's own error has the message that pydantic begins with "Value error, ".
    message = str(first.get("ctx", {})["error"]) if first["type"] == "value_error" else first["msg"]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {message}"


def kind_of(value: Any) -> str:
    """Describe a value that was given by mistake: "None", "a list", "the text 'x'", "the class Ridge"."""
    if isinstance(value, str):
        return f"the text {shortened(value)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def shortened(value: Any) -> str:
    """Show a value as Python writes it, cut to 60 characters."""
    shown = repr(value)
    return shown if len(shown) < 60 else f"{shown[:56]}..."


def require(condition: bool, message: str) -> None:
    """Raise `ConfigError(message)` unless the condition holds."""
    if not condition:
        raise ConfigError(message)


def reason_of(error: Exception) -> str:
    """The system's words for what it refused ("No space left on device"), else the error's message."""
    return str(getattr(error, "strerror", None) or error)


@contextmanager
def os_errors_as(
    message: str, kind: type[IdiolectError] = StoreError, *, after: str = ""
) -> Generator[None, None, None]:
    """Raise `kind`, "message: the system's reason", where the block raises an `OSError`.

    message: what cannot be done, and to which path. after: what to do about it.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{message}: {reason_of(error)}{after}") from error
