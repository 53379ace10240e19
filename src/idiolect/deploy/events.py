"""The log of a hub or a site: a line of JSON for each event, with the time in UTC, in a file that rotates.

Several processes write one file: the command that supervises, and the engine's workers. Each line is complete, and
`Tail` reads the lines of all of them.
"""

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal, cast

from filelock import FileLock

from idiolect.core.files import json_of
from idiolect.core.rights import private

FILE = "events.jsonl"
BYTES, KEPT = 5_000_000, 5
"""Bytes of a log file, and the number of full files that are kept beyond it: 30 MB at most."""

Level = Literal["info", "warning", "error"]
_LEVELS: dict[Level, int] = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def now() -> str:
    """The time as text: ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class EventLog:
    """The events of one hub or site.

    Args:
        folder: where `events.jsonl` is.
        who: who writes, such as "hub" or "site north".
    """

    def __init__(self, folder: Path, who: str) -> None:
        self.folder, self.who = folder, who
        self._file = _Shared(folder / FILE, who)
        self._logger = logging.Logger("idiolect.events", logging.INFO)  # of its own: sites may share a process
        self._logger.addHandler(self._file)

    def write(self, event: str, text: str, level: Level = "info", **fields: Any) -> None:
        """Add an event. Never raises: a log that cannot be written must not end a run.

        Args:
            event: its kind, from a short list; see `docs/operating-a-hub.md`.
            text: one plain sentence.
            level: "info", "warning" or "error".
            fields: more JSON values.
        """
        self._logger.log(_LEVELS[level], "%s", text, extra={"event": event, "fields": fields})

    def listen(self, handle: Callable[[dict[str, Any]], None]) -> None:
        """Pass every event of this process to a function, also if the file cannot be written."""
        self._logger.addHandler(_Listener(handle, self.who))

    def gather(self, name: str = "idiolect") -> None:
        """Write the warnings of a Python logger and of those below it into this log, too."""
        logging.getLogger(name).addHandler(self._file)

    def close(self) -> None:
        """Close the file."""
        for name in list(logging.root.manager.loggerDict):
            logging.getLogger(name).removeHandler(self._file)
        self._file.close()


class _Listener(logging.Handler):
    def __init__(self, handle: Callable[[dict[str, Any]], None], who: str) -> None:
        super().__init__()
        self._handle, self._who = handle, who

    def emit(self, record: logging.LogRecord) -> None:
        self._handle(_line(record, self._who))


def _line(record: logging.LogRecord, who: str) -> dict[str, Any]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    level = record.levelname.lower()
    head = {"time": time, "level": level, "event": getattr(record, "event", "log"), "who": who}
    return {**head, "text": record.getMessage(), "process": record.process, **getattr(record, "fields", {})}


class _Shared(RotatingFileHandler):
    """A rotating file that several processes write: whoever writes holds a lock, and opens the newest file."""

    def __init__(self, path: Path, who: str) -> None:
        super().__init__(path, maxBytes=BYTES, backupCount=KEPT, encoding="utf-8", delay=True)
        self._who, self._path = who, path
        # Not the file itself: it is renamed.
        self._between = FileLock(path.with_name(f".{path.name}.lock"), timeout=2, mode=0o600)

    def _open(self) -> TextIOWrapper:
        return open(self._path, "a", encoding="utf-8", opener=private)

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_line(record, self._who), default=str)

    def emit(self, record: logging.LogRecord) -> None:
        if not self._path.parent.is_dir():  # the lock would make it
            return
        try:
            with self._between:
                if self.stream is not None and _moved(self.stream, self._path):
                    self.stream.close()
                    self.stream = self._open()
                super().emit(record)
        except Exception:  # no folder, no space, no lock: the event is lost, and the run continues
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the event; Python would print a traceback."""
        with suppress(Exception):
            if self.stream is not None:
                self.stream.close()
        self.stream = cast("Any", None)


def _moved(stream: TextIOWrapper, path: Path) -> bool:
    try:
        there, own = path.stat(), os.fstat(stream.fileno())
    except OSError:
        return True
    return (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino)


class Tail:
    """Read the lines that a file of JSON lines has got since the last call; a file that rotated is read to its end.

    Args:
        path: the file; it may not exist yet.
        end: begin at the file's present end instead of at its beginning.
    """

    def __init__(self, path: Path, end: bool = False) -> None:
        self._path, self._lock = path, threading.Lock()
        self._inode, self._offset = 0, 0
        if end:
            with suppress(OSError):
                found = path.stat()
                self._inode, self._offset = found.st_ino, found.st_size

    def __call__(self) -> list[dict[str, Any]]:
        """The new lines that are complete. A line that is no JSON object is left out; a missing file has none."""
        with self._lock:
            try:
                found = self._path.stat()
            except OSError:
                return []
            lines: list[dict[str, Any]] = []
            if self._inode and found.st_ino != self._inode:
                lines, rest = self._rest_of_the_old(), 0
                self._offset = rest
            elif found.st_size < self._offset:  # cut off by somebody
                self._offset = 0
            self._inode = found.st_ino
            return lines + self._read(self._path)

    def _rest_of_the_old(self) -> list[dict[str, Any]]:
        old = self._path.with_name(f"{self._path.name}.1")
        with suppress(OSError):
            if old.stat().st_ino == self._inode:
                return self._read(old)
        return []

    def _read(self, path: Path) -> list[dict[str, Any]]:
        try:
            with path.open("rb") as file:
                file.seek(self._offset)
                whole, found, _ = file.read().rpartition(b"\n")
        except OSError:
            return []
        self._offset += len(whole) + len(found)
        return [line for text in whole.split(b"\n") if (line := _object(text)) is not None]


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json_of(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def plain(line: Mapping[str, Any]) -> str:
    """An event as one line for a terminal: time in UTC, and text."""
    return f"{str(line.get('time', ''))[11:19]} UTC  {line.get('text', '')}"
