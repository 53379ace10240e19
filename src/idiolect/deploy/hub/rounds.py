"""One run at a hub: join, begin, rounds with deadline and quorum, evaluations, and the end."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PyTree

from idiolect.core.errors import ConfigError, DataError, DivergedError
from idiolect.deploy.events import now
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.calls import Call, Counts, Roster, joined_of
from idiolect.deploy.hub.checkpoints import Checkpoints
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.guard import Guard, Past, RoundMessages, exploded, losses_of, too_many
from idiolect.deploy.hub.journal import (
    HubState,
    Participation,
    drop_before,
    exchanged,
    keep_before,
    met_of,
    round_to_ms,
)
from idiolect.deploy.hub.received import per_site
from idiolect.deploy.hub.scores import readable_scores
from idiolect.deploy.hub.server import HubServer, unseen_data
from idiolect.deploy.messages import Message, Vectors, size_of
from idiolect.deploy.study import Study
from idiolect.deploy.terms import Place, Terms
from idiolect.deploy.transport import QuorumError, Replies
from idiolect.deploy.trees import named
from idiolect.metrics.base import Metric
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.run.recording import Schedule
from idiolect.study.spec.experiment import Cell, Method

LOG = logging.getLogger("idiolect.hub")
DIVERGED = "diverged (NaN or infinity)"
"""Part of a site's error if training there has diverged."""
PAUSE = 1.0
"""Seconds before a round without quorum is called again."""

Evaluated = Callable[[int, list[ClientScores], dict[str, float], float], None]
"""Records an evaluation: (round, scores, diagnostics, seconds)."""


