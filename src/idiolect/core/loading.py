"""Loading many modules without looking through them for garbage."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """Import inside the block: what is loaded stays, and to look through it again and again costs a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
