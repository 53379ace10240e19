"""The transport inside one process: for tests, for comparison with simulations, and for debugging."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol

from idiolect.deploy.messages import Message
from idiolect.deploy.transport import PeerTransport, Replies, split_errors

HUB = "hub"


class Answers(Protocol):
    """What a transport sees of a site."""

    def answer(self, message: Message, caller: str, peer: PeerTransport) -> Message:
        """Answer one call."""
        ...


class Inbox:
    """Messages of neighbours, by (run, round, sender)."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int, str], Message] = {}
        self._arrived = threading.Condition()

    def put(self, sender: str, message: Message) -> None:
        """Hold a message; those of earlier rounds of its run from the same sender are dropped."""
        run, round = str(message.header["run"]), int(message.header["round"])
        with self._arrived:
            old = [key for key in self._held if key[0] == run and key[2] == sender and key[1] < round - 1]
            for key in old:
                del self._held[key]
            self._held[run, round, sender] = message
            self._arrived.notify_all()

    def take(self, run: str, round: int, senders: Sequence[str], deadline: float) -> Replies:
        """The messages of a round from these senders, after all have come or `deadline` seconds."""
        end = time.monotonic() + deadline
        with self._arrived:
            self._arrived.wait_for(
                lambda: all((run, round, sender) in self._held for sender in senders),
                timeout=max(end - time.monotonic(), 0),
            )
            found = {s: self._held[run, round, s] for s in senders if (run, round, s) in self._held}
        late = f"no message within {deadline:.3g} s"
        return Replies(found, {sender: late for sender in senders if sender not in found})


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
        futures = {
            name: self._pool.submit(self._sites[name].answer, message, HUB, _Peer(self._inboxes, name))
            for name, message in known.items()
        }
        wait(futures.values(), timeout=deadline)
        answers = {name: future.result() for name, future in futures.items() if future.done()}
        missing |= {name: f"no answer within {deadline:g} s" for name in futures if name not in answers}
        return split_errors(answers, missing)

    def close(self) -> None:
        """Wait for calls that were given up."""
        self._pool.shutdown()


class _Peer:
    """One site's way to its neighbours."""

    def __init__(self, inboxes: Mapping[str, Inbox], own: str) -> None:
        self._inboxes, self._own = inboxes, own

    def exchange(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """See `PeerTransport.exchange`."""
        absent = [name for name in messages if name not in self._inboxes]
        for name, message in messages.items():
            if name in self._inboxes:
                self._inboxes[name].put(self._own, message)
        runs = {str(message.header["run"]) for message in messages.values()}
        got = Replies()
        for run in runs:
            got = self._inboxes[self._own].take(run, round, [n for n in messages if n not in absent], deadline)
        return Replies(got.replies, {**got.missing, **dict.fromkeys(absent, "not connected")})
