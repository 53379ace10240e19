"""The table of methods: its columns, what each means, the text and the number of each cell, its notes and marks."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.report.text import isolated
from idiolect.report.view.parts import Key, Part
from idiolect.study.analyse.outcomes import FEDAVG, OWN, Line, in_words
from idiolect.study.spec.published import published_metric
from idiolect.study.store.summary import OverSeeds

HURT = (f"hurt vs {FEDAVG}", f"hurt vs {OWN}", "hurt vs global")
"""The column of clients that a plain global model serves better: FedAvg's, the method's own, or some of each."""


class Shown(NamedTuple):
    """A cell of the table: its text, and what it is sorted by."""

    text: str
    sort: float | str | None


MISSING = Shown(text.MISSING, None)


@dataclass(frozen=True)
class Column:
    """A column. of: the cell of a line; unit: of its numbers, if any; numeric: a number, aligned right.

    marked: holds the best. printed: whether Markdown and terminals have the column; page: whether the page has it.
    once: printed only in a method's first row. rank: larger ones are left out first on a narrow terminal; 0: never.
    """

    title: str
    help: str
    numeric: bool
    of: Callable[[Line], Shown]
    unit: str = ""
    marked: bool = False
    printed: bool = True
    page: bool = True
    once: bool = False
    rank: int = 0


@dataclass(frozen=True)
class Row:
    """A line of the table. best: whether its score is marked as the best; first: whether it is its method's first."""

    key: Key
    cells: tuple[Shown, ...]
    best: bool
    first: bool


@dataclass(frozen=True)
class Table:
    """The table of a part, which Markdown, terminals and the page draw."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def printed(self, *, best: str = "{}") -> list[list[str]]:
        """The rows as Markdown and terminals have them. best: how the best score is marked."""
        found: list[list[str]] = []
        for row in self.rows:
            values: list[str] = []
            for column, cell in zip(self.columns, row.cells, strict=True):
                if column.printed:
                    mark = best if column.marked and row.best else "{}"
                    values.append(mark.format(cell.text) if row.first or not column.once else "")
            found.append(values)
        return found

    @property
    def heads(self) -> list[Column]:
        """The columns that Markdown and terminals have."""
        return [column for column in self.columns if column.printed]


def table_of(part: Part) -> Table:
    """Make the table of a part: a row for each method and named model."""
    columns = columns_of(part)
    best, rows, before = best_of(part), list[Row](), None
    for line in part.lines:
        key = line.method, line.model
        rows.append(Row(key, tuple(column.of(line) for column in columns), key in best, line.method != before))
        before = line.method
    return Table(_title(part), tuple(columns), tuple(rows), tuple(_notes(part)))


def _title(part: Part) -> str:
    metric, seeds = part.metric, len(part.seeds)
    scale = f"{metric.column} in %" if metric.percent else metric.column
    scale += "" if metric.higher else " (lower is better)"
    over = f"{seeds} seeds, ± {text.WIDTH}" if seeds > 1 else f"{seeds} seed{'s' if seeds != 1 else ''}"
    return f"{part.title}: test {', '.join(filter(None, (scale, part.selected, over)))}"


def best_of(part: Part) -> frozenset[Key]:
    """The line with the best score, and every line whose score reads the same.

    Settings that validation data did not choose are never the best, and nothing is where only times are compared.
    """
    means = {
        (line.method, line.model): line.pooled.mean
        for line in part.lines
        if line.method not in part.muted and not math.isnan(line.pooled.mean)
    }
    if not means or part.timed:
        return frozenset()
    values = list(means.values())
    best = text.number(values[part.metric.best(values)], part.metric)
    return frozenset(key for key, mean in means.items() if text.number(mean, part.metric) == best)


def columns_of(part: Part) -> list[Column]:
    """The columns of a part's table, in order."""
    metric, lines = part.metric, part.lines
    unit, better = "%" if metric.percent else "", "Higher is better." if metric.higher else "Lower is better."
    found = [
        Column("method", "What trains the models, and its label.", False, lambda line: _word(line.method), once=True),
        Column("model", "Which of the method's models.", False, lambda line: _word(line.model)),
        Column(
            metric.column,
            f"Test {metric.column} over all test samples of all clients: mean ± {text.SPREAD}; a single seed "
            f"has no ±. Methods are compared by it. {better}",
            True,
            partial(_pooled, part),
            unit,
            marked=True,
        ),
    ]
    names = dict.fromkeys(name for line in lines for name in line.metrics if name != metric.name)
    measured = [name for name in names if any(_finite(line.metrics.get(name)) for line in lines)]
    found += [_other(name, 20 + place) for place, name in enumerate(measured)]
    if any(line.published is not None for line in lines):
        found += _published(part)
    found += [
        Column(
            "client mean", f"Every client counts once, however many test samples it has; ± {text.SPREAD}.", True,
            lambda line: _score(part, line.mean), rank=9,
        ),
        Column(
            "worst 10 %", f"The mean of the worst tenth of the clients; ± {text.SPREAD}.", True,
            lambda line: _score(part, line.worst10), rank=1,
        ),
    ]  # fmt: skip
    found += _hurt(part)
    what = "FedAvg's shared model where it was run, else the method's own"
    worse = "lower" if metric.higher else "higher"
    help = f"The share of clients whose score is {worse} than with the plain shared model: {what}."
    known = any(line.hurt_global is not None for line in lines)
    found.append(Column(hurt_column(lines), help, True, lambda line: _share(line.hurt_global), page=known, rank=7))
    return [*found, *_costs(part)]


