"""Rounds to a target: how soon each model's mean course reaches what a reference model has at its end."""

from dataclasses import dataclass

import numpy as np

from idiolect.report import text
from idiolect.report.html.names import isolated
from idiolect.report.html.parts import Course, Key, Part
from idiolect.study.analyse.outcomes import Line


@dataclass(frozen=True)
class Target:
    """A score to be reached, whose it is, and the first evaluated round in which each model's mean reaches it."""

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

    def shown(self, line: Line) -> tuple[str, float | None]:
        """The text of a line's cell, and its number."""
        rounds = self.rounds.get((line.method, line.model))
        return (text.MISSING, None) if rounds is None else (str(rounds), float(rounds))


def target_of(part: Part) -> Target | None:
    """The target: the shared model's last score, else that of training alone; None without either or a course."""
    key = part.shared or part.local
    courses = {course.key: course for course in part.quantities[0].courses} if part.quantities else {}
    if key is None or key not in courses or not part.quantities[0].title.startswith("test"):
        return None
    value = float(courses[key].mean[-1])
    if not np.isfinite(value):
        return None
    whose = "training alone" if key == part.local else isolated(f"{part.entry(key[0]).shown}, {key[1]}")
    rounds = {other: _first(course, value, part.metric.higher) for other, course in courses.items()}
    unit = " %" if part.metric.percent else ""
    return Target(value, whose, rounds, text.number(value, part.metric) + unit)


def _first(course: Course, value: float, higher: bool) -> int | None:
    """The first round at or beyond the value."""
    with np.errstate(invalid="ignore"):
        reached = np.flatnonzero(course.mean >= value if higher else course.mean <= value)
    return int(course.rounds[reached[0]]) if len(reached) else None
