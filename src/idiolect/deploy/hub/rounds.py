"""One run at a hub: join, begin, rounds with deadline and quorum, evaluations, and the end."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from jaxtyping import PyTree

from idiolect.core.errors import ConfigError, DataError
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.calls import Call, Counts, Roster, joined_of
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import HubState, Participation, exchanged, keep_before, met_of, round_to_ms
from idiolect.deploy.hub.scores import readable_scores
from idiolect.deploy.hub.server import HubServer, unseen_data
from idiolect.deploy.messages import size_of
from idiolect.deploy.study import Study
from idiolect.deploy.terms import Place, Terms
from idiolect.deploy.transport import QuorumError, Replies
from idiolect.deploy.trees import named
from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.run.recording import Schedule
from idiolect.study.spec.experiment import Cell, Method

PAUSE = 1.0
"""Seconds before a round without quorum is called again."""

Evaluated = Callable[[int, list[ClientScores], dict[str, float], float], None]
"""Records an evaluation: (round, scores, diagnostics, seconds)."""


class HubRun:
    """One method, cell and seed at a hub.

    study: what the sites have approved; path: of its checkpoint; serving: called with the hub's side when all have
    joined; evaluated: called after each evaluation; has: whether a round's evaluation is recorded.
    """

    def __init__(
        self,
        cell: Cell,
        method: Method,
        seed: int,
        run: str,
        *,
        config: HubConfig,
        study: Study,
        call: Call,
        path: Path,
        participation: Participation,
        metrics: Sequence[Metric],
        serving: Callable[[HubServer], object],
        evaluated: Evaluated,
        has: Callable[[int], bool],
    ) -> None:
        self.cell, self.method, self.seed, self.run = cell, method, seed, run
        self.config, self.study, self.call = config, study, call
        self.path, self.participation = path, participation
        self.metrics, self.serving, self.evaluated, self.has = metrics, serving, evaluated, has
        self.kind = config.agreed
        self.standing = HubState.load(path, run) or HubState()
        self.roster = Roster(config.patience, dict(self.standing.counts))
        self._compiled = frozenset[str]()
        self._changed = list[str]()

    def train(self) -> None:
        """Run what is missing. Raises `QuorumError` if too few sites answer, `DivergedError` at NaN or infinity."""
        self._join()
        self.server = self._server()
        self.serving(self.server)
        shared = self._begin()
        splits = tuple(s for s in self.cell.splits if self.server.simulation.data.split(s).count)
        schedule = Schedule(self.cell.rounds, self.cell.eval_every, self.cell.tail, splits)
        self._evaluate(shared, schedule)
        while self.standing.round < schedule.rounds:
            shared = self._round(shared)
            self._evaluate(shared, schedule)
        self._finish(shared)

    def _server(self) -> HubServer:
        """The hub's side, with all sites that take part; a run that has begun refuses new ones if it has no place."""
        known = self.standing.counts
        if not known or {*known} == {*self.roster.counts}:
            return self._serving(self.roster.counts)
        before = self._serving(known)
        try:
            after = self._serving(self.roster.counts)
        except ConfigError:  # a mixture or a graph with a number for each site
            after = before
        if after is not before and after.alike(before):
            return after
        for site in [site for site in self.roster.counts if site not in known]:
            del self.roster.counts[site]
            self.refused[site] = (
                f"{self.method.name} keeps a row for each site, so a run that has begun takes no new one; it takes "
                "part in the next run"
            )
        return before

    def _serving(self, counts: Mapping[str, Counts]) -> HubServer:
        return HubServer(self.cell, self.method, self.seed, unseen_data(self.kind, counts))

    def _request(self, task: str, site: str, **more: Any) -> Request:
        """A call of a site: what every call of the run says, and more."""
        if site in self.roster.counts and hasattr(self, "server"):
            number, sim = self.roster.number(site), self.server.simulation
            more["place"] = Place(
                id=number,
                clients=len(self.roster.counts),
                samples=int(sim.training.train.sizes.sum()),
                cohort=sim.sampling.size,
                neighbours=self._neighbours(number),
            )
            more["used"] = self.standing.used.get(site, -1)
        if start := self.config.starts.get(self.run, 0):
            more["start"] = start
        return Request(task=task, run=self.run, terms=self.terms, **more)

    def _neighbours(self, number: int) -> dict[str, float] | None:
        if self.server.neighbours is None:
            return None
        return {self.roster.names[other]: weight for other, weight in self.server.neighbours[number].items()}

    @cached_property
    def terms(self) -> Terms:
        """The run's terms, see `terms.Terms`."""
        return self.study.terms(self.run, self.kind.to_dict())

    def _members(self) -> list[str]:
        """The sites of the run that have not left."""
        return [site for site in self.config.present if site in self.roster.counts]

    def _join(self) -> None:
        """Learn every site's counts; a site that is absent but has joined before keeps its own.

        A run begins with all sites; one that has begun continues without a new site that does not respond.
        """
        wanted = self.config.present
        got = self.call(
            {site: self._request("join", site) for site in wanted}, round=0, deadline=self.config.starting
        )
        missing = dict(got.missing)
        for site in wanted:
            if site not in got.replies:
                continue
            try:
                joined = joined_of(got.replies[site])
                self.roster.join(site, joined.samples)
                self._note_rows(site, joined.rows)
            except DataError as error:
                missing[site] = str(error)
        strangers = [site for site in wanted if site not in self.roster.counts]
        if strangers and not self.standing.counts:
            reasons = "; ".join(f"{site}: {missing.get(site, 'no answer')}" for site in strangers)
            raise QuorumError(
                f"{self.run}: not all sites have joined ({reasons}); start them, or take them out of the hub"
            )
        # Numbers stay: the sites of a run that has begun keep their places, whoever has joined or left since.
        known = [*self.standing.counts, *(site for site in wanted if site not in self.standing.counts)]
        self.roster.counts = {site: self.roster.counts[site] for site in known if site in self.roster.counts}
        self.refused = missing
        self.roster.heard((), missing)

    def _note_rows(self, site: str, rows: str) -> None:
        """Note the digest of a site's training rows; one that has changed was accepted by its administrator."""
        if self.standing.rows.get(site, rows) != rows:
            self._changed.append(site)
        self.standing.rows[site] = rows

    def _begin(self) -> PyTree:
        """Give every site the initial model; returns the shared state, of the checkpoint if there is one."""
        first = named({"params": self.server.params})
        wanted = [site for site in self._members() if site not in self.refused]
        got = self.call(
            {site: self._request("begin", site) for site in wanted},
            dict.fromkeys(wanted, first),
            round=0,
            deadline=self.config.starting,
        )
        self.refused |= got.missing
        self.roster.heard(got.replies, got.missing)
        begun = self.standing.counts != {}
        if not begun:
            got.require(self.config.needed(len(wanted)), f"{self.run}: beginning")
        shared = self.server.restore(self.standing.vectors) if begun else self.server.first()
        if self.standing.counts != self.roster.counts:
            if begun:
                keep_before(self.path, self.standing.round)
            self.standing.counts = dict(self.roster.counts)
            self._keep(shared)
        return shared

    def _keep(self, shared: PyTree) -> None:
        self.standing.vectors = named(shared)
        self.standing.save(self.path, self.run)

    def _round(self, shared: PyTree) -> PyTree:
        """One round, called again while it has no quorum; the checkpoint is durable before it returns."""
        round, began = self.standing.round, time.perf_counter()
        cohort = self.server.cohort(round)
        names = [self.roster.names[client] for client in cohort]
        alone = self.server.neighbours is None
        views = self.server.views(shared, cohort) if alone else {client: dict[str, Any]() for client in cohort}
        here = [site for site in names if site not in self.config.left]
        gone = {site: "has left" for site in names if site not in here}
        strangers = {site: why for site, why in self.refused.items() if site not in self.roster.counts}
        attempt = 0
        while True:
            asked = self.roster.asked(here, round)
            sent = {site: views[self.roster.number(site)] for site in asked}
            requests = {site: self._request("round", site) for site in asked}
            got = self.call(requests, sent, round=round, deadline=self._deadline("round"))
            messages, refused = self._read(got, alone)
            skipped = {
                site: "silent too often; called again in every tenth round" for site in here if site not in asked
            }
            missing = {**gone, **skipped, **strangers, **got.missing, **refused}
            self.roster.heard([s for s in got.replies if s not in refused], got.missing)
            if len(messages) >= self.config.needed(len(here)) or not here:
                break
            attempt += 1
            if attempt == self.config.tries:
                usable = {site: answer for site, answer in got.replies.items() if site not in refused}
                Replies(usable, missing).require(self.config.needed(len(here)), f"{self.run}, round {round + 1}")
            time.sleep(PAUSE)
        after = self.server.aggregate(shared, cohort, messages) if alone else shared
        answered = [self.roster.names[client] for client in messages]
        self.standing.used |= dict.fromkeys(answered, round)
        self.standing.round, seconds = round + 1, time.perf_counter() - began
        self.standing.seconds += seconds
        met = {site: met_of(reply) for site, reply in got.replies.items()}
        down, up = exchanged(met.values())
        # First the line, then the checkpoint: a hub that dies in between repeats the round, and its last line counts.
        self.participation.write(
            {
                "run": self.run,
                "job": self.call.job,
                "round": round,
                "cohort": names,
                "answered": answered,
                "missing": missing,
                "neighbours_missing": {site: one.missing for site, one in met.items() if one.missing},
                **({"rows_changed": self._changed} if self._changed else {}),
                "seconds": round_to_ms(seconds),
                "asked": len(got.sent),
                "replies": len(got.replies),
                "bytes_down": sum(size_of(sent[site]) for site in got.sent) + down,
                "bytes_up": sum(reply.size for reply in got.replies.values()) + up,
            }
        )
        self._keep(after)
        self._changed = []
        return after

    def _deadline(self, task: str) -> float:
        """A job's first call of a task compiles at every site."""
        first, self._compiled = task not in self._compiled, self._compiled | {task}
        return max(self.config.deadline, self.config.starting) if first else self.config.deadline

    def _read(self, got: Replies, alone: bool) -> tuple[dict[int, PyTree], dict[str, str]]:
        """(the messages by client number, why some are refused)."""
        messages, refused = dict[int, PyTree](), dict[str, str]()
        for site, reply in got.replies.items():
            try:
                message = self.server.check(site, reply.vectors) if alone else None
            except DataError as error:
                refused[site] = str(error)
            else:
                messages[self.roster.number(site)] = message
        return dict(sorted(messages.items())), refused

    def _call_all(self, task: str, shared: PyTree) -> Replies:
        """Call every site with what it receives of the shared state."""
        sites = self.roster.asked(self._members(), self.standing.round if task == "evaluate" else 0)
        numbers = [self.roster.number(site) for site in sites]
        views = self.server.views(shared, numbers) if self.server.neighbours is None else {}
        requests = {site: self._request(task, site, names=tuple(self.server.offered)) for site in sites}
        sent = {site: views.get(number, {}) for site, number in zip(sites, numbers, strict=True)}
        return self.call(requests, sent, round=self.standing.round, deadline=self._deadline(task))

    def _evaluate(self, shared: PyTree, schedule: Schedule) -> None:
        """Let every site score its models, if this round is due and not recorded."""
        round = self.standing.round
        if not schedule.is_due(round) or self.has(round):
            return
        got = self._call_all("evaluate", shared)
        self.roster.heard(got.replies, got.missing)
        data = self.server.simulation.data
        numbered = {self.roster.number(site): answer for site, answer in got.replies.items()}
        scores = readable_scores(
            numbered,
            data.num_clients,
            self.server.offered,
            schedule.splits,
            self.metrics,
            data.num_outputs,
            data.label_scale,
        )
        self.evaluated(round, scores, self.server.diagnostics(shared), self.standing.seconds)

    def _finish(self, shared: PyTree) -> None:
        """Let every site keep its last state and write its models."""
        self._call_all("finish", shared)
