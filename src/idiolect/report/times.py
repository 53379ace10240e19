"""Seconds a round, measured and published."""

from collections.abc import Mapping
from dataclasses import dataclass

from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell


def is_timed(cell: Cell) -> bool:
    """Whether any method of the cell has published seconds a round."""
    return any(method.published_seconds for method in cell.methods)


@dataclass(frozen=True)
class Times:
    """Seconds a round by method. base: the paper's fastest method, of which the others are given as multiples."""

    base: str
    measured: Mapping[str, float]
    published: Mapping[str, float]

    @classmethod
    def of(cls, results: Results, cell: Cell) -> "Times":
        """Collect the means over the finished runs and the published values; the cell must have one (`is_timed`)."""
        published = {method.title: method.published_seconds for method in cell.methods if method.published_seconds}
        seconds_by_title = {method.title: results.round_seconds(cell, method) for method in cell.methods}
        measured = {title: seconds.mean for title, seconds in seconds_by_title.items() if seconds.seeds}
        return cls(min(published, key=lambda title: published[title]), measured, published)

    def multiples(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Divide all by the value of `base`; empty if `base` has none."""
        return {title: value / seconds[self.base] for title, value in seconds.items() if self.base in seconds}
