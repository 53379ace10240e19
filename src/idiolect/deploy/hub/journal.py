"""What a hub keeps of a run between rounds: the shared state with who was used when, and a line for each round."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idiolect.core.errors import DataError, StoreError
from idiolect.core.files import atomic_write
from idiolect.deploy.headers import Met
from idiolect.deploy.hub.calls import Counts
from idiolect.deploy.messages import Message, Vectors, append_line, lines_of, read_message, write_message

VERSION = 1
PARTICIPATION = "participation.jsonl"


@dataclass
class HubState:
    """Where a run stands. round: rounds done; used: site -> the round in which its answer was last used.

    counts: each site's samples; rows: the salted digests of their training rows; seconds: spent on rounds; vectors:
    the shared state, by its leaves' names.
    """

    round: int = 0
    used: dict[str, int] = field(default_factory=dict[str, int])
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    seconds: float = 0.0
    vectors: Vectors = field(default_factory=dict[str, Any])
    rows: dict[str, str] = field(default_factory=dict[str, str])

    def save(self, path: Path, run: str) -> None:
        """Write it durably: only then may the next call be made."""
        header = {"version": VERSION, "run": run, "round": self.round, "used": self.used}
        header |= {"counts": self.counts, "seconds": self.seconds, "rows": self.rows}
        write_message(path, Message(header, self.vectors))

    @classmethod
    def load(cls, path: Path, run: str) -> "HubState | None":
        """Read it; None if the run has not begun. Raises `StoreError` for a file of another run or version."""
        message = read_message(path)
        if message is None:
            return None
        header = message.header
        if header.get("version") != VERSION or header.get("run") != run:
            raise StoreError(f"{path} is of another run or version; delete it to start this run again")
        used, counts, rows = (dict(header.get(name, {})) for name in ("used", "counts", "rows"))
        return cls(header["round"], used, counts, header["seconds"], message.vectors, rows)


def keep_before(path: Path, round: int) -> None:
    """Keep a copy of the checkpoint at `path`, as it is before sites join: see `hub.forget`."""
    copy = before(path, round)
    if not copy.is_file():
        with atomic_write(copy) as file:
            file.write(path.read_bytes())


def before(path: Path, round: int | None = None) -> Path:
    """The copy of a checkpoint after so many rounds, before sites joined; None: the pattern of all copies' names."""
    return path.with_suffix(f".before-{'*' if round is None else round}.hub")


@dataclass(frozen=True)
class Traffic:
    """Bytes of vectors that a run's rounds have moved. asked, replies: calls to sites and their answers, counted."""

    down: int = 0
    up: int = 0
    asked: int = 0
    replies: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.down + other.down, self.up + other.up, self.asked + other.asked, self.replies + other.replies
        )

    @property
    def of_a_client(self) -> tuple[int, int] | None:
        """(down, up): bytes of one client in one round, on average; None before the first answer."""
        return (round(self.down / self.asked), round(self.up / self.replies)) if self.replies and self.asked else None


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

    def traffic(self) -> dict[str, Traffic]:
        """Run -> what its rounds have moved; a round that was repeated counts once."""
        last = {(line["run"], line["round"]): line for line in self.lines() if "asked" in line}
        found: dict[str, Traffic] = {}
        for (run, _), line in last.items():
            moved = Traffic(line["bytes_down"], line["bytes_up"], line["asked"], line["replies"])
            found[run] = found.get(run, Traffic()) + moved
        return found


def met_of(reply: Message) -> Met:
    """What a site says of its exchange with neighbours; what cannot be read counts as none."""
    try:
        return Met.of(reply, "its exchange")
    except DataError:
        return Met()


def exchanged(met: Iterable[Met]) -> tuple[int, int]:
    """(down, up): bytes that sites say they have exchanged with neighbours."""
    pairs = [one.exchanged for one in met]
    return sum(down for down, _ in pairs), sum(up for _, up in pairs)


def round_to_ms(seconds: float) -> float:
    """Milliseconds are enough."""
    return round(seconds, 3)
