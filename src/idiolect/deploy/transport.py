"""The transport: how a hub reaches sites, and how sites reach their neighbours.

A class that implements the two protocols `HubTransport` and `PeerTransport` carries idiolect between machines;
nothing else knows the engine. A site is reached by `Site.answer(message, caller, peer)`, which never raises: an error
is a `Message` with `header["error"]`. The transport must verify the caller first: only the hub's calls reach
`Site.answer`. `InProcess` is for tests, for comparison with simulations, and for debugging.
"""

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from idiolect.core.errors import IdiolectError
from idiolect.deploy.messages import Message


class QuorumError(IdiolectError):
    """Too few sites answered; the message names those that did not, and why."""


@dataclass(frozen=True)
class Replies:
    """Who answered, and why the others did not.

    sent: those to whom a message went out at all; seconds: site -> from the call until its answer was here.
    """

    replies: dict[str, Message] = field(default_factory=dict[str, Message])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    sent: frozenset[str] = frozenset()
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def require(self, quorum: int, what: str) -> "Replies":
        """These replies. Raises `QuorumError` if they are fewer than `quorum`."""
        if len(self.replies) >= quorum:
            return self
        reasons = "; ".join(f"{site}: {why}" for site, why in sorted(self.missing.items())) or "nobody was asked"
        raise QuorumError(f"{what}: {len(self.replies)} of the {quorum} sites needed have answered ({reasons})")


class HubTransport(Protocol):
    """What a hub needs."""

    @property
    def sites(self) -> Sequence[str]:
        """The names of the sites that can be called now."""
        ...

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """Send each site its message, at the same time; return when all have answered, or after `deadline` seconds.

        A site that answers later is missing. A reply with an error counts as missing, with that reason.
        """
        ...


@runtime_checkable
class Bounded(Protocol):
    """A `HubTransport` that can cut off answers while they arrive."""

    def bound(self, most: int) -> None:
        """From the next call on, an answer has at most so many bytes; a site that sends more is missing."""
        ...


