import threading
import time

from idiolect.deploy.inbox import KEPT, Inbox
from idiolect.deploy.messages import Message


def of(run: str, text: str = "") -> Message:
    return Message({"run": run, "text": text})


def test_it_waits_until_all_have_come_and_keeps_them() -> None:
    inbox, wanted = Inbox(), {"a": ("r", 1), "b": ("r", 1)}
    inbox.put("a", 1, of("r"))
    threading.Timer(0.05, lambda: inbox.put("b", 1, of("r"))).start()
    start = time.monotonic()
    assert set(inbox.wait(wanted, 120)) == {"a", "b"}
    assert time.monotonic() - start < 60
    assert set(inbox.wait(wanted, 0)) == {"a", "b"}


def test_other_runs_rounds_and_callers_do_not_count() -> None:
    inbox = Inbox()
    inbox.put("a", 1, of("other"))
    inbox.put("a", 2, of("r"))
    inbox.put("c", 1, of("r"))
    assert inbox.wait({"a": ("r", 1)}, 0.01) == {}


def test_the_last_of_the_same_round_counts() -> None:
    inbox = Inbox()
    inbox.put("a", 1, of("r", "first"))
    inbox.put("a", 1, of("r", "second"))
    assert inbox.wait({"a": ("r", 1)}, 0)["a"].header["text"] == "second"


def test_old_rounds_and_other_runs_are_forgotten_and_coming_ones_are_not() -> None:
    inbox = Inbox()
    for run, round in (("r", 3), ("r", 4), ("r", 5), ("s", 5)):
        inbox.put("a", round, of(run))
    inbox.forget({("r", 5)})
    come = {key: bool(inbox.wait({"a": key}, 0)) for key in (("r", 3), ("r", 4), ("r", 5), ("s", 5))}
    assert come == {("r", 3): False, ("r", 4): True, ("r", 5): True, ("s", 5): False}


def test_a_caller_that_sends_much_replaces_its_own() -> None:
    inbox = Inbox()
    inbox.put("a", 0, of("r"))
    for round in range(100):
        inbox.put("b", round, of("r"))
    assert inbox.wait({"a": ("r", 0)}, 0)
    assert sum(bool(inbox.wait({"b": ("r", round)}, 0)) for round in range(100)) == KEPT
