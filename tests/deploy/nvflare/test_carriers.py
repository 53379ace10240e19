"""A worker's memory does not grow with its calls: cycles are freed, what was loaded is looked at once."""

import gc
import json
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.carriers import (
    EVERY,
    INSIDE,
    CollabHub,
    CollabPeers,
    Collector,
    decoded,
    encoded,
    packed_once,
    reason,
)
from idiolect.deploy.nvflare.limits import Meter, TooLarge
from idiolect.deploy.transport import Inbox


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[None]:
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


def left(cycles: "list[weakref.ref[Cycle]]") -> int:
    return sum(cycle() is not None for cycle in cycles)


def test_at_most_the_cycles_of_the_last_calls_are_kept() -> None:
    collect, cycles = Collector(), []
    most = 0
    for _ in range(5 * EVERY):
        cycles.append(weakref.ref(Cycle()))
        collect()
        most = max(most, left(cycles))
    assert most == EVERY - 1
    assert left(cycles[: 4 * EVERY + 1]) == 0


@pytest.mark.second
def test_what_the_first_call_loaded_is_frozen_and_its_garbage_is_not() -> None:
    garbage, before = weakref.ref(Cycle()), gc.get_freeze_count()
    Collector()()
    assert garbage() is None
    assert gc.get_freeze_count() > before
    assert len(gc.get_objects()) < 1000  # frozen objects are not among them


