"""A site: answers the hub's calls and its neighbours', guards its private state, and notes all that leaves.

This module imports no JAX: it runs in the process that talks to the network, and its trainer in a child.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.core.errors import DataError, IdiolectError, StoreError
from idiolect.deploy.events import EventLog
from idiolect.deploy.headers import Begun, Finished, Greeting, Joined, Met, Request, Scored
from idiolect.deploy.messages import Message, Vectors, digest_of_request, part_of, under
from idiolect.deploy.schema.summary import TableSummary, listing
from idiolect.deploy.site.approvals import Consent
from idiolect.deploy.site.child import Child, Handle
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.floors import Floors, is_refusal
from idiolect.deploy.site.monitor import answered
from idiolect.deploy.site.neighbours import fitting
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.site.queries import Queries
from idiolect.deploy.site.refusals import RefusalLog
from idiolect.deploy.site.rows import Rows
from idiolect.deploy.site.state import MODELS, Fence, RunState, has_left, run_folder, state_of, study_folder
from idiolect.deploy.terms import PROTOCOL, TRANSPORT, VERSION, Place, Terms
from idiolect.deploy.transport import PeerTransport

WAITING = 0.6
"""The share of a round's time that is spent on waiting for neighbours."""


class Site:
    """One site. folder: holds its private states, log and models; trainer: computes, see `child.Child`.

    expires: until when its certificate is valid, as text; "" without one. Each answer is an event in `events.jsonl`.
    """

    def __init__(self, folder: Path, config: SiteConfig, trainer: Handle) -> None:
        self.folder, self.config, self.trainer = folder, config, trainer
        self.outbox, self.refusals = Outbox(folder / "sent.jsonl"), RefusalLog()
        self.consent, self._passed = Consent(folder, config.name, config.floors), set[str]()
        self.queries = Queries(config, self.consent, trainer.call)
        self.events, self.expires = EventLog(folder, "site"), ""
        self._revoked = frozenset[str]()
        self._tasks: dict[str, Callable[[_Call], Message]] = {
            "hello": self._hello,
            "summary": self._summary,
            "join": self._join,
            "begin": self._begin,
            "round": self._round,
            "evaluate": self._evaluate,
            "finish": self._finish,
            "score": lambda call: self.queries.score(call.request, call.message.vectors, call.left),
            "describe": lambda call: self.queries.describe(call.request, call.left),
            "histograms": lambda call: self.queries.histograms(call.request, call.left),
        }

    def answer(self, message: Message, caller: str, peer: PeerTransport) -> Message:
        """Answer one call of the hub; an error is an answer with `error`. caller: as the transport knows it."""
        task, asked, began = str(message.header.get("task")), dict[str, Any](), time.monotonic()
        try:
            call = _Call(message, peer, self.config.allow.seconds)
            self.config.allow.check_size(message, f"the hub's message ('{task}')")
            if call.request.terms is not None:  # also those that are refused below
                call.recorded = asked["terms"] = self.outbox.record(call.terms.model_dump(mode="json"))
                asked |= {"study": call.terms.study} if call.terms.study else {}
            if task not in self._tasks:
                raise DataError(f"task '{task}' is not known here")
            self._check(call)
            answer = self._tasks[task](call)
            if not answer.error:
                self.consent.keep(call.request)  # fails, too, if the study was revoked in the meantime
                self.config.allow.check_size(answer, f"the answer ('{task}')")
        except IdiolectError as error:
            answer = Message({"error": str(error)})
        except OSError as error:
            answer = Message({"error": f"the site cannot work: {error.strerror or type(error).__name__}"})
        answer = self._without_paths(answer)
        self._note_refusals(answer)
        try:
            about = {key: message.header[key] for key in ("run", "round", "job", "call") if key in message.header}
            about |= asked
            if "summary" in answer.header:
                about["listing"] = listing(TableSummary.from_dict(answer.header["summary"]))
            self.outbox.write(caller, task, answer, **about)
            answered(self.events, caller, message, answer, time.monotonic() - began)
        except (StoreError, DataError) as error:
            unsent = self._without_paths(Message({"error": str(error)}))
            answered(self.events, caller, message, unsent, time.monotonic() - began)
            return unsent
        return answer

    def _note_refusals(self, answer: Message) -> None:
        """Write what was refused, as no approved study has it or below a floor, to the site's log."""
        withheld = answer.header.get("withheld")
        for line in (answer.error, *(withheld.values() if isinstance(withheld, dict) else ())):
            if is_refusal(self.config.name, line):
                self.refusals.note(line)

    def _without_paths(self, answer: Message) -> Message:
        """An error names files as the site's folder has them: where that folder lies is nobody else's business."""
        if not answer.error:
            return answer
        return Message({**answer.header, "error": answer.error.replace(f"{self.folder.absolute()}{os.sep}", "")})

    def close(self) -> None:
        """End the trainer, and close the log."""
        self.trainer.close()
        self.events.close()

    def _hello(self, call: "_Call") -> Message:
        self._revoked = frozenset(call.request.revoked)
        about = {"expires": self.expires} if self.expires else {}
        return Greeting(name=self.config.name, protocol=PROTOCOL, version=VERSION, **about).message()

    def _summary(self, call: "_Call") -> Message:
        """Sums and names of the site's columns, to agree on a schema; the log lists them in words."""
        if not self.config.allow.summaries:
            raise DataError(
                "sums of its columns may not leave the site: allow.summaries in its site.toml, or a schema's file"
            )
        return self._ask(call, "summary")

    def _join(self, call: "_Call") -> Message:
        """Whether the data are of the run's kind, the numbers of samples, and the digest of the training rows.

        Other training rows than those with which the site joined the study are refused.
        """
        folder, study = self._fence(call).folder, call.terms.study
        with self._fence(call).enter(call.ticket, call.left):
            rows = Rows.load(folder)
            rows.save(folder)  # two runs of a study that join at once have the same salt
        if rows.digest and rows.kind is not None and rows.kind != call.terms.kind:  # the sites have agreed anew
            before = call.terms.model_copy(update={"kind": rows.kind})
            known = self._ask(call, "join", salt=rows.salt, terms=before)
            if known.error:
                return known
            rows.check(Joined.of(known, "the trainer's answer").rows, study)
            rows = Rows(rows.salt)
        answer = self._ask(call, "join", salt=rows.salt)
        if answer.error:
            return answer
        digest = Joined.of(answer, "the trainer's answer").rows
        rows.check(digest, study)
        with self._fence(call).enter(call.ticket, call.left):
            Rows(rows.salt, digest, dict(call.terms.kind)).save(folder)
        return answer

    def _begin(self, call: "_Call") -> Message:
        """Make the private state of a run that has none here."""
        fence, state = self._fence(call), self._state(call)
        with fence.enter(call.ticket, call.left):
            self._expect(call)
            if state.begun:
                return Begun(begun=False).message()
            if call.request.start:  # the hub has forgotten a site: what was made with its help goes
                shutil.rmtree(run_folder(self.folder / MODELS, call.terms), ignore_errors=True)
                if call.request.used >= 0 and state.go_back(call.request.used):
                    return Begun(begun=False).message()
        first = self._ask(call, "begin", call.message.vectors)
        if first.error:
            return first
        with fence.enter(call.ticket, call.left):
            state.begin(first.vectors)
        return Begun(begun=True).message()

    def _round(self, call: "_Call") -> Message:
        """One round: train, with neighbours exchange and mix, prepare the next private state, answer."""
        fence, state = self._fence(call), self._state(call)
        request, clients = digest_of_request(call.message, TRANSPORT), call.place.clients
        with fence.enter(call.ticket, call.left):
            self._expect(call)
            settled = state.settle(call.request.used, call.request.good)
            state.keep_before(settled, clients)
            kept = state_of(settled)
            known = state.answered(call.request.round, request) if call.place.neighbours is None else None
        if known is not None:
            return known
        # Among neighbours a retried round is trained again, from the same state with the same draws: they need the
        # message anew, and others may be missing than before.
        trained = self._ask(call, "local", {**kept, **under("view", call.message.vectors)})
        if trained.error:
            return trained
        self.consent.check_round(call.request, call.message.vectors, part_of("message", trained.vectors))
        answer, after = self._answer(trained) if call.place.neighbours is None else self._met(call, trained)
        if not answer.error:
            with fence.enter(call.ticket, call.left):
                state.prepare(call.request.round, request, after, answer, clients)
        return answer

    def _answer(self, trained: Message) -> tuple[Message, Vectors]:
        """(what the hub is sent, the state after the round): the method's message, and nothing of what is private."""
        return Message({}, part_of("message", trained.vectors)), under("private", trained.vectors)

    def _met(self, call: "_Call", trained: Message) -> tuple[Message, Vectors]:
        """Exchange with the neighbours and mix: (what the hub receives, the state after the round)."""
        place = call.place.neighbours or {}
        neighbours = {name: weight for name, weight in place.items() if name not in self._revoked}
        for name in neighbours:
            self.config.allow.check_neighbour(name)
        round = call.request.round
        letter = Message({"run": call.terms.run, "round": round}, part_of("message", trained.vectors))
        self.config.allow.check_size(letter, "the message to its neighbours")
        for name in neighbours:
            self.outbox.write(name, "exchange", letter, job=call.ticket[0], call=call.ticket[1], terms=call.recorded)
        begun = time.monotonic()
        deadline = call.left * WAITING
        got = call.peer.exchange(round, dict.fromkeys(neighbours, letter), deadline=deadline)
        seconds = time.monotonic() - begun
        moved = sum(reply.size for reply in got.replies.values()), letter.size * len(neighbours)
        within, beyond = dict[str, Message](), dict[str, str]()
        for name, reply in got.replies.items():
            try:
                self.floors.check_values(self.config.name, reply.vectors, f"the message of '{name}'")
            except DataError as error:
                beyond[name] = str(error)
            else:
                within[name] = reply
        replies, refused = fitting(within, letter.vectors)
        refused |= beyond
        out = {name: "its certificate was revoked" for name in place if name in self._revoked}
        weights = np.array([weight if name in replies else 0.0 for name, weight in neighbours.items()], np.float32)
        nothing = Message({}, {name: np.zeros_like(vector) for name, vector in letter.vectors.items()})
        rows = [replies.get(name, nothing).vectors for name in neighbours]
        others = {_place("others", leaf): np.stack([row[leaf] for row in rows]) for leaf in letter.vectors if rows}
        if not rows:  # a site without neighbours keeps its own
            others = {_place("others", leaf): vector[None] * 0 for leaf, vector in letter.vectors.items()}
            weights = np.zeros(1, np.float32)
        vectors = {**under("message", trained.vectors), **others, "weights": weights}
        mixed = self._ask(call, "mix", vectors)
        met = Met(exchange_seconds=seconds, exchanged=moved, missing={**got.missing, **refused, **out})
        return (mixed, {}) if mixed.error else (met.message(), {**mixed.vectors, **under("private", trained.vectors)})

    def _evaluate(self, call: "_Call") -> Message:
        """Sums of the scores of the site's models, or nothing if the site does not let them leave."""
        kept = self._kept(call)
        if not self.config.allow.evaluation:
            return Scored(scores={}).message()
        view = under("view", call.message.vectors)
        scored = self._ask(call, "evaluate", {**kept, **view})
        if not scored.error:
            self.consent.check_evaluation(call.request, view)
        return scored

    def _finish(self, call: "_Call") -> Message:
        """The end of a run: the last state is kept, and the site's models are written as files."""
        kept = self._kept(call)
        call.peer.expect("", ())
        view = under("view", call.message.vectors)
        made = self._ask(call, "models", {**kept, **view})
        return made if made.error else Finished(finished=True).message()

    def _expect(self, call: "_Call") -> None:
        """Take messages from the run's neighbours, as far as they are allowed here, and from nobody else."""
        allowed = self.config.allow.neighbours
        near = [name for name in call.place.neighbours or {} if name not in self._revoked]
        call.peer.expect(call.terms.run, [name for name in near if "all" in allowed or name in allowed])

    def _kept(self, call: "_Call") -> Vectors:
        with self._fence(call).enter(call.ticket, call.left):
            return state_of(self._state(call).settle(call.request.used, call.request.good))

    def _fence(self, call: "_Call") -> Fence:
        """The fence of the call's study, in the folder of its private states."""
        return Fence(study_folder(self.folder, call.terms.study))

    def _state(self, call: "_Call") -> RunState:
        """The private state of the call's run."""
        return RunState(self._fence(call).folder, call.terms.run, call.request.start)

    def _check(self, call: "_Call") -> None:
        """Everything that a call must keep before the site computes or changes anything, the cheapest first.

        Raises `DataError` for a call that no approved study says, that site.toml does not allow, of a study that the
        site has left, or below a floor. The fence follows in each task.
        """
        name, request = self.config.name, call.request
        study = self.consent.check(request)
        if request.terms is not None:
            self.config.allow.check_terms(request.terms)
            if has_left(self._fence(call).folder):
                raise DataError(f"site '{name}' has left study '{request.terms.study}' for good")
        if study is not None and study.digest not in self._passed:
            self.floors.check_study(name, study)
            self._passed.add(study.digest)
        if request.place is not None:
            self.floors.check_place(name, request.place)
        self.floors.check_values(name, call.message.vectors, "the hub's message")

    @property
    def floors(self) -> Floors:
        """What must be behind all that leaves the site."""
        return self.config.floors

    def _ask(self, call: "_Call", task: str, vectors: Vectors | None = None, **more: Any) -> Message:
        """Let the trainer compute, with the rows with which the site has joined."""
        if call.request.terms is not None and task != "join":
            rows = Rows.load(self._fence(call).folder)
            more = {"salt": rows.salt, "rows": rows.digest, **more} if rows.digest else more
        return self.trainer.call(call.request.passed_on(task, **more).message(vectors), call.left)


