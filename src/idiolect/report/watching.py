"""Looking on from another process: when is a run over?"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from idiolect.report.standing import Standing, standing_of
from idiolect.study.run.following import Follower
from idiolect.study.store.store import DATABASE

GRACE = 20.0
"""Seconds that a run which has begun may be without a process at work before the watching ends."""


class Watching:
    """A folder of runs, looked at again and again, by several threads. clock: in seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._follower, self._lock = Follower(folder), threading.Lock()
        self._seen, self._silent = False, clock() - _age(folder / DATABASE)
        self.standing = standing_of(self._follower.read())

    def look(self) -> Standing:
        """Look again. Raises `StoreError` if what is there cannot be read."""
        with self._lock:
            self.standing = standing_of(self._follower.read())
            if self.standing.alive or not self.standing.begun:
                self._silent = self.clock()
            self._seen = self._seen or self.standing.alive
            return self.standing

    def ended(self) -> bool:
        """Whether nothing more will happen: all runs have ended, or the process at work has."""
        if not self.standing.begun or self.standing.alive:
            return False
        return self.standing.over or self._seen or self.clock() - self._silent > GRACE


def _age(file: Path) -> float:
    """Seconds since a database was written to; 0 if there is none."""
    times = [path.stat().st_mtime for path in (file, file.with_name(f"{file.name}-wal")) if path.is_file()]
    return max(time.time() - max(times), 0.0) if times else 0.0
