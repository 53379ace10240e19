"""What a site notes and what `idiolect site run` does while the site's process runs: events, alerts and metrics."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from idiolect.core.repeating import repeating
from idiolect.deploy.alerts import Alert, Alerter
from idiolect.deploy.events import FILE, EventLog, Tail
from idiolect.deploy.messages import Message
from idiolect.deploy.metrics import Measure, memory_of, serving

LOOK, RARELY = 1.0, 60.0
"""Seconds between two reads of the folder, and between two checks of disk and certificate."""
LEAST_DISK, WARN_DAYS = 200_000_000, 30


def answered(events: EventLog, caller: str, call: Message, answer: Message, seconds: float) -> None:
    """Write the event of one answer: a call that the site refused, or what it has done.

    Args:
        events: the site's log.
        caller: who called.
        call: the call, as it came; its header is not trusted.
        answer: what is sent.
        seconds: that it took.
    """
    header = call.header
    task, run, round = (header.get(name) for name in ("task", "run", "round"))
    about: dict[str, Any] = {"task": str(task)[:40], "run": str(run or "")[:200], "seconds": round_to_ms(seconds)}
    about |= {"round": round + 1} if isinstance(round, int) else {}
    if answer.error:
        text = f"the call '{about['task']}' of '{caller}' was not answered: {answer.error}"
        kind = "disk full" if "No space left" in answer.error else "refused"
        events.write(kind, text, "warning", reason=answer.error, **about)
        return
    text = f"{about['task']} for '{caller}' done in {seconds:.2f} s, {answer.size:,} bytes sent"
    events.write("run ended" if task == "finish" else "answered", text, bytes=answer.size, **about)


def round_to_ms(seconds: float) -> float:
    """Seconds, rounded to milliseconds."""
    return round(seconds, 3)


@dataclass
class SiteMonitor:
    """Watches one site's folder.

    folder: the site's; alert: its setting; expires: the end of its certificate, None if it has none; pid: its
    process.
    """

    folder: Path
    alert: Alert
    expires: datetime | None
    pid: Callable[[], int | None] = lambda: None
    count: dict[str, float] = field(default_factory=dict[str, float])
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.events, self._tail = EventLog(self.folder, "site run"), Tail(self.folder / FILE, end=True)
        self._alerter = Alerter(self.alert, self.folder, self._failed)
        self.events.listen(self._alerter)
        self._full, self._warned, self._looked = False, -1, -1e9
        self._last, self._round = 0.0, 0.0

    def look(self) -> None:
        """Look at the folder once: count, and alert."""
        for line in self._tail():
            if line.get("process") != os.getpid():  # what this process writes is passed on directly
                self._alerter(line)
            if line.get("event") in ("answered", "run ended"):
                self.count["answered"] = self.count.get("answered", 0) + 1
                self.count["bytes"] = self.count.get("bytes", 0) + float(line.get("bytes", 0))
                if line.get("task") == "round":
                    self._last, self._round = float(line.get("seconds", 0)), float(line.get("round", 0))
            elif line.get("event") == "refused":
                self.count["refused"] = self.count.get("refused", 0) + 1
        if self.clock() - self._looked >= RARELY:
            self._looked = self.clock()
            self._disk()
            self._certificate()

    def measures(self) -> Iterator[Measure]:
        """The metrics."""
        yield Measure("site_round", "The newest round that the site has answered.", {"": self._round})
        yield Measure("site_round_seconds", "Seconds of the site's newest round.", {"": self._last})
        names = {"answered": "Calls answered.", "refused": "Calls refused.", "bytes": "Bytes of vectors sent."}
        for name, text in names.items():
            yield Measure(f"site_{name}", text, {"": self.count.get(name, 0.0)}, counter=True)
        yield Measure("site_memory_bytes", "Memory of the site's processes.", {"": memory_of(self.pid())})
        if self.expires is not None:
            yield Measure("site_certificate_days", "Days until the certificate expires.", {"": self._days()})

    def _days(self) -> float:
        assert self.expires is not None
        return (self.expires - datetime.now(UTC)).total_seconds() / 86400

    def _disk(self) -> None:
        try:
            free = shutil.disk_usage(self.folder).free
        except OSError:
            return
        if free < LEAST_DISK and not self._full:
            text = f"{free / 1e6:,.0f} MB are free for {self.folder}: make room for {LEAST_DISK / 1e6:,.0f} MB"
            self.events.write("disk full", text, "error", free=free)
        self._full = free < LEAST_DISK

    def _certificate(self) -> None:
        """Warn once a day."""
        if self.expires is None or (days := self._days()) >= WARN_DAYS or int(days) == self._warned:
            return
        self._warned = int(days)
        text = f"this site's certificate expires on {self.expires:%Y-%m-%d}: renew it (idiolect site renew)"
        self.events.write("certificate expires", text, "warning", days=round(days, 2))

    def _failed(self, line: str) -> None:
        self.events.write("alert failed", line, "warning")

    @contextmanager
    def watching(self, metrics: int | None = None) -> Generator[None]:
        """Look at the folder every second inside the block, and serve metrics if a port is given.

        Raises as `metrics.serving`.
        """
        with contextlib.ExitStack() as stack:
            if metrics is not None:
                stack.enter_context(serving(metrics, self.measures))
            try:
                self.events.write("started", "the site has started")
                with repeating(self.look, LOOK):
                    yield
                self.events.write("stopped", "the site has stopped")
            except Exception as error:
                self.events.write("run failed", f"the site has failed: {error}", "error")
                raise
            finally:
                self.look()
                self._alerter.close()
                self.events.close()