def hurt_column(lines: Sequence[Line]) -> str:
    """The heading that says with whose global model the clients of a table are compared."""
    whose = {one for line in lines for one in line.global_of}
    return f"hurt vs {next(iter(whose))}" if len(whose) == 1 else HURT[2]


def _word(word: str) -> Shown:
    return Shown(word, word)


def _pooled(part: Part, line: Line) -> Shown:
    if line.pooled.seeds:
        return _score(part, line.pooled)
    return Shown(_absent(part, line), None)


def _score(part: Part, value: OverSeeds) -> Shown:
    return MISSING if math.isnan(value.mean) else Shown(text.score(value, part.metric), value.mean)


def _absent(part: Part, line: Line) -> str:
    """The reason why a line has no score."""
    counts = part.statuses.get(line.method)
    if counts is None:
        return "diverged" if line.failed else "no score"
    unfinished = next((status for status in ("diverged", "unfinished") if counts.get(status)), "")
    return unfinished or ("not evaluated" if counts.get("done") else "not run")


def _share(value: OverSeeds | None) -> Shown:
    return MISSING if value is None or math.isnan(value.mean) else Shown(text.share(value), value.mean)


def _finite(value: OverSeeds | None) -> bool:
    return value is not None and math.isfinite(value.mean)


def _other(name: str, rank: int) -> Column:
    metric = METRICS[name]

    def of(line: Line) -> Shown:
        value = line.metrics.get(name)
        if value is None or not math.isfinite(value.mean):
            return MISSING
        return Shown(text.score(value, metric), value.mean)

    better = "Higher is better." if metric.higher else "Lower is better."
    help = f"Test {metric.column} over all test samples, mean ± {text.SPREAD}. {better}"
    return Column(metric.column, help, True, of, "%" if metric.percent else "", rank=rank)


def _published(part: Part) -> list[Column]:
    def published(line: Line) -> Shown:
        value, metric = line.published, published_metric(line.published_metric)
        return MISSING if value is None else Shown(text.published(value, metric, part.metric), value.value)

    def difference(line: Line) -> Shown:
        metric = published_metric(line.published_metric)
        return Shown(text.difference(line.difference, line.interval, metric), line.difference)

    def verdict(line: Line) -> Shown:
        known = line.published is not None and line.verdict is not None
        return _word(in_words(line.verdict, line.published)) if known else Shown("", None)  # pyright: ignore[reportArgumentType]

    return [
        Column("published", "The value that the paper gives; what follows ± is the paper's, too.", True, published),
        Column("difference", "Measured minus published, with its 95 % interval.", True, difference, rank=2),
        Column("verdict", "Whether the two agree, by the rule under 'How to read'.", False, verdict),
    ]


