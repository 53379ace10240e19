"""The log of all that leaves a site: a line of JSON for each message, written before it is sent.

The file also has the terms by which the hub asked, each once in full; a message's line has their hash.
"""

import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from idiolect.core.errors import StoreError, reason_of
from idiolect.core.rights import make_folder
from idiolect.deploy.messages import Message, append_line, digest_of, digest_of_values, lines_of

WAIT = 30.0
"""Seconds to wait for another process of this site: two studies at once have a process each."""


class Outbox:
    """An append-only file. A line says when, to whom, for what, which vectors of which shape, and their hash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._recorded: set[str] | None = None

    def write(self, to: str, task: str, message: Message, **about: Any) -> None:
        """Add a line, durably. Raises `StoreError` if it cannot be written: then nothing may be sent."""
        self._append(
            {
                "time": _now(),
                "to": to,
                "task": task,
                **about,
                "header": dict(message.header),
                "vectors": {name: [v.dtype.name, list(v.shape)] for name, v in sorted(message.vectors.items())},
                "bytes": message.size,
                "sha256": digest_of(message.vectors) if message.vectors else "",
            }
        )

    def record(self, terms: Mapping[str, Any]) -> str:
        """Add the terms of a run in full, unless the file has them, and return their hash.

        What the data are is a record of its own: it is large, and all runs of a study have it in common. Raises
        `StoreError` as `write` does.
        """
        kind = self._record("kind", terms.get("kind"))
        return self._record("terms", {**terms, "kind": kind})

    def lines(self) -> Iterator[dict[str, Any]]:
        """All messages, in their order; a last line that was cut off by a crash is left out."""
        return (line for line in lines_of(self.path) if "task" in line)

    def terms(self) -> dict[str, dict[str, Any]]:
        """Hash -> {time, terms}, in the order in which a hub first asked; the terms have their kind in full."""
        records = {line["sha256"]: line for line in lines_of(self.path) if "record" in line}
        kinds = {key: line["content"] for key, line in records.items() if line["record"] == "kind"}
        return {
            key: {"time": line["time"], "terms": {**line["content"], "kind": kinds.get(line["content"]["kind"])}}
            for key, line in records.items()
            if line["record"] == "terms"
        }

    def _record(self, name: str, content: Any) -> str:
        digest = digest_of_values(content)
        with self._lock:
            if self._recorded is None or not self.path.exists():  # an administrator may move the file away
                self._recorded = {line["sha256"] for line in lines_of(self.path) if "record" in line}
            if digest not in self._recorded:
                self._append({"time": _now(), "record": name, "sha256": digest, "content": content})
                self._recorded.add(digest)
        return digest

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            make_folder(self.path.parent)
            with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=WAIT, mode=0o600):
                append_line(self.path, line)
        except Timeout:
            raise StoreError(f"another process writes {self.path}, so nothing is sent: try again") from None
        except OSError as error:
            raise StoreError(f"cannot write {self.path}, so nothing is sent: {reason_of(error)}") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
