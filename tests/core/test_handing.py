"""Handing values over: other processes read the same bytes, from memory that nobody else keeps."""

import os
import subprocess
import sys
import weakref
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from idiolect.core import handing
from idiolect.core.handing import Handed, hand_over

needs_memory = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only Linux shares memory so")
VALUE = {
    "floats": np.arange(12.0).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "more": np.arange(7.0),
    "part": np.arange(10)[::3],
    "empty": np.zeros((0, 5), np.float32),
    "names": ("a", "b"),
    "text": np.array(["x", "yy"]),
}


def taken(handed: Handed) -> dict[str, object]:
    """What another process reads; of its large arrays, whether they can be changed, and where they begin."""
    value = handed.take()
    large = [value[name] for name in ("floats", "columns", "more")]
    return {
        **value,
        "writeable": [array.flags.writeable for array in large],
        "begins": [array.ctypes.data % 64 for array in large],
    }


@needs_memory
def test_another_process_takes_an_equal_value_that_it_cannot_change():
    with hand_over(VALUE) as handed, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(taken, handed).result()
    assert (found.pop("writeable"), found.pop("begins")) == ([False] * 3, [0] * 3)
    assert found.keys() == VALUE.keys()
    for name, value in VALUE.items():
        np.testing.assert_array_equal(found[name], value)
        assert np.asarray(found[name]).dtype == np.asarray(value).dtype


@needs_memory
def test_large_arrays_are_not_in_what_is_sent():
    with hand_over(np.zeros(1_000_000)) as handed:
        assert len(handed.form) < 1000
        assert handed.spans[0][1] == 8_000_000


@needs_memory
def test_what_was_taken_stays_after_the_block_and_nothing_can_be_taken_then():
    with hand_over(VALUE) as handed:
        value = handed.take()
    np.testing.assert_array_equal(value["floats"], VALUE["floats"])
    with pytest.raises(OSError, match=r"fd/\d+"):
        handed.take()


@needs_memory
def test_a_process_that_was_killed_leaves_nothing(tmp_path):
    program = (
        "import numpy as np, time\nfrom idiolect.core.handing import hand_over\n"
        "with hand_over(np.zeros(1_000_000)) as handed:\n    print(handed.place, flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stdout is not None
    place = process.stdout.readline().strip()
    assert os.stat(place).st_size > 8_000_000
    process.kill()
    process.wait()
    assert not os.path.exists(place)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_copied_or_is_nothing_is_not_handed_over():
    for value in (lambda: 0, None):
        with hand_over(value) as handed:
            assert handed is None


@pytest.mark.parametrize("error", [OSError("no memory"), AttributeError("another system")])
def test_without_shared_memory_nothing_is_handed_over(monkeypatch, error):
    def refuse(_name):
        raise error

    monkeypatch.setattr(handing.os, "memfd_create", refuse, raising=False)
    with hand_over(VALUE) as handed:
        assert handed is None


class Data:
    """What is handed over here."""

    def __init__(self) -> None:
        self.numbers = np.zeros(1000)


@needs_memory
def test_the_process_that_hands_over_need_not_hold_a_copy():
    def made() -> Data:
        data = Data()
        held.append(weakref.ref(data))
        return data

    held: list[weakref.ref[Data]] = []
    with hand_over(made()) as handed:
        assert handed is not None
        assert held[0]() is None
