"""The columns of the page's table: the text and the number of each cell, and what a column means."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.report.comparison import hurt_column
from idiolect.report.html.names import isolated
from idiolect.report.html.parts import Key, Part
from idiolect.report.html.target import Target
from idiolect.study.analyse.outcomes import Line, in_words
from idiolect.study.analyse.pairs import Pair
from idiolect.study.spec.published import published_metric
from idiolect.study.store.summary import OverSeeds

Shown = tuple[str, float | str | None]
"""A cell of the table: its text, and what it is sorted by."""
MISSING: Shown = (text.MISSING, None)


@dataclass(frozen=True)
class Column:
    """A column. of: the cell of a line; numeric: whether it is a number, aligned right; marked: holds the best."""

    title: str
    help: str
    numeric: bool
    of: Callable[[Line], Shown]
    marked: bool = False


def columns_of(part: Part, pairs: Mapping[Key, Pair], target: Target | None) -> list[Column]:
    """The columns that a part's table has. pairs: of each line against training alone, where that was run."""
    metric, lines = part.metric, part.lines
    name = f"{metric.column}, %" if metric.percent else metric.column
    better = "Higher is better." if metric.higher else "Lower is better."
    found = [
        Column("method", "What trains the models, and its label.", False, lambda line: _word(line.method)),
        Column("model", "Which of the method's models.", False, lambda line: _word(line.model)),
        Column(
            name,
            f"Test {metric.column} over all test samples of all clients: mean ± {text.SPREAD}; a single seed "
            f"has no ±. Methods are compared by it. {better}",
            True,
            lambda line: _score(part, line.pooled, line),
            marked=True,
        ),
    ]
    if any(line.published is not None for line in lines):
        found += _published(part)
    found += [
        Column(
            "client mean", f"Every client counts once, however many test samples it has; ± {text.SPREAD}.", True,
            lambda line: _score(part, line.mean),
        ),
        Column(
            "worst 10 %", f"The mean of the worst tenth of the clients; ± {text.SPREAD}.", True,
            lambda line: _score(part, line.worst10),
        ),
    ]  # fmt: skip
    if part.local is not None:
        found += _hurt(part, pairs)
    whose = hurt_column(lines)
    if any(line.hurt_global is not None for line in lines):
        what = "FedAvg's shared model where it was run, else the method's own"
        worse = "lower" if metric.higher else "higher"
        help = f"The share of clients whose score is {worse} than with the plain shared model: {what}."
        found.append(Column(whose, help, True, lambda line: _share(line.hurt_global)))
    for other in dict.fromkeys(name for line in lines for name in line.metrics if name != metric.name):
        if any(_finite(line.metrics.get(other)) for line in lines):
            found.append(_other(other))
    return [*found, *_costs(part, target)]


def _word(word: str) -> Shown:
    return word, word


def _score(part: Part, value: OverSeeds, line: Line | None = None) -> Shown:
    if math.isnan(value.mean):
        return (text.MISSING if line is None else _absent(line)), None
    return text.score(value, part.metric), value.mean


def _absent(line: Line) -> str:
    return "diverged" if line.failed else "no score"


def _share(value: OverSeeds | None) -> Shown:
    return MISSING if value is None or math.isnan(value.mean) else (text.share(value), value.mean)


def _finite(value: OverSeeds | None) -> bool:
    return value is not None and math.isfinite(value.mean)


def _other(name: str) -> Column:
    metric = METRICS[name]

    def of(line: Line) -> Shown:
        value = line.metrics.get(name)
        return (text.score(value, metric), value.mean) if value is not None and _finite(value) else MISSING

    better = "Higher is better." if metric.higher else "Lower is better."
    title = f"{metric.column}, %" if metric.percent else metric.column
    return Column(title, f"Test {metric.column} over all test samples, mean ± {text.SPREAD}. {better}", True, of)


def _published(part: Part) -> list[Column]:
    def published(line: Line) -> Shown:
        value, metric = line.published, published_metric(line.published_metric)
        return MISSING if value is None else (text.published(value, metric, part.metric), value.value)

    def difference(line: Line) -> Shown:
        metric = published_metric(line.published_metric)
        return text.difference(line.difference, line.interval, metric), line.difference

    def verdict(line: Line) -> Shown:
        known = line.published is not None and line.verdict is not None
        return _word(in_words(line.verdict, line.published)) if known else ("", None)  # pyright: ignore[reportArgumentType]

    return [
        Column("published", "The value that the paper gives; what follows ± is the paper's, too.", True, published),
        Column("difference", "Measured minus published, with its 95 % interval.", True, difference),
        Column("verdict", "Whether the two agree, by the rule under 'How to read'.", False, verdict),
    ]


def _hurt(part: Part, pairs: Mapping[Key, Pair]) -> list[Column]:
    def beyond(line: Line) -> Shown:
        pair = pairs.get((line.method, line.model))
        if pair is None:
            return MISSING
        told = pair.clients.better + pair.clients.worse + pair.clients.unclear
        return f"{pair.clients.worse} of {told}", pair.clients.worse / told if told else None

    worse = "lower" if part.metric.higher else "higher"
    return [
        Column(
            "hurt vs Local", f"The share of clients whose score is {worse} than with training alone, noise or not.",
            True, lambda line: _share(line.hurt_local),
        ),
        Column(
            "hurt beyond noise",
            "Clients that are worse off than with training alone by more than the noise of their test samples and of "
            "the seeds explains (each tested, Holm's correction over all clients and models of the table, 5 %).",
            True, beyond,
        ),
    ]  # fmt: skip


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


def _costs(part: Part, target: Target | None) -> list[Column]:
    def bytes_of(side: int) -> Callable[[Line], Shown]:
        def of(line: Line) -> Shown:
            known = part.traffic.get(line.method)
            if known is None:
                return MISSING
            count = (known.down, known.up)[side]
            return text.size(count), count

        return of

    def seconds(line: Line) -> Shown:
        known = not math.isnan(line.seconds.mean)
        return (text.seconds(line.seconds), line.seconds.mean) if known else MISSING

    found: list[Column] = []
    if part.traffic:
        when = f"in a round in which it takes part: {_how(part)}."
        found = [
            Column("bytes down", f"What one client receives {when}", True, bytes_of(0)),
            Column("bytes up", f"What one client sends {when}", True, bytes_of(1)),
        ]
    found.append(Column("seconds", "Training time of one run, without compilation, mean over seeds.", True, seconds))
    if target is not None:
        found.append(Column("rounds to target", target.help, True, target.shown))
    return found
