"""The fence: of several processes that work for one site, only the one with the newest call may change its state.

An engine's old worker lives on for seconds beside the new job's, and a call that was given up runs on. Calls are
ordered by (job, number): the hub counts its jobs, and its calls in a job.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write

Ticket = tuple[int, int]
"""(job, number of the call in it)."""


class Fence:
    """A file with the newest call, and a lock that holds across processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._file = folder, folder / "fence.json"

    @contextmanager
    def enter(self, ticket: Ticket, seconds: float) -> Generator[None]:
        """Hold the lock, for a call that is the newest or newer. Raises `StoreError` for an older one."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / "fence.lock", timeout=max(seconds, 0))
            lock.acquire()
        except Timeout:
            raise StoreError(f"another process works for this site and did not end within {seconds:g} s") from None
        except OSError as error:
            raise StoreError(f"cannot write to '{self.folder}': {error.strerror or error}") from error
        try:
            newest = self._newest()
            if ticket < newest:
                raise StoreError(f"call {_told(ticket)} is late: {_told(newest)} has been answered or begun")
            if ticket > newest:
                with atomic_write(self._file) as file:
                    file.write(json.dumps({"job": ticket[0], "call": ticket[1]}).encode())
            yield
        finally:
            lock.release()

    def _newest(self) -> Ticket:
        try:
            values = json.loads(self._file.read_bytes())
            return int(values["job"]), int(values["call"])
        except FileNotFoundError:
            return -1, -1
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"cannot read {self._file} ({error}); remove it if no job runs") from None


def _told(ticket: Ticket) -> str:
    return f"{ticket[1]} of job {ticket[0]}"
