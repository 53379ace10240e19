"""A site's private state of one run on its disk, and the fence that only the newest call passes.

State: it is prepared with an answer, and committed when the answer was used.

    kept.msg      the state after round `kept` (-1: before the first), from which every later round starts
    prepared.msg  the state after a round whose answer was sent, and that answer
    kept-R.msg    the state after round R, to which the hub may return

The hub says with every call in which round it last used an answer of this site. Then either the prepared state is of
that round and becomes the kept one, by one rename; or the hub continued without it, and it is dropped. So a round
that is retried is answered again and never applied twice, whatever process died when. A hub that returns to an
earlier round names that round, and the state of then becomes the kept one again, if it was held for the hub.

Fence: of several processes that work for one site, only the one with the newest call may change its state. An
engine's old worker lives on for seconds next to the new job's, and a call that was given up runs on. Calls are
ordered by (job, number): a hub numbers its jobs by the time (`hub.config.next_job`), and counts its calls in a job. A
number that lies more than a day ahead of this machine's clock is refused and changes nothing: a hub with a clock that
is wrong for an hour must not lock out every later job. Each study has a fence of its own, so studies run in any order
and at once.

Starts: a hub that forgets a site starts its runs again, each from its beginning or from a checkpoint before that site
joined. Its calls then name a higher start, and the states of the starts before are removed.
"""

import json
import os
import re
import time
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from idiolect.core.errors import DataError, StoreError, os_errors_as, reason_of
from idiolect.core.files import file_name, json_of, write_text
from idiolect.core.rights import make_folder
from idiolect.deploy.messages import Message, Vector, Vectors, part_of, read_header, read_message, write_message
from idiolect.deploy.terms import STUDY_ID, Terms

Ticket = tuple[int, int]
"""(job, number of the call in it)."""
AHEAD = 86_400
"""Seconds by which a job's number may lie ahead of this machine's clock."""
FOLDER = "state"
"""The folder of all private states, inside a site's own."""
MODELS = "models"
"""The folder of its models, inside a site's own."""
_FENCE, _LOCK, _LEFT = "fence.json", "fence.lock", "left.json"
STAYS = frozenset({_FENCE, _LOCK, _LEFT})
"""The files of a study's folder that stay when the site leaves: they hold nothing of its data."""


def run_folder(models: Path, terms: Terms) -> Path:
    """The folder of a run's models."""
    return models / terms.study / file_name(terms.run.replace("/", "__"))


def study_folder(site: Path, study: str) -> Path:
    """The folder of a study's private states. Raises `DataError` for an id that is none, `StoreError` if an older
    idiolect, whose runs named no study, has left states in the way.
    """
    if study and re.fullmatch(STUDY_ID, study) is None:
        raise DataError("the call's study has no id that a folder can have")
    states = site / FOLDER
    if study and (states / _FENCE).exists():
        raise StoreError(
            f"'{states}' holds private states of an idiolect before studies; end its runs, then move the folder "
            "away: the next study makes it anew"
        )
    return states / study


def mark_left(folder: Path) -> None:
    """Note that the site has left the study of this folder."""
    write_text(folder / _LEFT, json.dumps({"time": time.time()}))


def has_left(folder: Path) -> bool:
    """Whether the site has left the study of this folder."""
    return (folder / _LEFT).exists()


class Fence:
    """A file with the newest call, and a lock that holds across processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._file = folder, folder / _FENCE

    @contextmanager
    def enter(self, ticket: Ticket, seconds: float) -> Generator[None]:
        """Hold the lock, for a call that is the newest or newer. Raises `StoreError` for an older one, and for a job
        whose number lies far ahead.
        """
        if _is_ahead(ticket):
            raise StoreError(
                f"job {ticket[0]} has a number that no clock reaches within a day; compare the clocks of hub and site"
            )
        with self.hold(seconds):
            newest = self._newest()
            if ticket < newest:
                raise StoreError(f"call {_named(ticket)} is late: {_named(newest)} has been answered or begun")
            if ticket > newest:
                write_text(self._file, json.dumps({"job": ticket[0], "call": ticket[1]}))
            yield

    @contextmanager
    def hold(self, seconds: float) -> Generator[None]:
        """Hold the lock, for the site's own commands. Raises `StoreError` if a call holds it for so long."""
        try:
            make_folder(self.folder)
            lock = FileLock(self.folder / _LOCK, timeout=max(seconds, 0), mode=0o600)
            lock.acquire()
        except Timeout:
            raise StoreError(f"another process works for this site and did not end within {seconds:g} s") from None
        except OSError as error:
            raise StoreError(f"cannot write to '{self.folder}': {reason_of(error)}") from error
        try:
            yield
        finally:
            lock.release()

    def _newest(self) -> Ticket:
        try:
            values = json_of(self._file.read_bytes())
            newest = int(values["job"]), int(values["call"])
            return (-1, -1) if _is_ahead(newest) else newest
        except FileNotFoundError:
            return -1, -1
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"cannot read {self._file} ({error}); remove it if no job runs") from None


