"""The log of all that leaves a site: a line of JSON for each message, written before it is sent."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError
from idiolect.deploy.lines import append_line, lines_of
from idiolect.deploy.messages import Message, digest_of


class Outbox:
    """An append-only file. A line says when, to whom, for what, which vectors of which shape, and their hash."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, to: str, task: str, message: Message, **about: Any) -> None:
        """Add a line, durably. Raises `StoreError` if it cannot be written: then nothing may be sent."""
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "to": to,
            "task": task,
            **about,
            "header": dict(message.header),
            "vectors": {name: [v.dtype.name, list(v.shape)] for name, v in sorted(message.vectors.items())},
            "bytes": message.size,
            "sha256": digest_of(message.vectors) if message.vectors else "",
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            append_line(self.path, line)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}, so nothing is sent: {error.strerror or error}") from error

    def lines(self) -> Iterator[dict[str, Any]]:
        """All lines, in their order; a last line that was cut off by a crash is left out."""
        return lines_of(self.path)
