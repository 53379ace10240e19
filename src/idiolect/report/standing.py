"""Where the runs of a folder stand, a line for each method: what the terminal, the live page and --json show."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from idiolect.report.hints import Hint, all_hints
from idiolect.report.view.as_json import plain
from idiolect.study.run.engine import FINISHED
from idiolect.study.run.following import Followed, Follower, Snapshot
from idiolect.study.store.store import DATABASE

BLOCKS = "▁▂▃▄▅▆▇█"
UP, FLAT, DOWN = "↑", "→", "↓"
BEFORE = 4
"""Evaluations with whose mean the last one is compared."""
STILL = 0.05
"""Share of the whole course's range below which a change is none."""


def sparkline(values: Sequence[float], width: int = 8) -> str:
    """The last `width` values as blocks, of the range of the whole course; a space for NaN and infinity."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, span = min(finite), max(finite) - min(finite)
    top = len(BLOCKS) - 1

    def block(value: float) -> str:
        if not math.isfinite(value):
            return " "
        return BLOCKS[round(top * (value - low) / span) if span > 0 else top // 2]

    return "".join(block(value) for value in values[-width:])


def arrow(values: Sequence[float]) -> str:
    """Where the values go: the last one against the mean of the few before it; "" for fewer than two."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    before = finite[-BEFORE - 1 : -1]
    change, span = finite[-1] - sum(before) / len(before), max(finite) - min(finite)
    if abs(change) <= STILL * span:
        return FLAT
    return UP if change > 0 else DOWN


LONGEST = 200
"""Points of a curve, at most; a longer one is thinned, its ends stay."""


@dataclass(frozen=True)
class Line:
    """One method of one cell, over its seeds. done, rounds: of all its runs; rate: rounds a second now, 0 if unknown.

    status: waiting, running, stopped, done or diverged. left: seconds, None if unknown. seed: whose scores these are:
    that of the run at work, else of the last one. scores: named model -> test scores (round, value), as they are read
    (accuracy in per cent); higher: whether higher is better. hints: kind -> sentence. message: why a run diverged.
    """

    cell: str
    method: str
    status: str
    done: int
    rounds: int
    runs: int
    ended: int
    rate: float
    left: float | None
    seconds: float
    seed: int
    metric: str
    higher: bool
    scores: dict[str, list[tuple[int, float]]]
    hints: dict[str, str] = field(default_factory=dict[str, str])
    message: str = ""

    @property
    def model(self) -> str:
        """The named model with the first score; "" before the first evaluation."""
        return next(iter(self.scores), "")

    @property
    def values(self) -> list[float]:
        """The scores of that model, in order."""
        return [value for _, value in self.scores.get(self.model, [])]


