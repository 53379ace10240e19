"""Who may read what: every file below a folder that others than its owner can reach."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def loose(folder: Path) -> list[str]:
    """The folder and everything in it that gives a right to anybody but its owner, with its rights."""
    found: list[str] = []
    for path in (folder, *folder.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & 0o077:
            found.append(f"{stat.S_IMODE(mode):o} {path.relative_to(folder.parent)}")
    return found


def mode(path: Path) -> int:
    """The rights of a file or folder."""
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(value: int) -> Generator[None]:
    """Inside the block new files and folders lose these rights; 0: none."""
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)
