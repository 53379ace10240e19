"""What is known of a report's comparisons, wherever it was read: in a store of runs, in report.json, in CSV files."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from idiolect.core.errors import unknown
from idiolect.data.federated import TaskKind
from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse import resolution
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.pairs import Pair, Scores
from idiolect.study.analyse.ranks import Ranks
from idiolect.study.store.summary import OverSeeds, over_seeds, summarise

Key = tuple[str, str]
"""(method's title, model): one line of a table."""
MEAN, WORST = "client mean", "worst 10 %"
"""The columns of a table that are not a metric over all samples."""


@dataclass(frozen=True)
class Entry:
    """A method of a comparison. title: as tables call it; shown: as figures do; name: the registry's, or ""."""

    title: str
    shown: str
    name: str = ""


@dataclass(frozen=True)
class Course:
    """One model's values over rounds. half: of the 95 % interval, NaN for one seed. ended: whether any run has.

    Arrays are (rounds,).
    """

    key: Key
    rounds: Float[np.ndarray, "rounds"]
    mean: Float[np.ndarray, "rounds"]
    half: Float[np.ndarray, "rounds"]
    ended: bool = True


@dataclass(frozen=True)
class Quantity:
    """The courses of one quantity over rounds. kind: score, validation, loss (of training) or test loss."""

    kind: str
    title: str
    percent: bool
    courses: tuple[Course, ...]


@dataclass(frozen=True)
class Census:
    """How many samples each client has, and of what. Lists are in the order of `names`.

    train, test: samples. classes, counts: the training samples of each class; empty if they are not known.
    quantiles: minimum, quartiles and maximum of a regression's training labels.
    """

    names: tuple[str, ...]
    train: tuple[int | None, ...]
    test: tuple[int | None, ...]
    classes: tuple[str, ...] = ()
    counts: tuple[tuple[int, ...], ...] = ()
    quantiles: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Traffic:
    """Bytes of one client's round. counted: in the messages between real sites, as a mean; else from their shapes."""

    down: int
    up: int
    counted: bool = False


@dataclass(frozen=True)
class Extra:
    """A small table as strings."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Run:
    """One planned run. status: not run, running, done or diverged; message: why it diverged."""

    id: str
    cell: str
    method: str
    seed: int
    status: str = "not run"
    round: int = 0
    seconds: float = math.nan
    compile_seconds: float = math.nan
    message: str = ""
    diagnostics: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Times:
    """Seconds a round by method. base: the paper's fastest method, of which the others are given as multiples.

    measured: means over the finished seeds, of which there are as many as `counts` says, one for each method.
    """

    base: str
    measured: Mapping[str, float]
    published: Mapping[str, float]
    counts: tuple[int, ...] = ()

    def multiples(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Divide all by the value of `base`; empty if `base` has none."""
        return {title: value / seconds[self.base] for title, value in seconds.items() if self.base in seconds}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One comparison. clients: the evaluated ones; scores: every model's, by seed, at the rounds that count.

    metrics: all that were measured, `metric` first. seeds: the planned ones. lines: with each model's first published
    value; further: with the others. pairs: every model compared with local training, or with the first one where that
    was not run. statuses: a method's seeds, counted by status. selected, chosen: how the rounds that count were
    chosen, in words and as a sentence. traffic: of a method with known bytes. figures: (caption, path).
    muted: settings that validation data did not choose. times: where only seconds are compared. at: the value of the
    setting that differs between the parts of a view. by_seed: whether the compared score over all samples is known
    for each seed, so that differences can be tested. graphs, sweep: as in report.json, empty if there are
    none; `missing` says why. falling: models with a validation loss that still fell at the last round; None where
    runs have a fixed number of rounds. distances, confusion, residuals: of a line, a list over clients. only:
    (methods, models) to draw; all methods, and each one's first model, if empty.
    """

    id: str
    title: str
    metric: Metric
    task: TaskKind
    seeds: tuple[int, ...]
    methods: tuple[Entry, ...]
    lines: tuple[Line, ...]
    further: tuple[Line, ...] = ()
    metrics: tuple[Metric, ...] = ()
    rounds: int = 0
    clients: tuple[str, ...] = ()
    scores: Scores = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    census: Census | None = None
    select: str = ""
    selected: str = ""
    chosen: str = ""
    falling: frozenset[Key] | None = None
    draw: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    audit: tuple[str, ...] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    extras: tuple[Extra, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    pairs: Mapping[Key, Pair] = field(default_factory=dict)
    statuses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    traffic: Mapping[str, Traffic] = field(default_factory=dict)
    muted: frozenset[str] = frozenset()
    times: Times | None = None
    at: float = math.nan
    by_seed: bool = True
    missing: tuple[str, ...] = ()
    distances: Mapping[Key, Any] | None = None
    graphs: tuple[dict[str, Any], ...] = ()
    sweep: dict[str, Any] | None = None
    confusion: Mapping[Key, Any] | None = None
    residuals: Mapping[Key, Any] | None = None
    confusion_note: str = ""
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def entry(self, title: str) -> Entry:
        """The method with this title."""
        return next(one for one in self.methods if one.title == title)

    def line(self, key: Key) -> Line:
        """The line of this method's title and model."""
        return next(one for one in self.lines if (one.method, one.model) == key)

    @property
    def timed(self) -> bool:
        """Whether only seconds are compared: so few rounds were run that scores mean nothing."""
        return self.times is not None

    @property
    def names(self) -> dict[str, str]:
        """What figures call each method, by its title."""
        return {entry.title: entry.shown for entry in self.methods}

    @property
    def measured_metrics(self) -> tuple[Metric, ...]:
        """All metrics, the compared one first."""
        return self.metrics or (self.metric,)

    def _counts(self, line: Line) -> bool:
        return line.pooled.seeds > 0 and line.method not in self.muted

    def _model_of(self, names: tuple[str, ...], model: str) -> Key | None:
        for line in self.lines:
            if line.model == model and self.entry(line.method).name in names and self._counts(line):
                return line.method, line.model
        return None

    @property
    def local(self) -> Key | None:
        """Local training, if it was run."""
        return self._model_of(("local",), "local")

    @property
    def shared(self) -> Key | None:
        """The plain shared model: FedAvg's, else the first method's own that has a model "global"."""
        found = self._model_of(("fedavg", "fedavg-ft"), "global")
        own = (line for line in self.lines if line.model == "global" and self._counts(line))
        return found or next(
            ((line.method, line.model) for line in own if self.entry(line.method).name != "global"), None
        )

    @property
    def first(self) -> dict[str, str]:
        """Each method's first model."""
        found: dict[str, str] = {}
        for line in self.lines:
            found.setdefault(line.method, line.model)
        return found

    def drawing(self, methods: Sequence[str], models: Sequence[str]) -> "Part":
        """The part of which only these methods and models are drawn. Raises `ConfigError` for an unknown one."""
        titles = [
            e.title for e in self.methods if not methods or e.title in methods or (e.name and e.name in methods)
        ]
        for name in methods:
            if not any(name in (entry.title, entry.name) for entry in self.methods):
                raise unknown("method of this cell", name, self.first)
        known = {line.model for line in self.lines if line.method in titles}
        for name in models:
            if name not in known:
                raise unknown("model of this cell", name, known)
        return replace(self, only=(tuple(titles) if methods else (), tuple(models)))

    def by_metric(self, name: str) -> "Part":
        """The part by another of its metrics, without curves. Raises `ConfigError` for one that was not measured."""
        known = {metric.name: metric for metric in self.measured_metrics}
        if name not in known:
            raise unknown("metric of this run", name, known)
        if name == self.metric.name:
            return self
        rest = tuple(metric for metric in self.measured_metrics if metric.name != name)
        other = replace(self, metric=known[name], metrics=(known[name], *rest), quantities=())
        lines = tuple(
            replace(
                line,
                metric=name,
                pooled=line.metrics[name],
                mean=over_seeds([*other.values(key, MEAN).values()]),
                worst10=over_seeds([*other.values(key, WORST).values()]),
            )
            for line in self.lines
            if (key := (line.method, line.model)) and name in line.metrics
        )
        return replace(other, lines=lines)

    def drawn(self, *, every: bool = False) -> list[Key]:
        """The named models to draw. every: all of a method, where none is named."""
        methods, models = self.only
        return [
            (line.method, line.model)
            for line in self.lines
            if (not methods or line.method in methods)
            and (line.model in models if models else every or self.first[line.method] == line.model)
        ]

    def measured(self, key: Key) -> Mapping[int, ClientScores]:
        """Seed -> the clients' scores of a named model; empty where no run is finished."""
        return self.scores.get(key, {})

    @property
    def ended(self) -> bool:
        """Whether any run has ended."""
        return any(line.pooled.seeds for line in self.lines) or any(c.get("done") for c in self.statuses.values())

    @property
    def scored(self) -> bool:
        """Whether any client's score is known."""
        return any(self.scores.values())

    def over_seeds(self, key: Key, column: str) -> OverSeeds:
        """A column's value over seeds: a metric's over all samples, `MEAN` or `WORST`; NaN where it is not known."""
        line = next((one for one in self.lines if (one.method, one.model) == key), None)
        named = {} if line is None else {**line.metrics, MEAN: line.mean, WORST: line.worst10}
        return named.get(column) or over_seeds([])

    @property
    def alone(self) -> Key | None:
        """Local training, whether or not it has ended; of several settings the one that was chosen."""
        titles = [entry.title for entry in self.methods if entry.name == "local" and entry.title not in self.muted]
        return (titles[0], "local") if titles else None

    def reference(self, seed: int) -> Float[np.ndarray, "clients"] | None:
        """Every client's score with local training and the same seed; None where that was not run."""
        scores = self.measured(self.alone).get(seed) if self.alone else None
        return None if scores is None else scores.values[self.metric.name]

    def values(self, key: Key, column: str) -> dict[int, float]:
        """Seed -> a column's value, as far as it is known seed by seed; NaN elsewhere."""
        if column in (MEAN, WORST):
            part = "mean" if column == MEAN else "worst10"
            return {s: getattr(summarise(scores, self.metric), part) for s, scores in self.measured(key).items()}
        return {seed: scores.pooled.get(column, math.nan) for seed, scores in self.measured(key).items()}

    def resolution(self, column: str) -> float:
        """By how much one test sample changes a column's value of one seed, see `intervals.paired`."""
        scores = [each for by_seed in self.scores.values() for each in by_seed.values()]
        if column in (MEAN, WORST):
            return (resolution.of_clients if column == MEAN else resolution.of_worst)(scores, self.metric)
        known = {metric.name: metric for metric in self.measured_metrics}
        return resolution.of_samples(scores, known[column]) if column in known else 0.0

    def hurt(self, key: Key, seed: int) -> Bool[np.ndarray, "clients"]:
        """Which clients are worse off than with local training and the same seed; nobody without that reference."""
        values, alone = self.measured(key)[seed].values[self.metric.name], self.reference(seed)
        return np.zeros(len(values), bool) if alone is None else self.metric.worse(values, alone)

    @property
    def counts(self) -> list[int]:
        """The finished seeds of every drawn model that has any."""
        return [len(self.measured(key)) for key in self.drawn() if self.measured(key)]

    def sizes(self) -> tuple[Int[np.ndarray, "clients"] | None, str]:
        """Each client's samples, and the split that they are of: training where it is known, else test."""
        for split in ("train", "test"):
            known = self.census and getattr(self.census, split)
            if known and len(known) == len(self.clients) and None not in known:
                return np.array(known), "training" if split == "train" else "test"
        first = next((next(iter(by_seed.values())) for by_seed in self.scores.values() if by_seed), None)
        return None if first is None else first.count, "test"


@dataclass(frozen=True, kw_only=True)
class View:
    """All that a report says. made_with: (label, text) pairs.

    across: the setting that differs between the cells, of which a figure is drawn. reading: what the metrics are, and
    whether seeds have splits of their own. verdicts: published values, counted by verdict; verdict: as a sentence.
    """

    title: str
    parts: tuple[Part, ...]
    name: str = ""
    source: str = ""
    description: str = ""
    protocol: str = ""
    command: str = ""
    across: str = ""
    after_test: str = ""
    made_with: tuple[tuple[str, str], ...] = ()
    runs: tuple[Run, ...] = ()
    ranks: Ranks | None = None
    missing: tuple[str, ...] = ()
    verdicts: Mapping[str, int] = field(default_factory=dict)
    verdict: str = ""
    published: bool = False
    reading: tuple[str, ...] = ()

    @property
    def seeds(self) -> list[int]:
        """The seeds of all parts, in order."""
        return sorted({seed for part in self.parts for seed in part.seeds})
