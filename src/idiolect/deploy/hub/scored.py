"""The result of a score: a model's metrics at each site and over all sites, with intervals."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.core.errors import DataError
from idiolect.core.files import write_text
from idiolect.deploy.headers import Scored
from idiolect.deploy.hub.scores import pooled_scores
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message
from idiolect.deploy.query import ScoreStudy
from idiolect.deploy.site.queries import MODEL
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS, chosen_only, names_in
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.intervals import paired, share

ALL, MEAN = "all rows", "mean over sites"
RESULT = "result"
NOTE = (
    "Intervals are of 95 %. Accuracy has that of a share, with two right and two wrong answers added. A mean over "
    "sites has Student's interval: the sites are the sample."
)


@dataclass(frozen=True)
class ScoreRow:
    """One line of the table. where: a site, all rows of all sites, or the mean over sites.

    values: metric -> its value, None if there is none; in [0, 1] where people read per cent. intervals: metric ->
    its ends, where an interval is known.
    """

    where: str
    split: str
    rows: int
    loss: float | None
    values: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class ScoreResult:
    """All lines, the sites without an answer and why, and the splits that sites withhold and why."""

    query: ScoreStudy
    metrics: tuple[str, ...]
    rows: tuple[ScoreRow, ...]
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    withheld: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "query": self.query.id,
            "digest": self.query.digest,
            "model": self.query.model.model_dump(mode="json"),
            "metrics": list(self.metrics),
            "rows": [asdict(row) for row in self.rows],
            "missing": dict(self.missing),
            "withheld": {site: dict(splits) for site, splits in self.withheld.items()},
            "note": NOTE,
        }

    def lines(self) -> list[list[str]]:
        """The table as texts, the heading first."""
        head = ["", "split", "rows", "loss", *(METRICS[name].column for name in self.metrics)]
        body = [[row.where, row.split, f"{row.rows:,}", _number(row.loss)] for row in self.rows]
        values = [[_value(row, name) for name in self.metrics] for row in self.rows]
        return [head, *(start + rest for start, rest in zip(body, values, strict=True))]

    def remarks(self) -> list[str]:
        """What a reader must know: sites without scores, splits that are withheld, and what intervals are."""
        lines = [f"{site}: no scores: {why}" for site, why in self.missing.items()]
        lines += [
            f"{site}: {split}: {why}" for site, splits in self.withheld.items() for split, why in splits.items()
        ]
        return [*(" ".join(line.split()) for line in lines), NOTE]

    def save(self, folder: Path) -> None:
        """Write result.json, result.csv and result.md. Raises `StoreError` if they cannot be written."""
        head, *body = self.lines()
        table = ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *body)]
        text = [f"# {self.query.model.name}", "", *table, "", *self.remarks(), ""]
        plain = io.StringIO()
        writer = csv.writer(plain, lineterminator="\n")
        ends = [f"{name}_{end}" for name in self.metrics for end in ("low", "high")]
        writer.writerow(["where", "split", "rows", "loss", *self.metrics, *ends])
        for row in self.rows:
            bounds = [end for name in self.metrics for end in row.intervals.get(name, ("", ""))]
            values = ["" if row.values[name] is None else row.values[name] for name in self.metrics]
            writer.writerow([row.where, row.split, row.rows, "" if row.loss is None else row.loss, *values, *bounds])
        contents = {
            "json": json.dumps(self.to_dict(), indent=1) + "\n",
            "csv": plain.getvalue(),
            "md": "\n".join(text),
        }
        for suffix, content in contents.items():
            write_text(folder / f"{RESULT}.{suffix}", content)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _value(row: ScoreRow, name: str) -> str:
    """A value with its interval, as people read it."""
    metric, value = METRICS[name], row.values[name]
    if value is None:
        return "–"
    ends = row.intervals.get(name)
    text = f"{value * metric.unit:.4g}{' %' if metric.percent else ''}"
    return text if ends is None else f"{text} [{ends[0] * metric.unit:.4g}, {ends[1] * metric.unit:.4g}]"


def score_result(query: ScoreStudy, answers: Mapping[str, Message], missing: Mapping[str, str]) -> ScoreResult:
    """The result of the sites' sums. An answer that cannot be read counts as missing, with its reason.

    Args:
        query: the query.
        answers: site -> its sums, see `headers.Scored`.
        missing: site -> why it has sent none.
    """
    kind = Kind.from_dict(query.kind, "the query's kind of data")
    metrics = chosen_only(kind.task, names_in(query.metric))
    outputs, scale = len(kind.classes) or 1, 1.0 if kind.target is None else kind.target[1]
    missing, withheld = dict(missing), dict[str, Mapping[str, str]]()
    good = dict[str, Message]()
    for site, answer in answers.items():
        try:
            pooled_scores({0: answer}, 1, [MODEL], query.splits, metrics, outputs, scale)
            kept = Scored.of(answer, "its scores").withheld
        except DataError as error:
            missing[site] = str(error)
            continue
        good[site] = answer
        if kept:
            withheld[site] = {split: why for split, why in kept.items() if split in query.splits}
    names = [*good]
    numbered = {names.index(site): answer for site, answer in good.items()}
    scores = pooled_scores(numbered, len(names), [MODEL], query.splits, metrics, outputs, scale) if good else []
    rows = [row for split in scores for row in _rows(split, names, metrics)]
    return ScoreResult(query, tuple(metric.name for metric in metrics), tuple(rows), missing, withheld)


def _rows(scores: ClientScores, sites: Sequence[str], metrics: Sequence[Metric]) -> list[ScoreRow]:
    """The lines of one split: each site with rows, all rows, and the mean over sites."""
    here = [place for place in range(len(sites)) if scores.count[place]]
    if not here:
        return []
    rows = list[ScoreRow]()
    for place in here:
        values = {metric.name: _known(scores.values[metric.name][place]) for metric in metrics}
        count = int(scores.count[place])
        rows.append(
            ScoreRow(sites[place], scores.split, count, _known(scores.loss[place]), values, _shares(values, count))
        )
    total = int(scores.count[here].sum())
    loss = _known(float(np.average(scores.loss[here], weights=scores.count[here])))
    pooled = {metric.name: _known(scores.pooled[metric.name]) for metric in metrics}
    rows.append(ScoreRow(ALL, scores.split, total, loss, pooled, _shares(pooled, total)))
    means, ends = dict[str, float | None](), dict[str, tuple[float, float]]()
    for metric in metrics:
        held = [float(value) for value in scores.values[metric.name][here] if math.isfinite(value)]
        means[metric.name] = sum(held) / len(held) if held else None
        found = paired(held, [0.0] * len(held)) if len(held) > 1 else None
        if found is not None and found.low is not None and found.high is not None:
            least, most = (bound / metric.unit for bound in metric.bounds)
            ends[metric.name] = max(found.low, least), min(found.high, most)
    mean_loss = _known(float(scores.loss[here].mean()))
    rows.append(ScoreRow(MEAN, scores.split, total, mean_loss, means, ends))
    return rows


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _shares(values: Mapping[str, float | None], count: int) -> dict[str, tuple[float, float]]:
    """The interval of accuracy, the one metric that is a share of the rows."""
    value = values.get("accuracy")
    return {} if value is None else {"accuracy": share(value * count, count)}
