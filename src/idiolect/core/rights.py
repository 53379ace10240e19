"""Who may read files and folders: the one place that makes folders, and that sets rights.

What idiolect writes is for the user who runs it: files have the rights 0600 and new folders 0700, whatever the umask.
Only what is made to be passed on, such as reports and figures, is `shared`: it has the rights that the umask gives,
but none beyond those of its folder. So a report in a private folder is private, too. `files.atomic_write` follows it.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

PRIVATE_UMASK = 0o077
"""The umask of processes that write for the user only, such as the engine's and a site's trainer."""


def private(path: str, flags: int) -> int:
    """Open a file, as `opener` of `open`, that only its owner may read if it is new."""
    return os.open(path, flags, 0o600)


def create_file(path: Path, *, shared: bool = False) -> None:
    """Create an empty file with the rights of `atomic_write`, for a library that opens files by their names.

    One that is there keeps its content; unless it is shared, it loses the rights of others. Raises `OSError`.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if shared else 0o600))
        if shared:
            as_its_folder(path)
    if not shared:
        _restrict(path)


def make_folder(folder: Path, *, shared: bool = False) -> Path:
    """Make a folder and its parents, as far as they are missing, and return it. Raises `OSError`.

    New ones are private. shared: they have the rights that the umask gives, but none beyond those of their folder. A
    folder that is there keeps its rights.
    """
    if not folder.is_dir():
        try:
            if folder.parent != folder:
                make_folder(folder.parent, shared=shared)
        except FileExistsError:  # a part of the path is a file
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
        try:
            folder.mkdir(mode=0o777 if shared else 0o700)
        except FileExistsError:
            if not folder.is_dir():
                raise
            return folder  # another process has made it
        if shared:
            as_its_folder(folder)
    return folder


def restrict(folder: Path) -> None:
    """Take the rights of others from a folder and from everything in it; what belongs to another user stays."""
    for path in (folder, *folder.rglob("*")):
        _restrict(path)


def _restrict(path: Path) -> None:
    with suppress(OSError):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & 0o077:
            path.chmod(stat.S_IMODE(mode) & 0o700)


def as_its_folder(path: Path) -> None:
    """Take the rights from a new file or folder that its folder does not give."""
    with suppress(OSError):
        around, own = stat.S_IMODE(path.parent.stat().st_mode), stat.S_IMODE(path.stat().st_mode)
        # Who may not enter the folder may not read what is in it, also when it is moved elsewhere.
        allowed = sum(0o7 << shift for shift in (0, 3, 6) if around >> shift & 0o1)
        if own & ~allowed:
            path.chmod(own & allowed)
