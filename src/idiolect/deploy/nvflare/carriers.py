"""The two transports over Collab calls: hub to sites, and site to site; every message is encrypted end-to-end.

A message is the two arguments of an engine's call: its header as JSON text, its vectors as bytes. The engine carries
bytes inside the call, and an array in a transfer of its own behind it, by parts. The first takes a quarter of the
time for 4 KB (.03 s instead of .12 s per round of three sites), the second less for 10 MB.
"""

import gc
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from idiolect.core.errors import StoreError
from idiolect.core.files import json_of
from idiolect.deploy.messages import Bytes, Message, Vectors, packed, unpacked
from idiolect.deploy.nvflare.limits import Meter, TooLarge
from idiolect.deploy.transport import Inbox, Replies, split_errors

EVERY = 20
"""Calls between two collections."""


class Collector:
    """Called once after every call of a worker: collects at the first and then at each `EVERY`-th.

    The engine leaves a call's buffers in cycles of objects, which only Python's collector frees; by itself it looks
    through all of them too rarely here, and a site's worker grew by 8 KB a round (`python -m benchmarks.sites soak`).
    What the first call has loaded stays, so it is frozen: a later collection visits only some thousand objects.
    """

    def __init__(self) -> None:
        self._calls = itertools.count()

    def __call__(self) -> None:
        """Count one call; collect if it is time."""
        call = next(self._calls)
        if call % EVERY == 0:
            gc.collect()
        if call == 0:
            gc.freeze()


Body = Bytes | bytes
Pack = Callable[[Vectors], Bytes]
INSIDE = 1 << 20  # bytes of a body that still goes inside the call


def packed_once() -> Pack:
    """`packed`, which packs vectors that several messages have in common once. Not to be kept longer than them."""
    known: dict[int, Bytes] = {}

    def pack(vectors: Vectors) -> Bytes:
        if id(vectors) not in known:
            known[id(vectors)] = packed(vectors)
        return known[id(vectors)]

    return pack


def encoded(message: Message, pack: Pack = packed) -> tuple[str, Body]:
    """The header as JSON and the vectors as bytes."""
    body = pack(message.vectors)
    return json.dumps(dict(message.header)), body.tobytes() if body.size <= INSIDE else body


def decoded(parts: Any) -> Message:
    """The message of `encoded`'s two parts; of anything else, a message with an error."""
    try:
        head, body = parts
        header = json_of(head)
        whole = isinstance(body, bytes) or (isinstance(body, np.ndarray) and body.dtype == np.uint8)
        if not (isinstance(header, dict) and whole):
            return Message({"error": "sent something that is no message"})
        return Message(header, unpacked(body))
    except StoreError as error:
        return Message({"error": f"sent something that is no message: {error}"})
    except (TypeError, ValueError):
        return Message({"error": "sent something that is no message"})


_SOON = 0.005
_UNTAKEN = "takes no message of this run now"
_AGAIN = 0.5  # seconds between two checks whether a message to a neighbour must be sent again


class CollabHub:
    """`HubTransport` over Collab. It is used in the thread that runs the job's main function.

    meter: limits what sites send, see `limits`.
    """

    def __init__(self, collab: Any, meter: Meter | None = None) -> None:
        self._collab, self._collect, self._meter, self._most = collab, Collector(), meter, 1 << 62

    def bound(self, most: int) -> None:
        """See `transport.Bounded`. Before the first call of this, an answer may have any size."""
        self._most = most

    @property
    def sites(self) -> Sequence[str]:
        """The sites of this job, in the order of their names."""
        return sorted(client.name for client in self._collab.clients)

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """Send each site its message; see `HubTransport.call`. Raises `StoreError` if the job was aborted."""
        began, missing, seconds = time.monotonic(), dict[str, str](), dict[str, float]()
        end = began + deadline
        arrived: queue.SimpleQueue[tuple[str, Any, Any]] = queue.SimpleQueue()
        bodies = packed_once()
        if self._meter is not None:
            self._meter.begin({*messages}, self._most, lambda site, why: arrived.put((site, None, why)))
        for site, message in messages.items():
            stream = started(self._collab, site, deadline, missing, "answer", *encoded(message, bodies))
            if stream is not None:
                threading.Thread(target=_follow, args=(site, stream, arrived), daemon=True).start()
        waiting, answers = set(messages) - set(missing), dict[str, Message]()
        while waiting:
            try:
                site, answer, failure = arrived.get(timeout=max(end - time.monotonic(), 0.001))
            except queue.Empty:
                break
            if site not in waiting:  # it was cut off, and the engine reports that, too
                continue
            waiting.discard(site)
            if failure is None:
                seconds[site] = time.monotonic() - began
                answers[site] = decoded(answer)
            else:
                missing[site] = reason(failure, deadline)
        self._collect()
        if self._collab.is_aborted:
            raise StoreError("the engine has ended this job; the run continues from its checkpoint with the next one")
        return split_errors(answers, missing | dict.fromkeys(waiting, _late(deadline)), seconds)


