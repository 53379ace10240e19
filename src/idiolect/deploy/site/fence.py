"""The fence: of several processes that work for one site, only the one with the newest call may change its state.

An engine's old worker lives on for seconds beside the new job's, and a call that was given up runs on. Calls are
ordered by (job, number): a hub numbers its jobs by the time (`hub.config.next_job`), and counts its calls in a job.
A number that lies more than a day ahead of this machine's clock is refused and changes nothing: a hub whose clock is
wrong for an hour must not lock out every later job.
"""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write
from idiolect.core.reading import json_of
from idiolect.core.rights import make_folder

Ticket = tuple[int, int]
"""(job, number of the call in it)."""
AHEAD = 86_400
"""Seconds by which a job's number may lie ahead of this machine's clock."""


class Fence:
    """A file with the newest call, and a lock that holds across processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._file = folder, folder / "fence.json"

    @contextmanager
    def enter(self, ticket: Ticket, seconds: float) -> Generator[None]:
        """Hold the lock, for a call that is the newest or newer. Raises `StoreError` for an older one, and for a job
        whose number lies far ahead.
        """
        if _is_ahead(ticket):
            raise StoreError(
                f"job {ticket[0]} has a number that no clock reaches within a day; compare the clocks of hub and site"
            )
        try:
            make_folder(self.folder)
            lock = FileLock(self.folder / "fence.lock", timeout=max(seconds, 0), mode=0o600)
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
            values = json_of(self._file.read_bytes())
            newest = int(values["job"]), int(values["call"])
            return (-1, -1) if _is_ahead(newest) else newest
        except FileNotFoundError:
            return -1, -1
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"cannot read {self._file} ({error}); remove it if no job runs") from None


def _is_ahead(ticket: Ticket) -> bool:
    return ticket[0] > time.time() + AHEAD


def _told(ticket: Ticket) -> str:
    return f"{ticket[1]} of job {ticket[0]}"
