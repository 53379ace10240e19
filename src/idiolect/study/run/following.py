"""What a folder of runs says while they are at work: read again and again, never written."""

import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import StoreError
from idiolect.core.files import json_of, write_text
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS
from idiolect.study.run.engine import FINISHED
from idiolect.study.spec.experiment import Experiment, run_id
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import DATABASE, RunRow, Store

FILE = "progress.json"
FRESH = 15.0
"""Seconds after which a pulse that was not renewed is of a process that is gone."""


@dataclass(frozen=True)
class Pulse:
    """How far the runs are. time: when it was written, in seconds since 1970; seconds: since the process began.

    done, total: rounds of all runs, or the share of a sweep and 1; speed: of them a second, None if not known yet.
    runs: run id -> (rounds done, rounds a second) of those at work. text: what is at work, in words.
    """

    time: float
    seconds: float
    done: float
    total: float
    speed: float | None = None
    runs: Mapping[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    text: str = ""

    @property
    def fresh(self) -> bool:
        """Whether the process that wrote it is still at work."""
        return abs(time.time() - self.time) < FRESH

    @property
    def left(self) -> float | None:
        """Seconds left; None if not known yet."""
        return (self.total - self.done) / self.speed if self.speed else None

    def write(self, folder: Path) -> None:
        """Renew the file. What cannot be written is left out: nothing depends on it."""
        with suppress(StoreError):
            write_text(folder / FILE, json.dumps(asdict(self)), shared=True)


def read_pulse(folder: Path) -> Pulse | None:
    """The folder's pulse; None if there is none that can be read."""
    try:
        values = json_of((folder / FILE).read_bytes())
        runs = {str(name): (int(round), float(rate)) for name, (round, rate) in values["runs"].items()}
        numbers = {key: float(values[key]) for key in ("time", "seconds", "done", "total")}
        speed = None if values["speed"] is None else float(values["speed"])
        return Pulse(**numbers, speed=speed, runs=runs, text=str(values["text"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def end_pulse(folder: Path) -> None:
    """Remove the file: the process ends."""
    with suppress(OSError):
        (folder / FILE).unlink()


Status = Literal["waiting", "running", "done", "diverged"]
_COURSES = (
    "SELECT model, split, round, metric, pooled, loss, samples FROM metrics "
    "JOIN evaluations USING (run, round, model, split) WHERE run = ? AND place = 0 ORDER BY round"
)


@dataclass(frozen=True)
class Point:
    """One evaluation of a named model on one split: the compared metric's value and the loss, over all samples."""

    round: int
    score: float
    loss: float
    samples: int


Courses: TypeAlias = Mapping[str, Mapping[str, tuple[Point, ...]]]
"""Split -> named model -> its evaluations, by round."""


@dataclass(frozen=True)
class Followed:
    """One run as it stands. method: its label; name: the method's own. rate: rounds a second, 0 if not known.

    courses: its evaluations; the first model of a split is the method's own. metric: what is
    compared, "" before the first evaluation. constant: what one answer for all training samples scores, if known.
    """

    id: str
    cell: str
    method: str
    name: str
    seed: int
    rounds: int
    status: Status = "waiting"
    round: int = 0
    rate: float = 0.0
    seconds: float = 0.0
    message: str = ""
    metric: str = ""
    courses: Courses = field(default_factory=dict[str, Mapping[str, tuple[Point, ...]]])
    constant: float | None = None

    def course(self, split: str, model: str) -> tuple[Point, ...]:
        """The evaluations of a named model on a split; none if there are none."""
        return self.courses.get(split, {}).get(model, ())

    @property
    def compared(self) -> Metric | None:
        """The compared metric; None before the first evaluation."""
        return METRICS.get(self.metric)


@dataclass(frozen=True)
class Snapshot:
    """All runs of a folder at one instant. begun: whether it holds an experiment; pulse: of the process at work."""

    name: str
    runs: tuple[Followed, ...]
    begun: bool
    pulse: Pulse | None

    @property
    def alive(self) -> bool:
        """Whether a process works on it."""
        return self.pulse is not None and self.pulse.fresh

    @property
    def over(self) -> bool:
        """Whether every run has ended."""
        return self.begun and not self.alive and all(run.status in FINISHED for run in self.runs)


class Follower:
    """Reads a folder again and again; of runs that have ended, only once.

    folder: None if nothing is recorded. experiment: what it holds, if that is known.
    """

    def __init__(self, folder: Path | None, experiment: Experiment | None = None) -> None:
        self.folder, self.experiment = folder, experiment
        self._ended: dict[str, Followed] = {}

    def read(self, pulse: Pulse | None = None) -> Snapshot:
        """The folder as it stands. pulse: by default what the file says. Raises `StoreError` if it is no run's."""
        if self.folder is None or not (self.folder / DATABASE).is_file():
            known = {} if self.experiment is None else _expected(self.experiment)
            name = self.folder.name if self.folder else ""
            return Snapshot(name, tuple(_moved(run, pulse) for run in known.values()), False, pulse)
        pulse = read_pulse(self.folder) if pulse is None else pulse
        with Store(self.folder, create=False) as store:
            if self.experiment is None and store.fact("experiment") is None:
                return Snapshot(self.folder.name, (), False, pulse)
            experiment = self.experiment or stored_experiment(store)
            rows = {row.id: row for row in store.runs()}
            runs = _expected(experiment)
            if rows and runs.keys().isdisjoint(rows):  # a sweep, whose runs no experiment names
                runs = {row.id: _unexpected(row) for row in rows.values()}
            return Snapshot(
                experiment.name,
                tuple(self._followed(store, run, rows.get(run.id), pulse) for run in runs.values()),
                True,
                pulse,
            )

    def _followed(self, store: Store, run: Followed, row: RunRow | None, pulse: Pulse | None) -> Followed:
        if row is None:
            return _moved(run, pulse)
        if row.id in self._ended and row.status in FINISHED:
            return self._ended[row.id]
        metric, courses = _courses(store, row)
        scores = row.provenance.get("constant")
        now = replace(
            run,
            status=row.status if row.status in FINISHED else "running",
            round=row.round,
            seconds=row.seconds,
            message=row.message,
            metric=metric,
            courses=courses,
            constant=scores.get(metric) if isinstance(scores, dict) else None,
        )
        if row.status in FINISHED:
            self._ended[row.id] = now
            return now
        return _moved(now, pulse)


def _moved(run: Followed, pulse: Pulse | None) -> Followed:
    """A run with the rounds that it has done since its last evaluation."""
    if pulse is None or not pulse.fresh:
        return run
    round, rate = pulse.runs.get(run.id, (run.round, 0.0))
    return replace(
        run, status="running" if run.id in pulse.runs else run.status, round=max(run.round, round), rate=rate
    )


def _expected(experiment: Experiment) -> dict[str, Followed]:
    """Every run of an experiment, as it stands before it begins."""
    found: dict[str, Followed] = {}
    for cell in experiment.cells:
        for method in cell.methods:
            for seed in experiment.seed_list:
                name = run_id(cell.id, method.title, seed)
                found[name] = Followed(name, cell.id, method.title, method.name, seed, cell.rounds)
    return found


def _unexpected(row: RunRow) -> Followed:
    """A run that no experiment names."""
    rounds = row.config.get("rounds")
    return Followed(
        row.id, row.cell, row.label, row.method, row.seed, rounds if isinstance(rounds, int) else row.round
    )


def _courses(store: Store, row: RunRow) -> tuple[str, dict[str, dict[str, tuple[Point, ...]]]]:
    """(compared metric, split -> model -> evaluations) of a run; the method's own model comes first."""
    metric, found = "", dict[str, dict[str, list[Point]]]()
    algorithm = ALGORITHMS.get(row.method)
    order = {name: place for place, name in enumerate(algorithm.model_names if algorithm else ())}
    for model, split, round, name, pooled, loss, samples in store.select(_COURSES, (row.id,)):
        metric = str(name)
        score, loss = (math.nan if value is None else float(value) for value in (pooled, loss))
        found.setdefault(split, {}).setdefault(model, []).append(Point(int(round), score, loss, int(samples)))
    return metric, {
        split: {model: tuple(models[model]) for model in sorted(models, key=lambda name: (order.get(name, 99), name))}
        for split, models in found.items()
    }


def is_run(folder: Path) -> bool:
    """Whether a folder holds runs, or may still get them: it is absent, empty, or made for a hub."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    return DATABASE in names or "hub.json" in names or not names - {".lock"}
