"""An advice as one JSON file of its folder: written last, when all is finished, and read for pages."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from idiolect.core.errors import StoreError, first_of
from idiolect.core.files import json_of, write_text
from idiolect.study.advice.advise import Advice
from idiolect.study.advice.pieces import RACE, command_of
from idiolect.study.advice.policies import KIND

FILE = "advice.json"
VERSION = 2  # of the file


def store_advice(advice: Advice, folder: Path) -> None:
    """Write an advice into its folder, which must be there. Numbers that are not finite are texts ("nan")."""
    plain = TypeAdapter(Advice).dump_python(advice, mode="json")
    write_text(
        folder / FILE,
        json.dumps({"version": VERSION, "advice": _said(plain)}, indent=1, allow_nan=False),
        shared=True,
    )


def stored_advice(folder: Path) -> Advice:
    """Read the advice of a folder. Raises `StoreError` if it is not finished, damaged, or of another version."""
    path = folder / FILE
    if not path.is_file():
        raise StoreError(how_it_goes_on(folder))
    try:
        stored = json_of(path.read_bytes())
        version = stored["version"]
        if version == VERSION:
            advice = TypeAdapter(Advice).validate_python(stored["advice"])
            _check(advice)
            return advice
    except ValidationError as error:
        raise _damaged(path, first_of(error)) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    raise StoreError(
        f"'{path}' has format {version!r:.20}, this version of idiolect reads {VERSION}; use the one that wrote it"
    )


def is_advice(folder: Path) -> bool:
    """Whether a folder holds an advice, finished or not."""
    try:
        return (folder / FILE).is_file() or (folder / RACE).is_dir()
    except (OSError, ValueError):
        return False


def how_it_goes_on(folder: Path) -> str:
    """The line that says how to continue an advice, or that it is finished."""
    if (folder / FILE).is_file():
        return f"the advice in '{folder}' is finished; see: idiolect show {shlex.quote(str(folder))}"
    command = command_of(folder)
    return f"the advice in '{folder}' is not finished; " + (
        f"continue with: {command}" if command else "ask again with the same settings, and it continues"
    )


def _damaged(path: Path, reason: str) -> StoreError:
    again = command_of(path.parent) or "idiolect advise, with the settings it had"
    return StoreError(f"'{path}' is damaged ({' '.join(reason.split())[:200]}); write it anew with: {again}")


def _check(advice: Advice) -> None:
    """Raise `ValueError` for an advice whose parts do not fit together."""
    about, names = advice.about, advice.about.clients
    columns = (about.train, about.validation, about.test, advice.decision.clients, advice.kept)
    tables = [table for table in (about.counts, about.quantiles) if table]
    line = next((line for line in advice.lines if line.name == advice.decision.method), None)
    kept = {name for each in advice.kept.values() for name in each}
    fits = (
        all(len(column) == len(names) for column in (*columns, *tables))
        and [one.name for one in advice.decision.clients] == list(names)
        and {*advice.kept} == {*names}
        and all({*kept} == {*next(iter(advice.kept.values()))} for kept in advice.kept.values())
        and all(len(row) == len(about.classes) for row in about.counts)
        and line is not None
        and (line.kind == KIND or (line.rounds is not None and line.sent is not None))
        and kept <= {line.name for line in advice.lines}
        and any(line.name == advice.decision.alone for line in advice.lines)
        and {"time", "packages"} <= {*advice.made}
    )
    if not fits:
        raise ValueError("its parts do not fit together")


def _said(value: Any) -> Any:
    """The value with texts for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _said(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_said(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