class _Call:
    """One call of the hub, with its deadline. recorded: the hash of its terms in the log."""

    def __init__(self, message: Message, peer: PeerTransport, most: float) -> None:
        self.message, self.peer, self.recorded = message, peer, ""
        self.request = Request.of(message, "the hub's call")
        self.ticket = self.request.job, self.request.call
        given = self.request.seconds
        self._end = time.monotonic() + (most if given is None else min(given, most))

    @property
    def left(self) -> float:
        """Seconds until the hub continues without this answer."""
        return max(self._end - time.monotonic(), 0.0)

    @property
    def terms(self) -> Terms:
        """What is trained."""
        return self.request.its_terms

    @property
    def place(self) -> Place:
        """The site's place."""
        return self.request.its_place


def _place(part: str, leaf: str) -> str:
    """The full name of a leaf of a part; see `messages.part_of`."""
    return part if leaf == "value" else f"{part}/{leaf}"


def open_site(folder: Path) -> Site:
    """The site of a folder, as `idiolect site init` made it; its trainer starts at once.

    Raises `ConfigError` for a wrong configuration.
    """
    config = SiteConfig.load(folder)
    child = child_of(folder, config)
    child.start()
    return Site(folder, config, child)


def child_of(folder: Path, config: SiteConfig) -> Child:
    """The site's trainer in a process of its own, not yet started."""
    settings = {"folder": str(folder.absolute()), "data": config.data, "name": config.name}
    # Compiled programs are kept in the site's own folder, as all that it writes.
    environment = {"IDIOLECT_CACHE": str(folder.absolute() / "cache"), **config.environment}
    return Child({**settings, "floors": config.floors.model_dump(mode="json")}, environment)


class Inline:
    """A trainer in the same process: for tests and debugging."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def call(self, message: Message, seconds: float) -> Message:
        """As `child.Handle.call`; there is no deadline."""
        del seconds
        return self.trainer(message)

    def close(self) -> None:
        """Nothing is to end."""