@pytest.mark.parametrize("size", [0, 3, INSIDE // 4 - 100, INSIDE // 4 + 100])
def test_a_message_comes_back_bit_for_bit(size: int) -> None:
    sent = Message({"run": "r", "round": 3}, {"w": np.arange(size, dtype="f4"), "n": np.int64(7) * np.ones((), "i8")})
    came = decoded(encoded(sent))
    assert came.header == sent.header
    assert came.vectors["w"].tobytes() == sent.vectors["w"].tobytes()
    assert came.vectors["n"].shape == ()


def test_small_bodies_go_inside_the_call_and_large_ones_beside_it() -> None:
    assert isinstance(encoded(Message({}, {"w": np.zeros(10)}))[1], bytes)
    assert isinstance(encoded(Message({}, {"w": np.zeros(INSIDE)}))[1], np.ndarray)


@pytest.mark.parametrize(
    "parts",
    [
        None,
        3,
        (),
        ("{}",),
        ("{", b""),
        ("[]", b""),
        ("{}", "text"),
        ("{}", np.zeros(4)),
        ("{}", b"no vectors"),
        (b"\xff", b""),
        ("[" * 100_000, b""),
    ],
)
def test_what_is_no_message_is_a_message_with_an_error(parts: object) -> None:
    assert decoded(parts).error.startswith("sent something that is no message")


def test_vectors_in_common_are_packed_once() -> None:
    pack, vectors = packed_once(), {"w": np.zeros(3)}
    assert pack(vectors) is pack(vectors)
    assert json.loads(encoded(Message({"a": 1}, vectors), pack)[0]) == {"a": 1}


class Stream:
    def __init__(self) -> None:
        self.failures: dict[str, Any] = {}
        self.come = 0
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def __len__(self) -> int:
        return self.come

    def __iter__(self) -> Any:
        return iter(self.queue.get, None)


class Fake:
    """answers: what a site does with (method, arguments); an exception is a failure, None no answer at all."""

    def __init__(self, answers: dict[str, Callable[..., Any]]) -> None:
        self.answers, self.is_aborted, self.options = answers, False, list[dict[str, Any]]()

    @property
    def clients(self) -> list[Any]:
        return [type("C", (), {"name": name}) for name in self.answers]

    def get_clients(self, names: list[str]) -> Any:
        (name,) = names
        if name not in self.answers:
            raise RuntimeError(f"app server has no client '{name}'")

        def call(**options: Any) -> Any:
            self.options.append(options)
            return type("Group", (), {"__getattr__": lambda _, method: lambda *a: self._start(name, method, a)})()

        return call

    def _start(self, name: str, method: str, arguments: tuple[Any, ...]) -> Stream:
        stream = Stream()

        def work() -> None:
            answer = self.answers[name](method, *arguments)
            if isinstance(answer, Exception):
                stream.failures[name] = answer
            elif answer is not None:
                stream.queue.put((name, answer))
                stream.come = 1
            if answer is not None:
                stream.queue.put(None)

        threading.Thread(target=work, daemon=True).start()
        return stream


class CallError(Exception):
    def __init__(self, cause: Any, kind: str) -> None:
        super().__init__(str(cause))
        self.cause, self.cause_type = cause, kind


def doubled(method: str, header: str, body: Any) -> Any:
    message = decoded((header, body))
    return encoded(Message({"of": message.header["to"]}, {"w": message.vectors["w"] * 2}))


def to(name: str, value: float = 1.0) -> Message:
    return Message({"run": "r", "to": name}, {"w": np.full(3, value)})


def test_every_site_gets_its_own_message_encrypted() -> None:
    collab = Fake({"b": doubled, "a": doubled})
    hub = CollabHub(collab)
    assert hub.sites == ["a", "b"]
    got = hub.call(0, {"a": to("a", 1), "b": to("b", 2)}, deadline=5)
    assert {site: (m.header["of"], m.vectors["w"][0]) for site, m in got.replies.items()} == {
        "a": ("a", 2),
        "b": ("b", 4),
    }
    assert got.missing == {}
    assert all(option["secure"] is True and option["blocking"] is False for option in collab.options)


def test_garbage_is_looked_for_once_in_so_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr("idiolect.deploy.nvflare.carriers.gc.collect", lambda: collected.append(1))
    hub = CollabHub(Fake({"a": doubled}))
    for round in range(EVERY + 1):
        hub.call(round, {"a": to("a")}, deadline=5)
    assert len(collected) == 2


def test_who_does_not_answer_is_missing_in_one_line() -> None:
    answers: dict[str, Callable[..., Any]] = {
        "good": doubled,
        "silent": lambda *_: None,
        "failed": lambda *_: CallError("patient 4711 is ill", "ValueError"),
        "late": lambda *_: CallError(TimeoutError("timed out"), "TimeoutError"),
        "strange": lambda *_: ("{}", "text"),
        "error": lambda *_: encoded(Message({"error": "another schema"})),
    }
    start = time.monotonic()
    names = [*answers, "unknown"]
    got = CollabHub(Fake(answers)).call(0, {name: to(name) for name in names}, deadline=0.3)
    assert 0.25 < time.monotonic() - start < 60
    assert set(got.replies) == {"good"}
    assert got.missing == {
        "silent": "no answer within 0.3 s",
        "failed": "failed at the site (ValueError)",
        "late": "no answer within 0.3 s",
        "strange": "sent something that is no message",
        "error": "another schema",
        "unknown": "is not in this job",
    }


def test_the_limit_of_an_answer_reaches_the_engine_and_who_exceeds_it_is_missing_at_once() -> None:
    class Counting(Meter):
        """It says at once that one site sends too much."""

        def __init__(self) -> None:
            self.begun = list[tuple[set[str], int]]()

        def begin(self, sites: Any, most: int, over: Callable[[str, TooLarge], None]) -> None:
            self.begun.append(({*sites}, most))
            over("large", TooLarge(most))

    meter = Counting()
    hub = CollabHub(Fake({"good": doubled, "large": lambda *_: None}), meter)
    hub.bound(77)
    start = time.monotonic()
    got = hub.call(0, {"good": to("good"), "large": to("large")}, deadline=60)
    assert time.monotonic() - start < 30
    assert meter.begun == [({"good", "large"}, 77)]
    assert {*got.replies} == {"good"}
    assert got.missing == {"large": "sent more than 77 bytes, the most that this answer can have; it was cut off"}


def test_an_aborted_job_is_an_error_and_no_round_without_answers() -> None:
    collab = Fake({"a": lambda *_: CallError("aborted", "RunAborted")})
    collab.is_aborted = True
    with pytest.raises(StoreError, match="has ended this job"):
        CollabHub(collab).call(0, {"a": to("a")}, deadline=1)


def test_neighbours_exchange_and_the_absent_is_missing() -> None:
    inboxes = {name: Inbox() for name in "abc"}
    for inbox in inboxes.values():
        inbox.expect("r", "abc")

    def site(own: str, caller: str) -> Callable[..., Any]:
        def put(method: str, round: int, header: str, body: Any) -> bool:
            assert method == "put"
            return inboxes[own].put(caller, round, decoded((header, body)))

        return put

    def peers(own: str) -> CollabPeers:
        return CollabPeers(Fake({name: site(name, own) for name in "abc"}), inboxes[own])

    got: dict[str, Any] = {}
    pairs = {"a": "bc", "b": "ac"}

    def go(own: str) -> None:
        got[own] = peers(own).exchange(
            4, {n: Message({"run": "r"}, {"w": np.full(2, ord(own))}) for n in pairs[own]}, deadline=0.5
        )

    threads = [threading.Thread(target=go, args=(own,)) for own in pairs]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert got["a"].replies["b"].vectors["w"][0] == ord("b")
    assert got["b"].replies["a"].vectors["w"][0] == ord("a")
    assert got["a"].missing == got["b"].missing == {"c": "no answer within 0.5 s"}


def test_own_messages_have_arrived_when_an_exchange_returns() -> None:
    inbox, arrived = Inbox(), threading.Event()
    inbox.expect("r", "b")
    inbox.put("b", 1, Message({"run": "r"}))

    def slowly(method: str, *arguments: Any) -> bool:
        time.sleep(0.2)
        arrived.set()
        return True

    got = CollabPeers(Fake({"b": slowly}), inbox).exchange(1, {"b": Message({"run": "r"})}, deadline=10)
    assert set(got.replies) == {"b"}
    assert arrived.is_set()


def test_a_message_that_did_not_arrive_is_sent_again() -> None:
    inbox, tries = Inbox(), list[int]()
    inbox.expect("r", "b")

    def put(method: str, round: int, header: str, body: Any) -> Any:
        tries.append(round)
        if len(tries) < 3:
            return CallError("cell is unreachable", "str")
        inbox.put("b", round, decoded((header, body)))
        return True

    got = CollabPeers(Fake({"b": put}), inbox).exchange(1, {"b": Message({"run": "r"})}, deadline=10)
    assert (len(tries), set(got.replies)) == (3, {"b"})


def test_a_neighbour_that_is_not_in_the_run_yet_gets_the_message_again() -> None:
    inbox, tries = Inbox(), list[int]()
    peers = CollabPeers(Fake({"b": lambda *_: take()}), inbox)
    peers.expect("r", "b")
    inbox.put("b", 1, Message({"run": "r"}))  # its own has come before the hub's call has reached it

    def take() -> bool:
        tries.append(1)
        return len(tries) == 3

    got = peers.exchange(1, {"b": Message({"run": "r"})}, deadline=10)
    assert (len(tries), set(got.replies)) == (3, {"b"})


class InOnePlace(Fake):
    """Every call's stream lies where the one before lay, as freed memory is used again."""

    stream: Stream | None = None

    def _start(self, name: str, method: str, arguments: tuple[Any, ...]) -> Stream:
        if self.stream is None:
            self.stream = Stream()
        self.stream.__init__()
        self.stream.queue.put((name, self.answers[name](method, *arguments)))
        self.stream.queue.put(None)
        self.stream.come = 1
        return self.stream


def test_each_call_s_own_answer_counts_wherever_its_stream_lies() -> None:
    """A neighbour takes the message at the third call: there is no fourth."""
    inbox, tries = Inbox(), list[int]()

    def take(*_: Any) -> bool:
        tries.append(1)
        return len(tries) >= 3

    peers = CollabPeers(InOnePlace({"b": take}), inbox)
    peers.expect("r", "b")
    inbox.put("b", 1, Message({"run": "r"}))
    assert set(peers.exchange(1, {"b": Message({"run": "r"})}, deadline=10).replies) == {"b"}
    assert len(tries) == 3


def test_a_neighbour_that_takes_nothing_is_missing_at_the_deadline() -> None:
    inbox = Inbox()
    inbox.expect("r", "b")
    got = CollabPeers(Fake({"b": lambda *_: False}), inbox).exchange(1, {"b": Message({"run": "r"})}, deadline=1)
    assert got.missing == {"b": "takes no message of this run now"}


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (CallError("remote call returned rc='TARGET_UNREACHABLE'", "str"), "cannot be reached"),
        (CallError("Collab call rejected", "str"), "refused the call"),
        (CallError("secret", "str"), "dropped"),
        (CallError("secret", "Key Error: secret"), "dropped"),
        (RuntimeError("secret"), "dropped"),
    ],
)
def test_reasons_carry_nothing_of_the_exception(failure: Exception, line: str) -> None:
    assert reason(failure, 2.0) == line
