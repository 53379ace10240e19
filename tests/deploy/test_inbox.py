import threading
import time

from idiolect.deploy.inbox import KEPT, Inbox
from idiolect.deploy.messages import Message


def inbox_of(run: str = "r", *neighbours: str) -> Inbox:
    """One that takes messages of these neighbours."""
    made = Inbox()
    made.expect(run, neighbours or ("a", "b", "c"))
    return made


def of(run: str, text: str = "") -> Message:
    return Message({"run": run, "text": text})


def test_it_waits_until_all_have_come_and_keeps_them() -> None:
    inbox, wanted = inbox_of(), {"a": ("r", 1), "b": ("r", 1)}
    inbox.put("a", 1, of("r"))
    threading.Timer(0.05, lambda: inbox.put("b", 1, of("r"))).start()
    start = time.monotonic()
    assert set(inbox.wait(wanted, 120)) == {"a", "b"}
    assert time.monotonic() - start < 60
    assert set(inbox.wait(wanted, 0)) == {"a", "b"}


def test_other_runs_rounds_and_callers_do_not_count() -> None:
    inbox = inbox_of()
    inbox.put("a", 1, of("other"))
    inbox.put("a", 2, of("r"))
    inbox.put("c", 1, of("r"))
    assert inbox.wait({"a": ("r", 1)}, 0.01) == {}


def test_the_last_of_the_same_round_counts() -> None:
    inbox = inbox_of()
    inbox.put("a", 1, of("r", "first"))
    inbox.put("a", 1, of("r", "second"))
    assert inbox.wait({"a": ("r", 1)}, 0)["a"].header["text"] == "second"


def test_old_rounds_are_forgotten_and_coming_ones_are_not() -> None:
    inbox = inbox_of()
    for round in (3, 4, 5):
        inbox.put("a", round, of("r"))
    inbox.forget({("r", 5)})
    come = {round: bool(inbox.wait({"a": ("r", round)}, 0)) for round in (3, 4, 5)}
    assert come == {3: False, 4: True, 5: True}


def test_only_neighbours_of_the_run_in_progress_are_taken() -> None:
    inbox = Inbox()
    assert not inbox.put("a", 0, of("r"))
    assert inbox.neighbours == frozenset()
    inbox.expect("r", ["a", "b"])
    assert inbox.neighbours == {"a", "b"}
    assert inbox.put("a", 0, of("r"))
    assert inbox.put("b", 0, of("r"))
    assert not inbox.put("c", 0, of("r"))
    assert not inbox.put("a", 1, of("another"))
    assert inbox.wait({"a": ("another", 1)}, 0) == inbox.wait({"c": ("r", 0)}, 0) == {}
    inbox.expect("r", ["a"])  # the same run: what has come stays
    assert set(inbox.wait({"a": ("r", 0)}, 0)) == {"a"}
    assert inbox.wait({"b": ("r", 0)}, 0) == {}
    inbox.expect("next", ["a"])
    assert inbox.wait({"a": ("r", 0)}, 0) == {}
    inbox.expect("", ())
    assert not inbox.put("a", 0, of("next"))
    assert not inbox.put("a", 0, of(""))


def test_a_caller_that_sends_much_replaces_its_own() -> None:
    inbox = inbox_of()
    inbox.put("a", 0, of("r"))
    for round in range(100):
        inbox.put("b", round, of("r"))
    assert inbox.wait({"a": ("r", 0)}, 0)
    assert sum(bool(inbox.wait({"b": ("r", round)}, 0)) for round in range(100)) == KEPT
