"""What a page shows of one comparison, wherever it was read: in a store of runs, or in committed CSV files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from numpy import ndarray

from idiolect.data.federated import TaskKind
from idiolect.metrics.base import Metric
from idiolect.report.extras import Extra
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.pairs import Pair, Scores

Key = tuple[str, str]
"""(method's title, model): one line of a table."""


@dataclass(frozen=True)
class Entry:
    """A method of a comparison. title: as tables call it; shown: as figures do; name: the registry's, or ""."""

    title: str
    shown: str
    name: str = ""


@dataclass(frozen=True)
class Course:
    """One model's values over rounds. half: of the 95 % interval, NaN for one seed. Arrays are (rounds,)."""

    key: Key
    rounds: Float[ndarray, "rounds"]
    mean: Float[ndarray, "rounds"]
    half: Float[ndarray, "rounds"]


@dataclass(frozen=True)
class Quantity:
    """The courses of one quantity, such as test accuracy."""

    title: str
    percent: bool
    courses: tuple[Course, ...]


@dataclass(frozen=True)
class Census:
    """How many samples each client has, and of what. Lists are in the order of `names`.

    train, test: samples. classes, counts: the training samples of each class; empty where there are none to tell.
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


@dataclass(frozen=True, kw_only=True)
class Part:
    """One comparison. clients: the evaluated ones; scores: every model's, by seed, at the rounds that count.

    pairs: every model against training alone, or against the first one where that was not run. chosen: how the
    rounds that count were chosen, a sentence. traffic: of a method whose bytes are known.
    muted: settings that validation data did not choose. timed: whether only seconds are compared. by_seed: whether
    the compared score over all samples is known for each seed, so that differences can be tested. The last six are
    parts of the page's data as they stand there, empty if they cannot be had; `missing` says why.
    """

    id: str
    title: str
    metric: Metric
    task: TaskKind
    seeds: tuple[int, ...]
    methods: tuple[Entry, ...]
    lines: tuple[Line, ...]
    clients: tuple[str, ...] = ()
    scores: Scores = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    census: Census | None = None
    chosen: str = ""
    notes: tuple[str, ...] = ()
    audit: tuple[str, ...] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    extras: tuple[Extra, ...] = ()
    pairs: Mapping[Key, Pair] = field(default_factory=dict)
    traffic: Mapping[str, Traffic] = field(default_factory=dict)
    muted: frozenset[str] = frozenset()
    timed: bool = False
    by_seed: bool = True
    missing: tuple[str, ...] = ()
    distances: Mapping[Key, Any] | None = None
    graphs: tuple[dict[str, Any], ...] = ()
    sweep: dict[str, Any] | None = None
    confusion: Mapping[Key, Any] | None = None
    residuals: Mapping[Key, Any] | None = None
    confusion_note: str = ""

    def entry(self, title: str) -> Entry:
        """The method with this title."""
        return next(one for one in self.methods if one.title == title)

    def line(self, key: Key) -> Line:
        """The line of this method's title and model."""
        return next(one for one in self.lines if (one.method, one.model) == key)

    def _counts(self, line: Line) -> bool:
        return line.pooled.seeds > 0 and line.method not in self.muted

    def _model_of(self, names: tuple[str, ...], model: str) -> Key | None:
        for line in self.lines:
            if line.model == model and self.entry(line.method).name in names and self._counts(line):
                return line.method, line.model
        return None

    @property
    def local(self) -> Key | None:
        """Training alone, if it was run."""
        return self._model_of(("local",), "local")

    @property
    def shared(self) -> Key | None:
        """The plain shared model: FedAvg's, else the first method's own that has a model "global"."""
        found = self._model_of(("fedavg", "fedavg-ft"), "global")
        own = (line for line in self.lines if line.model == "global" and self._counts(line))
        return found or next(
            ((line.method, line.model) for line in own if self.entry(line.method).name != "global"), None
        )


@dataclass(frozen=True, kw_only=True)
class Whole:
    """All that a page shows. made_with: (label, text) pairs."""

    title: str
    parts: tuple[Part, ...]
    source: str = ""
    description: str = ""
    protocol: str = ""
    command: str = ""
    after_test: str = ""
    made_with: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    verdicts: str = ""
    published: bool = False
    reading: tuple[str, ...] = ()
