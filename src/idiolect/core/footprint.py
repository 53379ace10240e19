"""Giving memory back to the system that a process needed once: to import, to read a table, to compile."""

import ctypes
import gc
import sys
from contextlib import suppress
from pathlib import Path

_DONTNEED = 4  # MADV_DONTNEED of Linux


def give_back() -> None:
    """Give free memory and unused pages of libraries back to the system. It changes no value and only on Linux.

    Python's garbage is collected and the C library's free blocks are returned. Pages of libraries that were read from
    their files and never written are dropped from this process. If one is used again, the system maps it again. A
    compiler's pages, some 100 MB, are not used after the last program is compiled.
    """
    gc.collect()
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with suppress(AttributeError):  # only glibc has it
        libc.malloc_trim(0)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with suppress(OSError):
        for start, length in unwritten(Path("/proc/self/smaps").read_text()):
            libc.madvise(start, length, _DONTNEED)


def unwritten(smaps: str) -> list[tuple[int, int]]:
    """(address, bytes) of mappings of files that this process cannot write, and has not written."""
    found, here = list[tuple[int, int]](), None
    for line in smaps.splitlines():
        words = line.split()
        if "-" in words[0] and len(words) >= 5:
            start, _, end = words[0].partition("-")
            of_file = len(words) >= 6 and words[5].startswith("/")
            begin = int(start, 16)
            here = (begin, int(end, 16) - begin) if of_file and "w" not in words[1] and words[1][3] == "p" else None
        elif words[0] == "Anonymous:" and here is not None and words[1] == "0":
            found.append(here)
    return found
