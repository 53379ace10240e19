"""What a hub keeps of a run between rounds: the shared state with who was used when, and a line for each round."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idiolect.core.errors import DataError, StoreError, os_errors_as
from idiolect.core.files import atomic_write
from idiolect.deploy.events import EventLog
from idiolect.deploy.headers import Met
from idiolect.deploy.hub.calls import Counts
from idiolect.deploy.messages import Message, Vectors, append_line, lines_of, read_message, write_message

VERSION = 1
PARTICIPATION = "participation.jsonl"
FORGOTTEN = "forgotten.jsonl"
"""Who took part in rounds that were taken back, see `forget`."""


@dataclass
class HubState:
    """Where a run stands. round: rounds done; used: site -> the round in which its answer was last used.

    counts: each site's samples; rows: the salted digests of their training rows; seconds: spent on rounds; vectors:
    the shared state, by its leaves' names. guard: what is known of the past, see `guard.Past`; losses: site -> model
    -> its first loss; good: round of a good checkpoint -> its `used`; out: sites that a rollback has left out, and
    why; rollbacks: so many; returned: to which round the last one has returned.
    """

    round: int = 0
    used: dict[str, int] = field(default_factory=dict[str, int])
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    seconds: float = 0.0
    vectors: Vectors = field(default_factory=dict[str, Any])
    rows: dict[str, str] = field(default_factory=dict[str, str])
    guard: dict[str, Any] = field(default_factory=dict[str, Any])
    losses: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    good: dict[int, dict[str, int]] = field(default_factory=dict[int, dict[str, int]])
    out: dict[str, str] = field(default_factory=dict[str, str])
    rollbacks: int = 0
    returned: int = -1

    def save(self, path: Path, run: str) -> None:
        """Write it durably: only then may the next call be made."""
        header: dict[str, Any] = {"version": VERSION, "run": run, "round": self.round, "used": self.used}
        header |= {"guard": self.guard, "losses": self.losses, "out": self.out, "rollbacks": self.rollbacks}
        header |= {"good": list(self.good.items()), "returned": self.returned}
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
        state = cls(header["round"], used, counts, header["seconds"], message.vectors, rows)
        state.guard, state.losses = dict(header.get("guard", {})), dict(header.get("losses", {}))
        state.good = {int(round): dict(used) for round, used in header.get("good", [])}
        state.out, state.rollbacks = dict(header.get("out", {})), int(header.get("rollbacks", 0))
        state.returned = int(header.get("returned", -1))
        return state


def keep_before(path: Path, round: int) -> None:
    """Keep a copy of the checkpoint at `path`, as it is before sites join: see `hub.forget`."""
    copy = before(path, round)
    if not copy.is_file():
        with atomic_write(copy) as file:
            file.write(path.read_bytes())


def drop_before(path: Path, round: int) -> None:
    """Remove the copies of checkpoints after more rounds than these: a rollback takes their rounds back."""
    for copy in path.parent.glob(before(path).name):
        number = copy.stem.rpartition("before-")[2]
        if number.isdigit() and int(number) > round:
            copy.unlink(missing_ok=True)


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
    """A file with a line of JSON for each round: who was asked, who answered, and why the others did not.

    events: gets an event for each round, and one for each message that was refused.
    """

    def __init__(self, folder: Path, events: EventLog | None = None) -> None:
        self.path, self.events = folder / PARTICIPATION, events

    def write(self, line: dict[str, Any]) -> None:
        """Add a line. Raises `StoreError` if it cannot be written."""
        with os_errors_as(f"cannot write {self.path}"):
            append_line(self.path, line)
        if self.events is not None and "answered" in line:
            _report(self.events, line)
        elif self.events is not None and "rollback" in line:
            text = f"{line['run']}: rolled back from round {line['round'] + 1} to round {line['rollback']}"
            about = {"run": line["run"], "without": line.get("without", [])}
            self.events.write("rolled back", f"{text} without {', '.join(about['without'])}", "warning", **about)

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


def _report(events: EventLog, line: Mapping[str, Any]) -> None:
    """Write the events of a round."""
    about = {"run": line["run"], "round": line["round"] + 1, "job": line.get("job")}
    for site, why in line.get("refused", {}).items():
        text = f"{line['run']}, round {line['round'] + 1}: the message of '{site}' was refused: {why}"
        events.write("refused", text, "warning", site=site, reason=why, **about)
    absent = "".join(f"; missing: {site} ({why})" for site, why in line["missing"].items())
    answers = f"{len(line['answered'])} of {len(line['cohort'])} sites answered in {line['seconds']:g} s"
    events.write(
        "round",
        f"{line['run']}, round {line['round'] + 1}: {answers}{absent}",
        "warning" if absent else "info",
        answered=line["answered"],
        missing=line["missing"],
        seconds=line["seconds"],
        **about,
    )


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
