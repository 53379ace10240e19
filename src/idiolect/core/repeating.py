"""Call a function repeatedly in a thread while a block of work runs."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def repeating(work: Callable[[], float | None], seconds: float) -> Generator[None]:
    """Call `work` in a thread of its own, first after some seconds, until the block ends.

    work: may return the seconds to rest before its next call, else they stay as they were.
    A call that is under way when the block ends is waited for; afterwards there is none.
    """
    ended = threading.Event()

    def go() -> None:
        rest = seconds
        while not ended.wait(rest):
            asked = work()
            rest = rest if asked is None else asked

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
