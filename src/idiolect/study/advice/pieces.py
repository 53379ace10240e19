"""The finished pieces of an advice, kept in its folder: one for each method's race, two for the bars.

An advice that was stopped continues from them, to the same bits. Each is written whole or not at all, when it is
finished; so `kill -9` is safe at any instant. A piece that cannot be read is computed again.
"""

import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter

from idiolect.core.errors import ConfigError, DataError, StoreError, os_errors_as
from idiolect.core.files import (
    alone,
    atomic_write,
    clear_scratch,
    json_of,
    no_empty_folders,
    write_text,
)
from idiolect.core.rights import make_folder
from idiolect.study.advice.race import Choice, Raced
from idiolect.study.advice.scored import Candidate
from idiolect.study.store.store import DATABASE, changes

RACE = "race"
"""The folder of the pieces, inside the advice's."""
_QUESTION = "question.json"
_VERSION = 2  # of the pieces
_PARTS = ("validation", "test")
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, TokenError, RecursionError)

Piece = TypeVar("Piece")
Arrays = Mapping[str, np.ndarray]


class Pieces:
    """What is finished of one advice. folder: where it is kept; None: nowhere."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def raced(self, name: str, compute: Callable[[], Raced]) -> Raced:
        """A method's race: what is kept, else what `compute` gives, which is then kept."""
        return self._piece(name, compute, _of_raced, _to_raced)

    def bars(self, name: str, compute: Callable[[], list[Candidate]]) -> list[Candidate]:
        """The bars of this name, alike."""
        return self._piece(name, compute, _of_candidates, _to_candidates)

    def _piece(
        self,
        name: str,
        compute: Callable[[], Piece],
        write: Callable[[Piece], tuple[Any, Arrays]],
        read: Callable[[Any, Arrays], Piece],
    ) -> Piece:
        if self._folder is None:
            return compute()
        path = self._folder / f"{name}.npz"
        with suppress(*_UNREADABLE), np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
            return read(json.loads(str(arrays.pop("plain"))), arrays)
        made = compute()
        plain, arrays = write(made)
        with atomic_write(path) as file:
            np.savez(file, allow_pickle=False, plain=np.array(json.dumps(plain)), **arrays)
        return made


@contextmanager
def pieces_in(out: Path | None, question: Mapping[str, Any], command: str) -> Generator[Pieces]:
    """The pieces of the advice in a folder, locked against other processes while the block runs. None: keep nothing.

    question: all that the pieces follow from, JSON values. command: what continues it. A new folder is removed again
    if the block ends before a piece is finished, or in an error after which no piece is of use.
    Raises `StoreError` if the folder holds runs, or the pieces of another question.
    """
    if out is None:
        yield Pieces(None)
        return
    if (out / DATABASE).is_file():
        raise StoreError(f"'{out}' holds runs; use another --out")
    folder, useless = out / RACE, False
    with no_empty_folders(out):
        with os_errors_as(f"cannot write to '{out}'"):
            make_folder(out, shared=True)
            make_folder(folder)
        busy = f"another idiolect process works in '{out}'; wait for it, or use another --out"
        try:
            with alone(folder / ".lock", busy):
                clear_scratch(folder)
                _claim(out, question, command)
                try:
                    yield Pieces(folder)
                except BaseException as error:
                    useless = isinstance(error, ConfigError | DataError) or not has_pieces(out)
                    raise
        finally:
            if useless:
                shutil.rmtree(folder, ignore_errors=True)


def _claim(out: Path, question: Mapping[str, Any], command: str) -> None:
    """Write the question into a folder without pieces. Raises `StoreError` if there are pieces of another one."""
    asked: dict[str, Any] = json.loads(json.dumps({"version": _VERSION, **question}))
    if has_pieces(out):
        changed = changes(_question(out).get("asked", {}), asked)
        if changed:
            keys = ", ".join(dict.fromkeys(key.partition(".")[0] for key in changed))
            raise StoreError(
                f"'{out}' holds an advice with another question (changed: {keys}); use another --out, or set it back"
            )
    write_text(out / RACE / _QUESTION, json.dumps({"command": command, "asked": asked}, indent=2))


def has_pieces(out: Path) -> bool:
    """Whether a folder holds a finished piece of an advice."""
    return any((out / RACE).glob("*.npz"))


def command_of(out: Path) -> str:
    """The command that continues the advice in a folder; "" if it is not known."""
    command = _question(out).get("command")
    return command if isinstance(command, str) else ""


def _question(out: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        stored = json_of((out / RACE / _QUESTION).read_bytes())
        if isinstance(stored, dict) and isinstance(stored.get("asked"), dict):
            return stored
    return {}


def _of_raced(raced: Raced) -> tuple[Any, Arrays]:
    arrays = {f"{part} {draw}": each[part] for draw, each in enumerate(raced.outputs) for part in _PARTS}
    return asdict(raced.choice), arrays


def _to_raced(plain: Any, arrays: Arrays) -> Raced:
    choice = TypeAdapter(Choice).validate_python(plain)
    outputs = ({part: arrays[f"{part} {draw}"] for part in _PARTS} for draw in range(len(choice.rounds)))
    return Raced(choice, tuple(outputs))


def _of_candidates(made: Sequence[Candidate]) -> tuple[Any, Arrays]:
    arrays = {
        f"{place} {part} {draw}": each
        for place, one in enumerate(made)
        for part, rows in (("validation", one.validation), ("test", one.test), ("right", one.right or ()))
        for draw, each in enumerate(rows)
    }
    return [[one.name, one.kind, len(one.test), one.right is not None] for one in made], arrays


def _to_candidates(plain: Any, arrays: Arrays) -> list[Candidate]:
    def one(place: int, name: str, kind: str, draws: int, hits: bool) -> Candidate:
        validation, test, right = (
            tuple(arrays[f"{place} {part} {draw}"] for draw in range(draws if part != "right" or hits else 0))
            for part in ("validation", "test", "right")
        )
        return Candidate(name, kind, validation, test, right if hits else None)

    return [one(place, *each) for place, each in enumerate(plain)]