@dataclass(frozen=True)
class Standing:
    """All methods of a folder. done, total: rounds; speed: rounds a second; left, seconds: None if unknown."""

    name: str
    begun: bool
    alive: bool
    over: bool
    done: float
    total: float
    speed: float | None
    left: float | None
    seconds: float | None
    text: str
    lines: tuple[Line, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; NaN and infinity become null."""
        lines = [{**asdict(line), "model": line.model, "trend": arrow(line.values)} for line in self.lines]
        return plain({**asdict(self), "lines": lines})


def standing_of(snapshot: Snapshot) -> Standing:
    """Sum up a snapshot."""
    told, methods = all_hints(snapshot.runs), dict[tuple[str, str], list[Followed]]()
    for run in snapshot.runs:
        methods.setdefault((run.cell, run.method), []).append(run)
    pulse = snapshot.pulse if snapshot.alive else None
    own = sum(_rounds_of(run) for run in snapshot.runs), sum(run.rounds for run in snapshot.runs)
    return Standing(
        name=snapshot.name,
        begun=snapshot.begun,
        alive=snapshot.alive,
        over=snapshot.over,
        done=own[0] if pulse is None else pulse.done,
        total=own[1] if pulse is None else pulse.total,
        speed=None if pulse is None else pulse.speed,
        left=None if pulse is None else pulse.left,
        seconds=None if pulse is None else pulse.seconds,
        text="" if pulse is None else pulse.text,
        lines=tuple(_line(runs, told, snapshot.alive) for runs in methods.values()),
    )


def _line(runs: Sequence[Followed], told: dict[str, list[Hint]], alive: bool) -> Line:
    at_work = [run for run in runs if run.status == "running"]
    evaluated = [run for run in runs if run.courses.get("test")]
    shown = next((run for run in at_work if run in evaluated), (evaluated or at_work or list(runs))[-1])
    ended = [run for run in runs if run.status in FINISHED]
    done, rounds = sum(_rounds_of(run) for run in runs), sum(run.rounds for run in runs)
    rate = sum(run.rate for run in at_work) if alive else 0.0
    metric = shown.compared
    unit = 1 if metric is None else metric.unit
    kinds: dict[str, str] = {}
    for run in runs:
        for hint in told.get(run.id, []):
            which = f" (seed {run.seed})" if len(runs) > 1 else ""
            kinds.setdefault(hint.kind, hint.text + which)
    return Line(
        cell=shown.cell,
        method=shown.method,
        status=_status(runs, alive),
        done=done,
        rounds=rounds,
        runs=len(runs),
        ended=len(ended),
        rate=rate,
        left=(rounds - done) / rate if rate > 0 else None,
        seconds=sum(run.seconds for run in runs),
        seed=shown.seed,
        metric="" if metric is None else metric.column,
        higher=metric is None or metric.higher,
        scores={
            model: thinned([(point.round, unit * point.score) for point in course])
            for model, course in shown.courses.get("test", {}).items()
        },
        hints=kinds,
        message=next((run.message for run in runs if run.status == "diverged"), ""),
    )


def _status(runs: Sequence[Followed], alive: bool) -> str:
    """One word for all runs of a method."""
    if any(run.status == "running" for run in runs):
        return "running" if alive else "stopped"
    if any(run.status == "waiting" for run in runs):
        return "waiting" if alive or all(run.status == "waiting" for run in runs) else "stopped"
    return "diverged" if any(run.status == "diverged" for run in runs) else "done"


def _rounds_of(run: Followed) -> int:
    """The rounds that are behind a run; of one that diverged all of them: no more will come."""
    return run.rounds if run.status in FINISHED else min(run.round, run.rounds)


def thinned(course: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most `LONGEST` points of a course, evenly, the first and the last among them."""
    if len(course) <= LONGEST:
        return course
    step = (len(course) - 1) / (LONGEST - 1)
    return [course[round(place * step)] for place in range(LONGEST)]


GRACE = 20.0
"""Seconds that a run which has begun may be without a process at work before the watching ends."""


class Watching:
    """A folder of runs that is read again and again, by several threads. clock: in seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._follower, self._lock = Follower(folder), threading.Lock()
        self._seen, self._silent = False, clock() - _age(folder / DATABASE)
        self.standing = standing_of(self._follower.read())

    def look(self) -> Standing:
        """Look again. Raises `StoreError` if what is there cannot be read."""
        with self._lock:
            self.standing = standing_of(self._follower.read())
            if self.standing.alive or not self.standing.begun:
                self._silent = self.clock()
            self._seen = self._seen or self.standing.alive
            return self.standing

    def ended(self) -> bool:
        """Whether nothing more will happen: all runs have ended, or the process at work has."""
        if not self.standing.begun or self.standing.alive:
            return False
        return self.standing.over or self._seen or self.clock() - self._silent > GRACE


def _age(file: Path) -> float:
    """Seconds since a database was written to; 0 if there is none."""
    times = [path.stat().st_mtime for path in (file, file.with_name(f"{file.name}-wal")) if path.is_file()]
    return max(time.time() - max(times), 0.0) if times else 0.0
