"""Memory that is given back: pages of files that nobody writes, and only those."""

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.footprint import give_back, unwritten

SIZE = 16 << 20


def in_memory(address: int) -> int:
    """Bytes of the mapping with this address that are in memory."""
    here = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            start, _, end = words[0].partition("-")
            here = int(start, 16) <= address < int(end, 16)
        elif here and words[0] == "Rss:":
            return 1024 * int(words[1])
    raise AssertionError("no such mapping")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_pages_of_a_file_leave_memory_and_come_back_with_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "library"
    path.write_bytes(np.random.default_rng(0).bytes(SIZE))
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), SIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as pages,
    ):
        view = np.frombuffer(pages, np.uint8)
        address, total = view.ctypes.data, int(view.sum())
        assert in_memory(address) >= SIZE // 2
        give_back()
        assert in_memory(address) < SIZE // 8
        assert int(view.sum()) == total
        assert view[:1000].tobytes() == path.read_bytes()[:1000]
        del view


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_what_was_written_stays(tmp_path: Path) -> None:
    """A private copy of a file's page is not in the file: to drop it would lose it."""
    path = tmp_path / "library"
    path.write_bytes(bytes(SIZE))
    with path.open("rb") as file, mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_COPY) as pages:
        pages[5000] = 7
        give_back()
        assert pages[5000] == 7


def test_only_mappings_of_files_that_are_neither_writable_nor_written_are_dropped() -> None:
    entry = "{0:x}000-{0:x}800 {1} 00000000 08:01 1   {2}\nRss:   4 kB\nAnonymous:   {3} kB\nVmFlags: rd mr\n"
    smaps = "".join(
        entry.format(number, rights, path, anonymous)
        for number, (rights, path, anonymous) in enumerate(
            [
                ("r-xp", "/lib/a.so", 0),  # code
                ("r--p", "/lib/a b.so", 0),  # constants
                ("r--p", "/lib/a.so", 4),  # addresses that the loader has filled in
                ("rw-p", "/lib/a.so", 0),
                ("r--s", "/data/table.npy", 0),
                ("rw-p", "[heap]", 0),
                ("r-xp", "[vdso]", 0),
                ("rw-p", "", 0),
            ],
            1,
        )
    )
    assert unwritten(smaps) == [(0x1000, 0x800), (0x2000, 0x800)]
