"""The transport inside one process: for tests, for comparison with simulations, and for debugging."""

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol

from idiolect.deploy.inbox import Inbox
from idiolect.deploy.messages import Message
from idiolect.deploy.transport import PeerTransport, Replies, split_errors

HUB = "hub"
_AGAIN = 0.02  # seconds between two looks at whether a neighbour takes a message


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
