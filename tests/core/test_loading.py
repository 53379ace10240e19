"""Loading: no garbage is collected inside the block, and what is there afterwards is not looked through again."""

import gc
from contextlib import suppress

from idiolect.core.loading import loading


def test_garbage_is_collected_again_afterwards_even_after_an_error():
    before = gc.get_freeze_count()
    kept = []
    with suppress(ImportError), loading():
        assert not gc.isenabled()
        kept.append([kept])
        raise ImportError("no such module")
    try:
        assert gc.isenabled()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