def _hurt(part: Part) -> list[Column]:
    def beyond(line: Line) -> Shown:
        pair = part.pairs.get((line.method, line.model))
        if pair is None:
            return MISSING
        told = pair.clients.better + pair.clients.worse + pair.clients.unclear
        return Shown(f"{pair.clients.worse} of {told}", pair.clients.worse / told if told else None)

    worse, alone = "lower" if part.metric.higher else "higher", part.local is not None
    hurt = Column(
        "hurt vs Local", f"The share of clients whose score is {worse} than with local training, noise or not.",
        True, lambda line: _share(line.hurt_local), page=alone,
    )  # fmt: skip
    if not alone:
        return [hurt]
    help = (
        "Clients that are worse off than with local training by more than the noise of their test samples and of "
        "the seeds explains (each tested, Holm's correction over all clients and models of the table, 5 %)."
    )
    return [hurt, Column("hurt beyond noise", help, True, beyond, printed=False)]


COMPUTED = "computed from the shapes of what one client's round moves"
COUNTED = "counted in the messages between real sites while they trained, the mean over rounds and sites"
"""How bytes are known."""


def _how(part: Part) -> str:
    """How the bytes of a part are known, with the methods' names where that differs."""
    counted = [isolated(title) for title, one in part.traffic.items() if one.counted]
    computed = [isolated(title) for title, one in part.traffic.items() if not one.counted]
    if counted and computed:
        return f"of {text.some(counted)} {COUNTED}; of {text.some(computed)} {COMPUTED}"
    return COUNTED if counted else COMPUTED


def bytes_texts(parts: Sequence[Part]) -> list[str]:
    """What the bytes of the tables are: a sentence, or one for each way in which they are known."""
    known: dict[str, list[str]] = {}
    for part in parts:
        if part.traffic:
            known.setdefault(_how(part), []).append(isolated(part.title))
    what = "Bytes down and up: the numbers that one client receives and sends in a round in which it takes part"
    where = {how: f" ({text.some(titles)})" if len(known) > 1 else "" for how, titles in known.items()}
    return [f"{what}, without headers, encryption and evaluations; {how}{where[how]}." for how in known]


def _costs(part: Part) -> list[Column]:
    def bytes_of(side: int, line: Line) -> Shown:
        known = part.traffic.get(line.method)
        if known is None:
            return MISSING
        count = (known.down, known.up)[side]
        return Shown(text.size(count), count)

    def seconds(line: Line) -> Shown:
        known = not math.isnan(line.seconds.mean)
        return Shown(text.seconds(line.seconds), line.seconds.mean) if known else MISSING

    found: list[Column] = []
    if part.traffic:
        when = f"in a round in which it takes part: {_how(part)}."
        found = [
            Column("bytes down", f"What one client receives {when}", True, partial(bytes_of, 0), printed=False),
            Column("bytes up", f"What one client sends {when}", True, partial(bytes_of, 1), printed=False),
        ]
    help = "Training time of one run, without compilation, mean over seeds."
    found.append(Column("seconds", help, True, seconds, once=True, rank=99))
    if (target := target_of(part)) is not None:
        found.append(Column("rounds to target", target.help, True, target.shown, printed=False))
    return found


@dataclass(frozen=True)
class Target:
    """A score to be reached, its model, and the first evaluated round in which each model's mean reaches it."""

    value: float
    whose: str
    rounds: dict[Key, int | None]
    shown_value: str

    @property
    def help(self) -> str:
        """What the column shows."""
        return (
            f"The first evaluated round in which the mean test score over seeds reaches {self.shown_value}, the "
            f"score of {self.whose} at its end. A dash: not within the run."
        )

    def shown(self, line: Line) -> Shown:
        """The text of a line's cell, and its number."""
        rounds = self.rounds.get((line.method, line.model))
        return MISSING if rounds is None else Shown(str(rounds), float(rounds))