def _is_ahead(ticket: Ticket) -> bool:
    return ticket[0] > time.time() + AHEAD


def _named(ticket: Ticket) -> str:
    return f"{ticket[1]} of job {ticket[0]}"


VERSION = 1
MOST_HELD = 8
"""Earlier states of a run that a site holds for its hub."""
_BEFORE = "before-"


class RunState:
    """The state of one run below a study's folder. One process at a time may use it: see `Fence`.

    start: which start of the run the hub's calls are of, see above.
    """

    def __init__(self, folder: Path, run: str, start: int = 0) -> None:
        self.run, self.start = run, start
        self.folder = folder / file_name(run.replace("/", "__"))
        self._kept, self._prepared = self.folder / "kept.msg", self.folder / "prepared.msg"

    def begin(self, vectors: Vectors) -> None:
        """Keep the state before the first round; a run that has begun keeps what it has."""
        if self.begun:
            return
        with os_errors_as(f"cannot write to '{self.folder}'"):
            make_folder(self.folder)
        self._only(self._message(-1, vectors))

    @property
    def begun(self) -> bool:
        """Whether the run has a state of this start here. Raises `StoreError` if it has one of a later start."""
        kept = self._header(self._kept)
        return kept is not None and self._started(kept) == self.start

    def go_back(self, used: int) -> bool:
        """Make the state after round `used` of an earlier start that of this one; False if there is none at all.

        Raises `StoreError` if there are states, but none of that round.
        """
        kept = self._read(self._kept)
        if kept is None:
            return False
        if not state_of(kept):  # of a method without private state, all rounds are alike
            self._only(self._message(used, {}))
            return True
        for path in (self._kept, self._prepared, *self._older()):
            state = self._read(path)
            if state is not None and state.header["round"] == used:
                self._only(self._message(used, state_of(state)), path)
                return True
        raise self._cannot_go_back(used)

    def settle(self, used: int, good: Collection[int] = ()) -> Message:
        """Commit or drop what is prepared, given the round in which the hub last used an answer (-1: none).

        good: the rounds to which the hub may return; of these the newest `MOST_HELD` are held. Returns the kept
        state. Raises `StoreError` if hub and site do not stand at the same round.
        """
        header, prepared = self._header(self._kept), self._header(self._prepared)
        if header is None:
            raise StoreError(f"this site has no private state of run '{self.run}'; it must begin")
        if self._started(header) < self.start:
            raise self._cannot_go_back(used)
        held = {*sorted(good)[-MOST_HELD:]}
        commits = prepared is not None and prepared["round"] == used and self._started(prepared) == self.start
        kept = self._read(self._prepared if commits else self._kept)
        assert kept is not None
        if commits:
            self._hold(header["round"], held)
            os.replace(self._prepared, self._kept)
        self._drop(held, used)
        back = self._read(self._held(used)) if kept.header["round"] > used else None
        if back is not None:
            self._prepared.unlink(missing_ok=True)  # it was made of what is undone now
            self._drop_before(used)
            os.replace(self._held(used), self._kept)
            kept = back
        round = int(kept.header["round"])
        if round > used:
            raise StoreError(
                f"this site's private state is of round {round + 1} of run '{self.run}', but the hub has used none "
                f"after round {used + 1}: restore the hub's folder, or remove '{self.folder}' to begin again"
            )
        if round < used:
            raise StoreError(
                f"the hub has used this site's answer of round {used + 1} of run '{self.run}', but the private state "
                f"here is of round {round + 1}: restore '{self.folder}' from a backup, or remove it to begin again"
            )
        return kept

    def _held(self, round: int) -> Path:
        return self.folder / f"kept-{round}.msg"

    def _hold(self, round: int, rounds: Collection[int]) -> None:
        """Keep the kept state aside, if the hub may return to it. It stays the kept one until it is replaced.

        round: of the kept state.
        """
        if round not in rounds:
            return
        path = self._held(round)
        try:
            path.unlink(missing_ok=True)
            os.link(self._kept, path)
        except OSError:  # a file system without links
            kept = self._read(self._kept)
            assert kept is not None
            write_message(path, kept)

    def _drop(self, rounds: Collection[int], used: int) -> None:
        """Remove states to which the hub returns no more, and those after the round to which it has returned."""
        for path in self.folder.glob("kept-*.msg"):
            number = path.stem.removeprefix("kept-")
            if not (number.removeprefix("-").isdigit() and int(number) in {*rounds, used} and int(number) <= used):
                path.unlink(missing_ok=True)

    def _drop_before(self, used: int) -> None:
        """Remove the copies of `keep_before` of later rounds than the one to which the hub has returned."""
        for path in self.folder.glob(f"{_BEFORE}*.msg"):
            number = path.stem.removeprefix(_BEFORE)
            if number.isdigit() and int(number) > used + 1:
                path.unlink(missing_ok=True)

    def _cannot_go_back(self, used: int) -> StoreError:
        return StoreError(
            f"this site has no private state of round {used + 1} of run '{self.run}' to go back to: the hub must "
            "start the run from its beginning (idiolect hub forget --from-beginning)"
        )

    def keep_before(self, kept: Message, clients: int) -> None:
        """Keep a copy of the kept state if a site has joined since, for `go_back` when that site is forgotten."""
        before, round = kept.header.get("clients"), int(kept.header["round"])
        path = self.folder / f"{_BEFORE}{round + 1}.msg"
        if before is not None and int(before) < clients and not path.is_file():
            write_message(path, kept)

    def _started(self, header: Mapping[str, Any]) -> int:
        """The start of which a state is. Raises `StoreError` if it is a later one than the call's."""
        start = int(header.get("start", 0))
        if start > self.start:
            raise StoreError(
                f"the hub calls start {self.start + 1} of run '{self.run}', but start {start + 1} has begun here: "
                "restore the hub's newest folder"
            )
        return start

    def _older(self) -> list[Path]:
        """The states of earlier rounds that are held."""
        return sorted(path for path in self.folder.glob("*.msg") if path not in (self._kept, self._prepared))

    def _only(self, state: Message, source: Path | None = None) -> None:
        """Keep this state and no other. source: the file that holds it until it is kept."""
        for path in (self._prepared, *self._older()):
            if path != source:
                path.unlink(missing_ok=True)
        write_message(self._kept, state)
        if source is not None and source != self._kept:
            source.unlink(missing_ok=True)

    def answered(self, round: int, request: str) -> Message | None:
        """The answer prepared for a round and a request with this digest; None if there is none."""
        header = self._header(self._prepared)
        if header is None or (header["round"], header["request"]) != (round, request):
            return None
        if self._started(header) != self.start:
            return None
        prepared = self._read(self._prepared)
        assert prepared is not None
        return Message(prepared.header["answer"], part_of("answer", prepared.vectors))

    def prepare(self, round: int, request: str, state: Vectors, answer: Message, clients: int) -> None:
        """Keep the state after a round, and the answer, until the hub says whether it used it.

        clients: sites of the federation in this round.
        """
        vectors = {**state, **{f"answer/{name}": vector for name, vector in answer.vectors.items()}}
        header = {"request": request, "answer": dict(answer.header), "clients": clients}
        write_message(self._prepared, self._message(round, vectors, **header))

    def _message(self, round: int, vectors: Vectors, **more: object) -> Message:
        return Message({"version": VERSION, "run": self.run, "start": self.start, "round": round, **more}, vectors)

    def _read(self, path: Path) -> Message | None:
        message = read_message(path)
        if message is not None:
            _check_version(path, message.header)
        return message

    def _header(self, path: Path) -> dict[str, Any] | None:
        """A state's header, without its vectors. It is enough to decide which state is the kept one."""
        header = read_header(path)
        if header is not None:
            _check_version(path, header)
        return header


def _check_version(path: Path, header: Mapping[str, Any]) -> None:
    if header.get("version") != VERSION:
        raise StoreError(f"{path} is of version {header.get('version')!r}; this idiolect reads {VERSION}")


def state_of(message: Message) -> dict[str, Vector]:
    """Only the vectors of a kept state: an answer that was prepared with it is not part of it."""
    return {name: vector for name, vector in message.vectors.items() if not name.startswith("answer/")}
