"""What a hub keeps of a run between rounds: the shared state with who was used when, and a line for each round."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.roster import Counts
from idiolect.deploy.lines import append_line, lines_of
from idiolect.deploy.messages import Message, Vectors, read_message, write_message

VERSION = 1
PARTICIPATION = "participation.jsonl"


@dataclass
class Standing:
    """Where a run stands. round: rounds done; used: site -> the round in which its answer was last used.

    counts: each site's samples; seconds: spent on rounds; vectors: the shared state, by its leaves' names.
    """

    round: int = 0
    used: dict[str, int] = field(default_factory=dict[str, int])
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    seconds: float = 0.0
    vectors: Vectors = field(default_factory=dict[str, Any])

    def save(self, path: Path, run: str) -> None:
        """Write it durably: only then may the next call be made."""
        header = {"version": VERSION, "run": run, "round": self.round, "used": self.used}
        write_message(path, Message({**header, "counts": self.counts, "seconds": self.seconds}, self.vectors))

    @classmethod
    def load(cls, path: Path, run: str) -> "Standing | None":
        """Read it; None if the run has not begun. Raises `StoreError` for a file of another run or version."""
        message = read_message(path)
        if message is None:
            return None
        header = message.header
        if header.get("version") != VERSION or header.get("run") != run:
            raise StoreError(f"{path} is of another run or version; delete it to start this run again")
        return cls(header["round"], dict(header["used"]), dict(header["counts"]), header["seconds"], message.vectors)


class Participation:
    """A file with a line of JSON for each round: who was asked, who answered, and why the others did not."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PARTICIPATION

    def write(self, line: dict[str, Any]) -> None:
        """Add a line."""
        try:
            append_line(self.path, line)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}") from error

    def lines(self) -> Iterator[dict[str, Any]]:
        """All lines; one that a crash has cut off is left out. Of a round that was repeated, the last line counts."""
        return lines_of(self.path)


def round_to_ms(seconds: float) -> float:
    """Milliseconds are enough."""
    return round(seconds, 3)