def target_of(part: Part) -> Target | None:
    """The target: the shared model's last score, otherwise that of local training; None without either."""
    key = part.shared or part.local
    courses = {
        course.key: course for quantity in part.quantities if quantity.kind == "score" for course in quantity.courses
    }
    if key is None or key not in courses:
        return None
    value = float(courses[key].mean[-1])
    if not np.isfinite(value):
        return None
    whose = "local training" if key == part.local else isolated(f"{part.entry(key[0]).shown}, {key[1]}")
    rounds: dict[Key, int | None] = {}
    for other, course in courses.items():
        with np.errstate(invalid="ignore"):
            reached = np.flatnonzero(course.mean >= value if part.metric.higher else course.mean <= value)
        rounds[other] = int(course.rounds[reached[0]]) if len(reached) else None
    unit = " %" if part.metric.percent else ""
    return Target(value, whose, rounds, text.number(value, part.metric) + unit)


def _notes(part: Part) -> list[str]:
    """The notes below a table: the metrics of published values, the missing seeds, the selected rounds."""
    notes: list[str] = []
    lines = [line for line in part.lines if line.published is not None]
    for name in dict.fromkeys(line.published_metric for line in lines if line.published_metric != line.metric):
        column = published_metric(name).column
        notes.append(
            f"{column} before a published value: it is of that metric, and so are its difference and verdict"
        )
    published = [line.published for line in lines if line.published is not None]
    if any(value.std is not None for value in published):
        notes.append("± in a published value: what the paper gives, its standard deviation")
    if any(value.half_width is not None for value in published):
        notes.append("± in a published value: half of the paper's confidence interval, taken as one of 95 %")
    notes += _margins(lines)
    if hurt_column(part.lines) == HURT[2] and any(line.global_of for line in part.lines):
        notes.append(f"{HURT[2]}: FedAvg's model in the seeds where FedAvg ended, elsewhere the method's own")
    seeds = len(part.seeds)
    for title, counts in part.statuses.items():
        missing, done = missing_seeds(counts), counts.get("done", 0)
        if missing and done:
            notes.append(f"{title}: over {done} of {seeds} seeds ({', '.join(missing)})")
        elif missing and seeds > 1:
            notes.append(f"{title}: {', '.join(missing)} of {seeds} seeds")
        if part.select in ("best-validation", "best-test"):
            notes += [
                f"{title} {line.model}: round{'s' if len(line.rounds) > 1 else ''} "
                + ", ".join(str(r) for r in line.rounds)
                for line in part.lines
                if line.method == title and line.rounds
            ]
    return notes


def missing_seeds(counts: Mapping[str, int]) -> list[str]:
    """How many seeds diverged, are unfinished, and were not run, in words."""
    return [f"{counts[s]} {s}" for s in ("diverged", "unfinished", "not run") if counts.get(s)]


def _margins(lines: Sequence[Line]) -> list[str]:
    """The margins of the published values, how data differ from the paper's, and what explains a difference."""
    margins: dict[str, list[str]] = {}
    reasons: list[str] = []
    for line in lines:
        if (published := line.published) is None:
            continue
        metric = published_metric(line.published_metric)
        points = " point" if published.within == 1 else " points"
        unit = points if metric.percent else f" in {metric.column}"
        margins.setdefault(f"{published.within:g}{unit}", []).append(f"{line.method} {line.model}")
        reasons += [f"other data: {published.other_data}"] if published.other_data else []
        if published.explained and line.verdict == "differs":
            reasons.append(f"{line.method} {line.model} differs, explained: {published.explained}")
    if len(margins) == 1:
        notes = [f"margin: {margin}" for margin in margins]
    else:
        notes = [f"margin {margin}: {', '.join(names)}" for margin, names in margins.items()]
    return [*notes, *dict.fromkeys(reasons)]