class HubRun:
    """One method, cell and seed at a hub.

    study: what the sites have approved; path: of its checkpoint; serving: called with the hub's side when all have
    joined; evaluated: called after each evaluation; has: whether a round's evaluation is recorded; rewound: called
    with the round to which the run has returned.
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
        rewound: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.cell, self.method, self.seed, self.run = cell, method, seed, run
        self.config, self.study, self.call = config, study, call
        self.path, self.participation = path, participation
        self.metrics, self.serving, self.evaluated, self.has = metrics, serving, evaluated, has
        self.rewound = rewound
        self.kind = config.agreed
        self.standing = HubState.load(path, run) or HubState()
        self.roster = Roster(config.patience, dict(self.standing.counts))
        self.lies = dict[str, str]()
        self._compiled = frozenset[str]()
        self.checkpoints = Checkpoints(path, run, config.guard.checkpoints)
        self.guard = Guard.of(config.guard, Past.of(self.standing.guard))
        self._changed = list[str]()

    def train(self) -> None:
        """Run what is missing.

        Raises `QuorumError` if too few sites answer, and `DivergedError` if the shared state or the models of most
        sites are no longer finite and no rollback is left that helps, see `_roll_back`.
        """
        self._join()
        self.server = self._server()
        self.serving(self.server)
        self._note_capped()
        shared = self._begin()
        splits = tuple(s for s in self.cell.splits if self.server.simulation.data.split(s).count)
        schedule = Schedule(self.cell.rounds, self.cell.eval_every, self.cell.tail, splits)
        self._evaluate(shared, schedule)
        while self.standing.round < schedule.rounds:
            try:
                shared = self._round(shared)
                self._evaluate(shared, schedule)
            except DivergedError as error:
                shared = self._roll_back(error)
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

    def _note_capped(self) -> None:
        """Log the sites whose rows count only in part."""
        for site, rows in self.server.rows.items():
            if rows < self.server.claimed[site]:
                cap = self.config.guard.weight_cap
                LOG.warning(
                    "%s: of the %d training rows of site '%s', %.0f count (guard.weight_cap = %g)",
                    *(self.run, self.server.claimed[site], site, rows, cap),
                )

    def _serving(self, counts: Mapping[str, Counts]) -> HubServer:
        return HubServer(
            self.cell, self.method, self.seed, unseen_data(self.kind, counts), self.config.guard.weight_cap
        )

    def _request(self, task: str, site: str, **more: Any) -> Request:
        """A call of a site: what every call of the run says, and more."""
        if site in self.roster.counts and hasattr(self, "server"):
            number = self.roster.number(site)
            more["place"] = Place(
                id=number,
                clients=len(self.roster.counts),
                samples=self.server.samples,
                cohort=self.server.simulation.sampling.size,
                neighbours=self._neighbours(number),
            )
            more["used"] = self.standing.used.get(site, -1)
            more["good"] = tuple(sorted({used.get(site, -1) for used in self.standing.good.values()}))
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
        """The sites of the run that have not left, and claim no more rows than they may."""
        return [site for site in self.config.present if site in self.roster.counts and site not in self.lies]

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
                why = too_many(joined.samples, self.config.guard)
                if why:
                    # It keeps its place, as the study that the others have approved names so many clients.
                    missing[site] = self.lies[site] = self.standing.out[site] = why
                    self.roster.counts.setdefault(site, {split: min(n, 1) for split, n in joined.samples.items()})
                    continue
                self.roster.join(site, joined.samples)
                self._note_rows(site, joined.rows)
            except DataError as error:
                missing[site] = str(error)
        strangers = [site for site in wanted if site not in self.roster.counts and site not in self.lies]
        if (strangers or not self.roster.counts) and not self.standing.counts:
            reasons = "; ".join(f"{site}: {missing.get(site, 'no answer')}" for site in strangers)
            raise QuorumError(
                f"{self.run}: not all sites have joined ({reasons}); start them, or take them out of the hub"
            )
        usable = [site for site in self.roster.counts if site not in self.lies]
        Replies(dict.fromkeys(usable, Message()), missing).require(
            self.config.needed(len(wanted)), f"{self.run}: joining"
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
        self.standing.good = {r: used for r, used in self.standing.good.items() if self.checkpoints.has(r)}
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
        self.standing.vectors, self.standing.guard = named(shared), self.guard.past.to_dict()
        self.standing.save(self.path, self.run)

    def _round(self, shared: PyTree) -> PyTree:
        """One round, called again while it has no quorum; the checkpoint is durable before it returns."""
        round, start, began = self.standing.round, now(), time.perf_counter()
        cohort = self.server.cohort(round)
        names = [self.roster.names[client] for client in cohort]
        alone = self.server.neighbours is None
        views = self.server.views(shared, cohort) if alone else {client: dict[str, Any]() for client in cohort}
        out = self.standing.out | dict.fromkeys(self.config.left, "has left") | self.call.out()
        here = [site for site in names if site not in out]
        gone = {site: out[site] for site in names if site in out}
        strangers = {site: why for site, why in self.refused.items() if site not in self.roster.counts}
        attempt = 0
        while True:
            asked = self.roster.asked(here, round)
            sent = {site: views[self.roster.number(site)] for site in asked}
            requests = {site: self._request("round", site) for site in asked}
            got = self.call(requests, sent, round=round, deadline=self._deadline("round"), most=self.server.most)
            messages, refused, received = self._read(got, sent, alone)
            skipped = {
                site: "silent too often; called again in every tenth round" for site in here if site not in asked
            }
            missing = {**gone, **skipped, **strangers, **got.missing, **refused}
            self.roster.heard([s for s in got.replies if s not in refused], got.missing)
            self._check_diverged(got.missing, asked, round)
            if len(messages) >= self.config.needed(len(here)) or not here:
                break
            attempt += 1
            if attempt == self.config.tries:
                usable = {site: answer for site, answer in got.replies.items() if site not in refused}
                Replies(usable, missing).require(self.config.needed(len(here)), f"{self.run}, round {round + 1}")
            time.sleep(PAUSE)
        self.guard.note(received)
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
                "start": start,
                "end": now(),
                "cohort": names,
                "answered": answered,
                "missing": missing,
                "sites": per_site(sent, got),
                "refused": {**{site: why for site, why in self.lies.items() if site in missing}, **refused},
                "apart": dict(received.apart),
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

    def _read(
        self, got: Replies, sent: Mapping[str, Vectors], alone: bool
    ) -> tuple[dict[int, PyTree], dict[str, str], RoundMessages]:
        """(the messages by client number, why some are refused, what the guard has measured)."""
        if not alone:  # the hub sees no message
            numbers = sorted(self.roster.number(site) for site in got.replies)
            return dict.fromkeys(numbers), {}, RoundMessages({}, {}, {}, {})
        fitting, refused, checked = dict[str, Vectors](), dict[str, str](), dict[str, PyTree]()
        for site, reply in sorted(got.replies.items(), key=lambda pair: self.roster.number(pair[0])):
            try:
                checked[site] = self.server.check(site, reply.vectors)
            except DataError as error:
                refused[site] = str(error)
            else:
                fitting[site] = reply.vectors
        received = self.guard.judge(self.server.rows, sent, fitting)
        messages = {
            self.roster.number(site): checked[site] if vectors is fitting[site] else self.server.check(site, vectors)
            for site, vectors in received.messages.items()
        }
        return messages, {**refused, **received.refused}, received

    def _check_diverged(self, missing: Mapping[str, str], asked: Sequence[str], round: int) -> None:
        """Raise `DivergedError` if more than half of the sites that were called report that training diverged."""
        told = sorted(site for site in asked if DIVERGED in missing.get(site, ""))
        if 2 * len(told) > len(asked):
            raise DivergedError(
                f"{self.run}: training diverged at {len(told)} of {len(asked)} sites in round {round + 1} "
                f"({', '.join(told)}); lower the learning rates",
                round=round,
                client=None,
                stage="local training",
            )

    def _roll_back(self, error: DivergedError) -> PyTree:
        """Return to the newest good checkpoint without the site that stands apart since then; record why.

        Raises the error again if no site stands apart, no checkpoint is left, or the run was rolled back too often.
        """
        state, suspects = self.standing, self.guard.suspects(self.standing.out)
        if not suspects or not state.good or state.rollbacks >= self.config.guard.rollbacks:
            raise error
        if max(state.good) == state.returned and len(state.good) > 1:  # it has led here twice
            del state.good[state.returned]
        to, failed = max(state.good), state.round
        back = self.checkpoints.load(to)
        why = f"was left out by a rollback to round {to}: its messages differed most before {error}"
        line = {"run": self.run, "job": self.call.job, "round": failed, "rollback": to, "without": suspects}
        number = state.rollbacks + 1
        # First the line, then the checkpoint: a hub that dies in between finds the same again.
        self.participation.write({**line, "number": number, "most": self.config.guard.rollbacks, "why": str(error)})
        LOG.warning("%s: rolled back from round %d to %d without %s: %s", self.run, failed, to, suspects[0], error)
        good, out = state.good, {**state.out, **dict.fromkeys(suspects, why)}
        self.standing = HubState(to, back.used, dict(state.counts), back.seconds, back.vectors, dict(state.rows))
        self.standing.guard = back.guard
        self.standing.losses, self.standing.good = state.losses, good
        self.standing.out, self.standing.rollbacks, self.standing.returned = out, number, to
        self.guard.past = Past.of(back.guard)
        shared = self.server.restore(back.vectors)
        self._keep(shared)
        drop_before(self.path, to)
        self.rewound(to)
        return shared

    def _good(self, shared: PyTree) -> None:
        """Keep this state as a good checkpoint."""
        self.guard.past.distances.clear()
        state = self.standing
        state.good[state.round] = dict(state.used)
        for old in sorted(state.good)[: -self.config.guard.checkpoints]:
            del state.good[old]
        self._keep(shared)
        self.checkpoints.save(state)

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
        _note_withheld(got)
        self._check_scores(got, schedule.splits)
        self._good(shared)
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
            {number: self.roster.counts[self.roster.names[number]] for number in numbered},
            refused=self._note_refused_scores,
        )
        self.evaluated(round, scores, self.server.diagnostics(shared), self.standing.seconds)

    def _note_refused_scores(self, client: int, why: str) -> None:
        """Log that a site's scores of the last evaluation do not count."""
        LOG.warning(
            "%s, after round %d: the scores of site '%s' do not count: %.300s",
            *(self.run, self.standing.round, self.roster.names[client], why),
        )

    def _check_scores(self, got: Replies, splits: Sequence[str]) -> None:
        """Raise `DivergedError` if the losses of most sites have exploded and a rollback may help."""
        judged = [site for site in [*got.replies, *got.missing] if site not in self.standing.out]
        order = sorted(splits, key=lambda split: split != "train")
        losses = {site: losses_of(got.replies[site], order) for site in judged if site in got.replies}
        losses |= {site: {"": np.inf} for site in judged if DIVERGED in got.missing.get(site, "")}
        first = self.standing.losses
        for site, by_split in losses.items():
            if site not in first and all(np.isfinite(loss) for loss in by_split.values()):
                first[site] = {**by_split, "": 1.0}
        if not exploded(first, losses, self.config.guard.explode):
            return
        error = DivergedError(
            f"{self.run}: the losses of most sites exploded before the evaluation of round {self.standing.round}",
            round=self.standing.round,
            client=None,
            stage="evaluation",
        )
        may = self.standing.good and self.standing.rollbacks < self.config.guard.rollbacks
        if may and self.guard.suspects(self.standing.out):
            raise error
        LOG.warning("%s; no site stands apart, or no rollback is left, so the run continues", error)

    def _finish(self, shared: PyTree) -> None:
        """Let every site keep its last state and write its models."""
        self._call_all("finish", shared)


def _note_withheld(got: Replies) -> None:
    """Log the splits without scores because of a floor of the site, and why."""
    for reply in got.replies.values():
        withheld = reply.header.get("withheld")
        for why in withheld.values() if isinstance(withheld, dict) else ():
            LOG.warning("%.300s", " ".join(str(why).split()))
