"""A site's floors: the limits below which it sends nothing, whatever its hub asks for.

`Floors` is the part [floors] of site.toml. The site checks the terms and the vectors of a call before its trainer is
asked. The trainer counts rows and classes, and checks them before it computes (`check_rows`). A refusal is one
`DataError` that names the site, the floor, its value, what was asked, and what to do.

Floors are no proof. What a hub can still learn above them is in docs/sites.md.

This module needs no JAX: it also runs in the process that talks to the network.
"""

import sys
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from idiolect.core.errors import DataError
from idiolect.deploy.messages import Vectors
from idiolect.deploy.query import DescribeStudy, ScoreStudy
from idiolect.deploy.study import Study
from idiolect.deploy.terms import Place, Terms

SETTINGS = {"rate": (1e-6, 10.0), "local_steps": (1, 10_000), "epochs": (0, 1_000)}
"""The ranges of settings that hold for every method, unless site.toml names others."""


class Floors(BaseModel):
    """The least that must be behind the data sent, and the most that a hub may ask of it.

    rows: fewest training rows of the site. rows_per_step: fewest rows of a gradient step. rows_per_message: fewest
    different rows of a round's message, or all rows of the site. classes: fewest different labels of its training
    rows. count: smallest count in any statistic: rows of a class, of a split that is scored, of a word or number in a
    summary, of a cell of a histogram. solvable: whether a message may have so many numbers for its rows that a linear
    system can give them back. sites, cohort: fewest sites in the study and in a round, as the hub says. rounds: most
    rounds of a run. again: most replies of a run that are computed beyond one per round. answers: most
    answers to a query; models: most different models that the site scores in queries, in all. evaluations: most
    evaluations of a run. largest_value: largest number, without its sign, in the vectors that the site accepts.
    settings: setting, or method.setting, -> its smallest and largest value; added to `SETTINGS`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    rows: int = Field(default=10, ge=1)
    rows_per_step: int = Field(default=10, ge=1)
    rows_per_message: int = Field(default=50, ge=1)
    classes: int = Field(default=2, ge=1)
    count: int = Field(default=5, ge=1)
    solvable: bool = False
    sites: int = Field(default=3, ge=1)
    cohort: int = Field(default=3, ge=1)
    rounds: int = Field(default=1_000, ge=1)
    again: int = Field(default=50, ge=0)
    answers: int = Field(default=3, ge=1)
    models: int = Field(default=20, ge=0)
    evaluations: int = Field(default=200, ge=0)
    largest_value: float = Field(default=1e3, gt=0)
    settings: dict[str, tuple[float, float]] = Field(default_factory=dict[str, tuple[float, float]])

    @model_validator(mode="after")
    def _ordered(self) -> "Floors":
        for name, (least, most) in self.settings.items():
            if not least <= most:
                raise ValueError(f"settings: {name} = [{least:g}, {most:g}]: name the smaller number first")
        return self

    @classmethod
    def none(cls) -> "Floors":
        """No floors, for sites whose rows all belong to one user on one machine: simulations and tests."""
        most = sys.float_info.max
        return cls(
            rows=1,
            rows_per_step=1,
            rows_per_message=1,
            classes=1,
            count=1,
            solvable=True,
            sites=1,
            cohort=1,
            rounds=2**53,
            again=2**53,
            answers=2**53,
            models=2**53,
            evaluations=2**53,
            largest_value=most,
            settings=dict.fromkeys(SETTINGS, (0.0, most)),
        )

    def check_terms(self, site: str, terms: Terms) -> None:
        """Check what the terms say by themselves.

        Raises:
            DataError: for too many rounds, mini-batches below `rows_per_step`, or a setting out of its range.
        """
        if terms.rounds > self.rounds:
            raise self._below(site, "rounds", f"the run has {terms.rounds} rounds", "ask for fewer rounds")
        batch = terms.method.get("batch_size")
        if isinstance(batch, int) and 0 < batch < self.rows_per_step:
            raise self._step(site, batch)
        for name, value in terms.method.items():
            self.check_setting(site, terms.method_name, name, value)

    def check_study(self, site: str, study: Study) -> None:
        """Check all that a study will ask, before its runs begin.

        Raises:
            DataError: for the first floor that the study does not keep.
        """
        present = len(study.present)
        if present < self.sites:
            raise self._below(site, "sites", f"the study has {_count(present, 'site')}", "let more sites join")
        if study.smallest_cohort < self.cohort:
            asked = f"a round can have {_count(study.smallest_cohort, 'site')}"
            raise self._below(site, "cohort", asked, "take a larger cohort")
        if study.evaluations > self.evaluations:
            asked = f"a run has {study.evaluations} evaluations"
            raise self._below(site, "evaluations", asked, "evaluate less often (eval_every)")
        if study.again > self.again:
            asked = f"the hub may ask {study.again} times again"
            raise self._below(site, "again", asked, "lower 'again' in the hub's configuration")
        for run in study.runs:
            self.check_terms(site, study.terms(run.run, study.kind or {}))

    def check_query(self, site: str, query: ScoreStudy | DescribeStudy) -> None:
        """Raise `DataError` for a query to too few sites, or one that may be answered too often."""
        if len(query.sites) < self.sites:
            asked = f"the query is for {_count(len(query.sites), 'site')}"
            raise self._below(site, "sites", asked, "ask more sites")
        if query.answers > self.answers:
            asked = f"the query asks for up to {query.answers} answers"
            raise self._below(site, "answers", asked, "ask for fewer")

    def check_models(self, site: str, models: int) -> None:
        """Raise `DataError` for one model more than the site scores, after so many."""
        if models >= self.models:
            raise self._below(
                site, "models", f"this is model {models + 1} in a query", "let sites score fewer models"
            )

    def check_setting(self, site: str, method: str, name: str, value: Any) -> None:
        """Raise `DataError` for a setting of a method that is out of its range; one that is no number is free."""
        ranges: Mapping[str, tuple[float, float]] = {**SETTINGS, **self.settings}
        key = f"{method}.{name}" if f"{method}.{name}" in ranges else name
        if key not in ranges:
            return
        least, most = ranges[key]
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, bool | str | None):
                continue
            if not least <= float(one) <= most:
                raise refused(
                    site,
                    f"floors.settings.{key}",
                    f"{least:g} to {most:g}",
                    f"{method} has {name} = {float(one):g}",
                    "choose a value in this range",
                )

    def check_place(self, site: str, place: Place) -> None:
        """Raise `DataError` for a study or a cohort of too few sites, as far as the hub says their number."""
        if place.clients < self.sites:
            raise self._below(site, "sites", f"the study has {_count(place.clients, 'site')}", "let more sites join")
        if place.cohort < self.cohort:
            asked = f"a round has {place.cohort:g} sites"
            raise self._below(site, "cohort", asked, "take a larger cohort")

    def most_replies(self, task: Literal["rounds", "evaluations"], rounds: int, starts: int = 1) -> int:
        """The most different replies of a run; `approvals.Consent` counts them.

        Args:
            task: what is replied to.
            rounds: of the run.
            starts: how often the run has started, see `Study.starts`.
        """
        return starts * rounds + self.again if task == "rounds" else starts * self.evaluations

    def used_up(self, site: str, task: Literal["rounds", "evaluations"], rounds: int, starts: int = 1) -> DataError:
        """The refusal of one reply more than `most_replies`."""
        number = self.most_replies(task, rounds, starts) + 1
        if task == "rounds":
            asked = f"reply {number} in a run of {rounds} rounds"
            return self._below(site, "again", asked, "find out why rounds are called again and again")
        return self._below(site, "evaluations", f"evaluation {number} of a run", "evaluate less often")

    def check_values(self, site: str, vectors: Vectors, what: str) -> None:
        """Raise `DataError` for a vector with a number beyond `largest_value`. what: who sent it."""
        for name, vector in vectors.items():
            if vector.dtype.kind != "f" or vector.size == 0:
                continue
            largest = float(np.abs(vector).max())
            if largest > self.largest_value:
                asked = f"'{name}' of {what} has {largest:.3g}"
                raise self._below(site, "largest_value", asked, "standardise the features, or lower the rates")

    def check_data(self, site: str, rows: int, labels: Mapping[str, int] | None, classes: int) -> None:
        """Check the site's training rows.

        Args:
            site: its name.
            rows: how many they are.
            labels: class -> its rows; None for a regression.
            classes: different labels.

        Raises:
            DataError: for too few rows, too few labels, or a class with too few rows. No class is named.
        """
        if rows < self.rows:
            raise self._below(site, "rows", f"the site has {_count(rows, 'training row')}", "add rows")
        if classes < self.classes:
            asked = f"its training rows have {_count(classes, 'label')}"
            raise self._below(site, "classes", asked, "join with rows of more classes")
        if labels and min(labels.values()) < self.count:
            asked = f"one class has fewer than {self.count} training rows, and a model says the sum of each class"
            raise self._below(site, "count", asked, "leave the rows of that class out")

    def check_rows(self, site: str, method: str, rows: int, used: tuple[int, int, int | None] | None) -> None:
        """Check how many rows a method's message is made of.

        Args:
            site: the site's name.
            method: the method's name.
            rows: training rows of the site.
            used: (rows of a step, of a message, of a cell), see `algorithms.parts.rows_used`; None: the method does
                not say.

        Raises:
            DataError: for a step, a message or a cell of too few rows, or a method that does not say.
        """
        if used is None:
            if self.rows_per_step == self.rows_per_message == self.count == 1:
                return
            raise self._below(
                site, "rows_per_step", f"{method} does not say how many rows a step has", "define its rows_used"
            )
        step, message, cell = used
        if message == 0:
            return
        if cell is not None and cell < self.count:
            asked = f"a number that {method} sends can be of {_count(cell, 'row')}"
            raise self._below(site, "count", asked, "choose a method that sends models")
        if step < self.rows_per_step:
            raise self._step(site, step)
        if message < min(self.rows_per_message, rows):
            asked = f"a message of {method} is made of about {_count(message, 'row')}"
            remedy = "raise local_steps or batch_size, or take all rows (batch_size = 0)"
            raise self._below(site, "rows_per_message", asked, remedy)

    def check_rank(self, site: str, method: str, message: int, rank: int) -> None:
        """Raise `DataError` if a message of so many rows has a matrix whose rank can be as large.

        Rows up to the rank span a space that the matrix says, and a linear system can give them back.
        """
        if not self.solvable and 0 < message <= rank:
            asked = f"a message of {method} has {_count(message, 'row')} and a matrix of rank up to {rank}"
            remedy = f"take a smaller model or more than {rank} rows per message"
            raise self._below(site, "solvable", asked, remedy)

    def check_split(self, site: str, split: str, rows: int, per_class: Mapping[str, int] | None) -> None:
        """Check a split that is to be scored. per_class: rows by class, if a metric's sums say them.

        Raises:
            DataError: if it, or one of its classes, has fewer than `count` rows. An empty split is free.
        """
        if 0 < rows < self.count:
            raise self._below(site, "count", f"the {split} split has {_count(rows, 'row')}", "leave the split out")
        if per_class and min(per_class.values()) < self.count:
            asked = f"a metric counts a class with fewer than {self.count} rows in the {split} split"
            raise self._below(site, "count", asked, "leave the metric out (metric = 'accuracy')")

    def _step(self, site: str, rows: int) -> DataError:
        asked = f"a gradient step has {_count(rows, 'row')}"
        return self._below(site, "rows_per_step", asked, "raise batch_size, or take all rows (batch_size = 0)")

    def _below(self, site: str, field: str, asked: str, remedy: str) -> DataError:
        value = getattr(self, field)
        limit = f"{value:g}" if isinstance(value, float) else str(value).lower()
        return refused(site, f"floors.{field}", limit, asked, remedy)


def refused(site: str, field: str, limit: str, asked: str, remedy: str) -> DataError:
    """The refusal, in one line, as the hub gets it and the site's log has it."""
    return DataError(
        f"site '{site}' refuses: {field} = {limit}, but {asked}; {remedy}, or let the site's administrator change "
        f"{field} in site.toml"
    )


def is_refusal(site: str, error: str) -> bool:
    """Whether an error's text was made by `refused`."""
    return error.startswith(f"site '{site}' refuses: ")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
