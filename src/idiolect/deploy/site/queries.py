"""A site's answers to approved queries: the scores of a model, and the description of its columns.

Every answer is a linear question about rows, and a hub chooses the model. What bounds it: one approval per model, few
models and few answers (`Floors.models`, `Floors.answers`), no statistic of few rows (`Floors.count`), and no
answers that differ. If rows have changed since an answer, a second one would say what the changed rows hold. So the
site keeps a digest of what it has answered, and refuses another answer to the same question until its administrator
says that this may be known ('idiolect site approve' with --changed-rows).

Nothing is trained, and no state is kept but the log of all that is sent and the ledger. This module imports no JAX.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from idiolect.core.errors import DataError
from idiolect.deploy.headers import Columns, Histograms, Request, Scored
from idiolect.deploy.messages import Message, Vectors, digest_of_values
from idiolect.deploy.query import DescribeStudy, ScoreStudy
from idiolect.deploy.site.approvals import ASK, QUERIES, SHORT, Consent
from idiolect.deploy.site.config import SiteConfig

MODEL = "model"
"""The name of the vector with a model file's bytes."""
CHANGED = (
    "the hub has an answer that differs, and the difference says what the changed rows or settings hold; if it may "
    "know that, approve the query again with 'idiolect site approve' and --changed-rows"
)


class Queries:
    """Answers queries. ask: lets the trainer compute, see `child.Handle.call`, (message, seconds) -> answer."""

    def __init__(self, config: SiteConfig, consent: Consent, ask: Callable[[Message, float], Message]) -> None:
        self.config, self.consent, self.ask = config, consent, ask
        self.site, self.floors = config.name, config.floors

    def score(self, request: Request, vectors: Vectors, seconds: float) -> Message:
        """Sums of the scores of the query's model. Raises `DataError` if the site does not allow it."""
        query = self.consent.query(request)
        if not isinstance(query, ScoreStudy):
            raise DataError("this query has no model")
        if not self.config.allow.evaluation:
            raise DataError(f"site '{self.site}' refuses: sums of scores may not leave it (allow.evaluation)")
        given = vectors.get(MODEL)
        sent = hashlib.sha256(b"" if given is None else given.tobytes()).hexdigest()
        if sent != query.model.sha256 or {*vectors} != {MODEL}:
            raise self.consent.refuse(query, "model.sha256", query.model.sha256[:SHORT], sent[:SHORT], ASK)
        self._count(request, query)
        if not self.consent.ledger.asked(QUERIES, "", "models", query.model.sha256, self.floors.models):
            self.floors.check_models(self.site, self.floors.models)
        answer = self.ask(Request(task="score", query=query.model_dump(mode="json")).message(vectors), seconds)
        if not answer.error:
            scored = Scored.of(answer, "the trainer's answer")
            for split, one in scored.scores.get(MODEL, {}).items():
                self._pin(query, query.model.sha256, split, [one.count, one.loss])
        return answer

    def describe(self, request: Request, seconds: float) -> Message:
        """The columns of the training rows. Raises `DataError` if the site does not allow it."""
        query = self._description(request)
        self._count(request, query)
        answer = self._ask_columns("describe", query, request, seconds)
        if answer.error:
            return answer
        summary = Columns.of(answer, "the trainer's answer").summary
        self._pin(query, "describe", "columns", [query.table, summary])
        return Columns(summary=summary, may_show=self.config.allow.per_site).message()

    def histograms(self, request: Request, seconds: float) -> Message:
        """The histograms of the columns, on one grid per column: another grid is refused."""
        query = self._description(request)
        self._count(request, query)
        for name, grid in request.grids.items():
            self._pin(query, "describe", f"grid of {name}", grid.model_dump(mode="json"))
        answer = self._ask_columns("histograms", query, request, seconds)
        if not answer.error:
            for name, cells in Histograms.of(answer, "the trainer's answer").cells.items():
                self._pin(query, "describe", f"histogram of {name}", cells)
        return answer

    def _description(self, request: Request) -> DescribeStudy:
        query = self.consent.query(request)
        if not isinstance(query, DescribeStudy):
            raise DataError("this query describes no table")
        if not self.config.allow.summaries:
            raise DataError(f"site '{self.site}' refuses: sums of its columns may not leave it (allow.summaries)")
        return query

    def _ask_columns(self, task: str, query: DescribeStudy, request: Request, seconds: float) -> Message:
        return self.ask(Request(task=task, table=query.table, grids=request.grids).message(), seconds)

    def _count(self, request: Request, query: ScoreStudy | DescribeStudy) -> None:
        """Note an answer, durably, before it is computed. Raises `DataError` beyond the floors or the query."""
        self.floors.check_query(self.site, query)
        call = f"{request.job}.{request.call}"
        if not self.consent.ledger.asked(query.id, "", request.task, call, query.answers):
            raise self.consent.refuse(query, "answers", str(query.answers), f"answer {query.answers + 1}", ASK)

    def _pin(self, query: ScoreStudy | DescribeStudy, about: str, field: str, value: Any) -> None:
        """Keep the first value of what is answered. Raises `RefusalError` if it was another one.

        The refusal does not say the digest: the hub could guess rows until one fits.
        """
        digest = digest_of_values(value)
        if self.consent.ledger.pin(QUERIES, about, field, digest) != digest:
            raise self.consent.refuse(query, field, "the first answer", "another one", CHANGED)
