"""The headline of one comparison in at most 15 words, by one rule."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from idiolect.metrics.base import Metric
from idiolect.report import text
from idiolect.report.sections.tables import FEW

WORDS = 15
"""The most words of a headline."""
FEWEST_ROWS = 50
"""Test rows per client (median) below which they are too few: 95 % of one client's accuracies then span 28 points."""
Decision = Literal["use", "local", "inconclusive", "mixed", "published", "none"]
"""The kind of a headline: use a model, use local training, neither is shown, comparisons differ, published values
agree or not, nothing is compared."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What the rule of the headline reads: one federated model compared with local training, in the units shown.

    model: its name; "" without a federated model that has a score. shared: whether it is one model for all clients.
    local: whether local training has a score. methods: those with a score. gap: better than local training by this
    much; worse if negative. tested: whether seeds test the gap; beyond: whether it is beyond noise, corrected. level:
    other models that also beat local training and that seeds do not separate from it. losing, of: clients that lose
    beyond noise, and clients tested. rows: median of the clients' test rows. rising: of the two models, those that
    still improve at the end of training. published: the verdicts on published values.
    """

    metric: Metric
    model: str = ""
    shared: bool = False
    local: bool = True
    methods: Sequence[str] = ()
    seeds: int = 0
    gap: float = math.nan
    tested: bool = True
    beyond: bool = False
    level: tuple[str, ...] = ()
    losing: int = 0
    of: int = 0
    rows: float = math.inf
    rising: frozenset[Literal["model", "local"]] = frozenset()
    published: Mapping[str, int] = field(default_factory=dict)


def headline(s: Situation) -> tuple[Decision, str]:
    """The decision and the headline of one comparison. "Use" needs a gain over local training beyond noise."""
    if not s.methods:
        return "none", "No result yet: no run has ended with a score."
    if s.published and not s.local:
        return "published", _published(s.published)
    if len(s.methods) == 1:
        return "none", _fitting(s.methods[0], lambda name: f"Nothing to compare: only {name} was run.")
    if not s.model:
        return "none", "No recommendation: no federated method has a score."
    if not s.local:
        return "none", "No recommendation: local training was not compared."
    if s.seeds < 2:
        return "inconclusive", "Inconclusive: one seed is too few."
    if not s.tested or math.isnan(s.gap):
        return "inconclusive", "Inconclusive: the difference from local training could not be tested."
    if ("local" if s.gap > 0 else "model") in s.rising:
        behind = "local training" if s.gap > 0 else s.model
        return "inconclusive", _fitting(
            behind, lambda name: f"Inconclusive: {name} has not converged; train more rounds."
        )
    if s.beyond and s.gap > 0:
        return "use", _use(s)
    if s.beyond:
        how = _gap(s, "local training is {} better.", "local training has {}.")
        return "local", f"Do not federate with these settings: {how}"
    if s.seeds < FEW:
        return "inconclusive", _fitting(
            s.model, lambda name: f"Inconclusive: {s.seeds} seeds do not separate {name} from local training."
        )
    if s.rows < FEWEST_ROWS:
        return "inconclusive", f"Inconclusive: {s.rows:.0f} test rows per client are too few."
    return "inconclusive", _fitting(
        s.model, lambda name: f"Inconclusive: {name} is not better than local training beyond noise."
    )


def _published(verdicts: Mapping[str, int]) -> str:
    """How many published values agree, are close or consistent, and differ; the others are not comparable."""
    total = sum(verdicts.values())
    agree, differ = verdicts.get("agrees", 0), verdicts.get("differs", 0)
    near = verdicts.get("close", 0) + verdicts.get("consistent, wide", 0)
    parts = {
        "agrees" if agree == 1 else "agree": agree,
        "close or consistent": near,
        "differs" if differ == 1 else "differ": differ,
        "not comparable": total - agree - near - differ,
    }
    return f"Of {total} published values: {', '.join(f'{count} {word}' for word, count in parts.items() if count)}."


def _use(s: Situation) -> str:
    better = _gap(s, "{} better than local training", "{} than local training")
    if s.losing:
        lose = f"; {s.losing} of {s.of} lose" if s.shared else f", but {s.losing} of {s.of} lose"
        if s.shared:
            return f"Use one model for all: {better}{lose}."
        return _fitting(s.model, lambda name: f"Use {name}: {better}{lose}.")
    if len(s.level) == 1:
        words = text.unmarked(s.level[0]).split()
        other = _cut(words, min(3, len(words)))
        return _fitting(s.model, lambda name: f"Use {name} or {other}: both beat local training.")
    if s.level:
        return _fitting(s.model, lambda name: f"Use {name}: {better}; {len(s.level)} others are level.")
    if s.shared:
        return _fitting(s.model, lambda name: f"Use one model for all ({name}): {better}.")
    return _fitting(s.model, lambda name: f"Use {name}: {better}.")


def _gap(s: Situation, points: str, other: str) -> str:
    """The size of the gap in words. points, other: the sentence for per cent, and for any other metric."""
    size = abs(s.gap)
    if s.metric.percent:
        return points.format(f"{size:.1f} points" if size >= 0.05 else f"{size:.2g} points")
    return other.format(f"{size:.3g} {'higher' if s.metric.higher else 'lower'} {s.metric.column}")


def _fitting(name: str, form: Callable[[str], str]) -> str:
    """The sentence with the name, of which words are left out before the last one until the headline is short."""
    words = text.unmarked(name).split()
    for count in range(len(words), 1, -1):
        if len(form(_cut(words, count)).split()) <= WORDS:
            return form(_cut(words, count))
    return form(_cut(words, 1))


def _cut(words: Sequence[str], count: int) -> str:
    """So many words of a name: the first ones and the last, which models of one method differ in."""
    kept = words if count == len(words) else [*words[: count - 1], f"…{words[-1]}"]
    return f"\u2068{' '.join(kept)}\u2069"