class PeerTransport(Protocol):
    """What a site needs to reach its neighbours, in the middle of a hub's call."""

    def expect(self, run: str, neighbours: Collection[str]) -> None:
        """From now on take messages of this run from these sites only; no neighbours: from nobody."""
        ...

    def exchange(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """Send each neighbour its message, end-to-end encrypted; return theirs of this round.

        Messages belong together by `header["run"]` and round. Neighbours whose message has not come after `deadline`
        seconds are missing. Called again for the same round, messages that have come already are returned.
        """
        ...


def split_errors(
    answers: Mapping[str, Message], missing: Mapping[str, str], seconds: Mapping[str, float] | None = None
) -> Replies:
    """Count replies with an error as missing. seconds: see `Replies`."""
    errors = {site: answer.error for site, answer in answers.items() if answer.error}
    good = {site: answer for site, answer in answers.items() if not answer.error}
    return Replies(good, {**missing, **errors}, seconds=seconds or {})


Key = tuple[str, int]  # run, round
KEPT = 4  # messages of one neighbour; it is at most one round ahead, whoever sends more replaces its own


class Inbox:
    """Messages by (run, round, caller), of the neighbours in the run that the hub has begun and of nobody else.

    Those of one caller are at most `KEPT`: nobody can fill another's memory.
    """

    def __init__(self) -> None:
        self._come, self._changed = dict[str, dict[Key, Message]](), threading.Condition()
        self._run, self._neighbours = "", frozenset[str]()

    @property
    def neighbours(self) -> frozenset[str]:
        """Who may send now."""
        return self._neighbours

    def expect(self, run: str, neighbours: Collection[str]) -> None:
        """Take messages of this run from these sites only, and drop all others; no neighbours: take none."""
        with self._changed:
            self._run, self._neighbours = run, frozenset(neighbours)
            for caller in list(self._come):
                self._come[caller] = {key: m for key, m in self._come[caller].items() if key[0] == run}
                if caller not in self._neighbours:
                    del self._come[caller]

    def put(self, caller: str, round: int, message: Message) -> bool:
        """Keep a message, in place of one of the same run, round and caller; False if it is not expected."""
        key = str(message.header.get("run", "")), round
        with self._changed:
            if caller not in self._neighbours or key[0] != self._run:
                return False
            kept = self._come.setdefault(caller, {})
            kept.pop(key, None)
            kept[key] = message
            while len(kept) > KEPT:
                del kept[next(iter(kept))]
            self._changed.notify_all()
            return True

    def wait(self, wanted: Mapping[str, Key], seconds: float) -> dict[str, Message]:
        """The wanted messages, as soon as all are there; after `seconds`, those that are. They stay in the inbox."""

        def come() -> dict[str, Message]:
            return {
                caller: self._come[caller][key] for caller, key in wanted.items() if key in self._come.get(caller, {})
            }

        with self._changed:
            self._changed.wait_for(lambda: len(come()) == len(wanted), seconds)
            return come()

    def forget(self, asked: Iterable[Key]) -> None:
        """Drop what can no longer be asked for: other runs, and rounds before the last but this."""
        first = dict(asked)
        with self._changed:
            for kept in self._come.values():
                for run, round in list(kept):
                    if run not in first or round < first[run] - 1:
                        del kept[run, round]


HUB = "hub"
_AGAIN = 0.02  # seconds between two checks whether a neighbour takes a message


class Answers(Protocol):
    """What a transport sees of a site."""

    def answer(self, message: Message, caller: str, peer: PeerTransport) -> Message:
        """Answer one call."""
        ...


class InProcess:
    """Sites as objects of this process; each call runs in a thread of its own."""

    def __init__(self, sites: Mapping[str, Answers]) -> None:
        self._sites = dict(sites)
        self._inboxes = {name: Inbox() for name in sites}
        self._pool = ThreadPoolExecutor(max_workers=4 * max(len(sites), 1))

    @property
    def sites(self) -> Sequence[str]:
        """All sites."""
        return sorted(self._sites)

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """See `HubTransport.call`."""
        del round
        known = {name: message for name, message in messages.items() if name in self._sites}
        missing = {name: "not connected" for name in messages if name not in known}
        began, seconds = time.monotonic(), dict[str, float]()

        def asked(name: str, message: Message) -> Message:
            answer = self._sites[name].answer(message, HUB, _Peer(self._inboxes, name))
            seconds[name] = time.monotonic() - began
            return answer

        futures = {name: self._pool.submit(asked, name, message) for name, message in known.items()}
        wait(futures.values(), timeout=deadline)
        answers = {name: future.result() for name, future in futures.items() if future.done()}
        missing |= {name: f"no answer within {deadline:g} s" for name in futures if name not in answers}
        return split_errors(answers, missing, {name: seconds[name] for name in answers})

    def close(self) -> None:
        """Wait for calls that were given up."""
        self._pool.shutdown()


class _Peer:
    """One site's way to its neighbours."""

    def __init__(self, inboxes: Mapping[str, Inbox], own: str) -> None:
        self._inboxes, self._own = inboxes, own

    def expect(self, run: str, neighbours: Collection[str]) -> None:
        """See `PeerTransport.expect`."""
        self._inboxes[self._own].expect(run, neighbours)

    def exchange(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """See `PeerTransport.exchange`."""
        end = time.monotonic() + deadline
        here = {name: message for name, message in messages.items() if name in self._inboxes}
        missing = {name: "not connected" for name in messages if name not in here}
        wanted = {name: (str(message.header["run"]), round) for name, message in here.items()}
        own, untaken = self._inboxes[self._own], dict(here)
        own.forget(wanted.values())
        got = dict[str, Message]()
        while (left := end - time.monotonic()) > 0:
            # A neighbour that the hub has not called yet takes no message: it gets it again.
            untaken = {n: m for n, m in untaken.items() if not self._inboxes[n].put(self._own, round, m)}
            got = own.wait(wanted, min(left, _AGAIN) if untaken else left)
            if len(got) == len(wanted) and not untaken:
                break
            time.sleep(min(_AGAIN, left) if len(got) == len(wanted) else 0)
        late = {name: f"no message within {deadline:.3g} s" for name in here if name not in got}
        return Replies(got, {**late, **missing})
