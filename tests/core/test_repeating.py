"""Work beside a block: it is done again and again, and not once more after the block."""

import threading
from contextlib import suppress

from idiolect.core.repeating import repeating


def test_it_is_done_until_the_block_ends_and_then_no_more():
    done, thrice = [], threading.Event()

    def work():
        done.append(threading.current_thread())
        if len(done) == 3:
            thrice.set()

    with repeating(work, 0.001):
        assert thrice.wait(60)
    count = len(done)
    assert not done[0].is_alive()
    assert threading.main_thread() not in done
    assert not threading.Event().wait(0.02)
    assert len(done) == count


def test_a_call_under_way_is_waited_for_even_when_the_block_fails():
    begun, finished = threading.Event(), []

    def work():
        begun.set()
        threading.Event().wait(0.05)
        finished.append(True)

    with suppress(ValueError), repeating(work, 0.0):
        assert begun.wait(60)
        raise ValueError("the block fails")
    assert finished


def test_the_work_may_ask_for_another_rest():
    calls, twice = [], threading.Event()

    def work():
        calls.append(0)
        if len(calls) == 2:
            twice.set()
        return 0.0 if len(calls) < 2 else 3600.0

    with repeating(work, 0.001):
        assert twice.wait(60)
        assert not threading.Event().wait(0.02)
    assert len(calls) == 2