class CollabPeers:
    """`PeerTransport` over Collab, for one call at a site. It is used in the thread that runs this call."""

    def __init__(self, collab: Any, inbox: Inbox) -> None:
        self._collab, self._inbox = collab, inbox

    def expect(self, run: str, neighbours: Collection[str]) -> None:
        """See `PeerTransport.expect`."""
        self._inbox.expect(run, neighbours)

    def exchange(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """Send each neighbour its message and wait for theirs; see `PeerTransport.exchange`.

        A message that did not arrive, or that a neighbour did not take because the hub has not called it yet, is sent
        again until the deadline; own messages have arrived when this returns.
        """
        end, missing, streams = time.monotonic() + deadline, dict[str, str](), dict[str, Any]()
        wanted: dict[str, tuple[str, int]] = {}
        bodies = packed_once()
        content = {neighbour: encoded(message, bodies) for neighbour, message in messages.items()}
        for neighbour, message in messages.items():
            wanted[neighbour] = str(message.header.get("run", "")), round
            streams[neighbour] = started(
                self._collab, neighbour, deadline, missing, "put", round, *content[neighbour]
            )
        self._inbox.forget(set(wanted.values()))
        got, why, answers = dict[str, Message](), dict[str, str](), dict[str, bool]()
        while (left := end - time.monotonic()) > 0:
            got = self._inbox.wait({k: v for k, v in wanted.items() if k not in missing}, min(left, _AGAIN))
            whole = len(got) + len(missing) == len(messages)
            untaken = [neighbour for neighbour, stream in streams.items() if not _taken(neighbour, stream, answers)]
            if (whole and not untaken) or self._collab.is_aborted:
                break
            for neighbour, stream in list(streams.items()):
                failure = None if stream is None else stream.failures.get(neighbour)
                if neighbour not in untaken and (failure is None or whole):
                    continue
                why[neighbour] = _UNTAKEN if failure is None else reason(failure, deadline)
                rest = max(end - time.monotonic(), 0.001)
                answers.pop(neighbour, None)  # of the call before this one
                streams[neighbour] = started(
                    self._collab, neighbour, rest, missing, "put", round, *content[neighbour]
                )
            if whole:
                time.sleep(min(_AGAIN, left))
        while time.monotonic() < end and not self._collab.is_aborted and any(map(_on_its_way, streams.values())):
            time.sleep(
                _SOON
            )  # a job that ends while a neighbour still fetches from here would wait for it for minutes
        for neighbour in messages.keys() - got.keys() - missing.keys():
            missing[neighbour] = why.get(neighbour, _late(deadline))
        return split_errors(got, missing)


def _taken(neighbour: str, stream: Any, answers: dict[str, bool]) -> bool:
    """Whether a neighbour has taken the message; True if it has not answered. answers: read already."""
    if stream is not None and len(stream) and neighbour not in answers:
        answers[neighbour] = next((bool(taken) for _, taken in stream), True)
    return answers.get(neighbour, True)


def _on_its_way(stream: Any) -> bool:
    return stream is not None and not len(stream) and not stream.failures


def started(collab: Any, site: str, timeout: float, missing: dict[str, str], method: str, *arguments: Any) -> Any:
    """Start one encrypted call and return its stream of results; None, with a line in `missing`, if that fails."""
    try:
        call = collab.get_clients([site])(blocking=False, timeout=timeout, secure=True)
        return getattr(call, method)(*arguments)
    except Exception as error:  # the engine raises RuntimeError for an unknown name; nothing else is documented
        text = str(error)
        missing[site] = "is not in this job" if "has no client" in text else f"cannot be called ({_kind(error)})"
        return None


def _follow(site: str, stream: Any, arrived: "queue.SimpleQueue[tuple[str, Any, Any]]") -> None:
    """Pass on the one result of a call, or why there is none."""
    try:
        for _, answer in stream:
            arrived.put((site, answer, None))
            return
        arrived.put((site, None, stream.failures.get(site, "dropped")))
    except Exception as error:
        arrived.put((site, None, error))


def reason(failure: Any, deadline: float) -> str:
    """One short line on a failed call, free of what a site may have written into its exception."""
    if isinstance(failure, TooLarge):
        return str(failure)
    cause, kind = getattr(failure, "cause", failure), str(getattr(failure, "cause_type", "") or "")
    if isinstance(cause, TimeoutError) or kind == "TimeoutError":
        return _late(deadline)
    text = str(cause)
    for code, line in _CODES.items():
        if code in text:
            return line
    return f"failed at the site ({kind})" if kind.isidentifier() and kind != "str" else "dropped"


_CODES = {
    "unreachable": "cannot be reached",
    "target_unreachable": "cannot be reached",
    "TARGET_UNREACHABLE": "cannot be reached",
    "rejected": "refused the call",
    "shutting down": "is shutting down",
    "abort": "the job was aborted",
}


def _late(deadline: float) -> str:
    return f"no answer within {deadline:g} s"


def _kind(error: Any) -> str:
    return type(error).__name__
