"""Too many lines for one panel: which are drawn, which are grey, and what the caption says about it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from idiolect.metrics.base import Metric
from idiolect.report.looks import COLOURS
from idiolect.report.style import NOT_CHOSEN, OTHERS
from idiolect.study.analyse.outcomes import Curve


@dataclass(frozen=True)
class Crowd:
    """What is drawn of a cell's lines. muted: methods in grey, called `grey` in the legend; told: for the caption."""

    lines: frozenset[tuple[str, str]]
    muted: frozenset[str]
    grey: str = NOT_CHOSEN
    told: str = ""


def thinned(curves: Sequence[Curve], muted: Collection[str], metric: Metric, most: int, local: str = "") -> Crowd:
    """Leave lines out of a panel that would have more than `most` in colour.

    First each method keeps its first named model alone; then all but the methods with the best last scores, and
    `local`, the title of training alone, are grey. curves: of test scores, each method's first model first. muted:
    methods that are grey already.
    """
    lines = [(curve.method, curve.model) for curve in curves]
    first: dict[str, str] = {}
    for method, model in lines:
        first.setdefault(method, model)
    told: list[str] = []
    coloured = [line for line in lines if line[0] not in muted]
    if len(coloured) > most:
        kept = [line for line in lines if first[line[0]] == line[1]]
        if len(kept) < len(lines):
            told.append(f"drawn: each method's first model ({len(lines) - len(kept)} other lines left out)")
        lines = kept
    grey = NOT_CHOSEN
    coloured = [line for line in lines if line[0] not in muted]
    if len(coloured) > most:
        last = {curve.method: curve.score[-1] for curve in curves if first[curve.method] == curve.model}
        candidates = [method for method, _ in coloured]
        ranked = sorted(candidates, key=lambda method: _rank(float(last[method]), metric))
        best = {*ranked[: len(COLOURS)], *(method for method in candidates if method == local)}
        told.append(
            f"in colour: the {len(COLOURS)} methods with the best last score" + (", and Local" * (local in best))
        )
        grey = f"{NOT_CHOSEN}, or {OTHERS}" if muted else OTHERS
        muted = {*muted, *(method for method in candidates if method not in best)}
    return Crowd(frozenset(lines), frozenset(muted), grey, "; ".join(told))


def _rank(score: float, metric: Metric) -> tuple[bool, float]:
    return score != score, -score if metric.higher else score
