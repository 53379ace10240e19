"""What a hub's command does during its run: events, alerts, a line every few seconds, and metrics."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from idiolect.core.errors import IdiolectError
from idiolect.core.repeating import repeating
from idiolect.deploy.alerts import Alerter
from idiolect.deploy.events import FILE, EventLog, Tail
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.received import read_now
from idiolect.deploy.hub.status import Ledger, certificates
from idiolect.deploy.metrics import Measure, memory_of, serving

LOOK, SILENCE, RARELY = 1.0, 8.0, 60.0
"""Seconds between two reads of the folder, after which a line is due, and between two checks of disk and dates."""
LEAST_DISK = 200_000_000
"""Bytes; with less free space than this an alert says that the disk is full."""
_WORDS = {
    "hello": "greet the hub",
    "summary": "summarise their columns",
    "join": "load their data and join",
    "begin": "begin the run",
    "round": "train",
    "evaluate": "evaluate",
    "finish": "write their models",
}


@dataclass
class Monitor:
    """Watches one hub's folder.

    folder, config: of the hub; total: rounds of all runs; say: prints a line; own: "hub" and "lead" -> the end of
    their certificates; pid: the hub's process; clock: in seconds.
    """

    folder: Path
    config: HubConfig
    total: int
    say: Callable[[str], None]
    own: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    pid: Callable[[], int | None] = lambda: None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.events, self.ledger = EventLog(self.folder, "hub run"), Ledger(self.folder)
        self.ledger.read()  # what was before is not alerted again
        self._alerter = Alerter(self.config.alert, self.folder, self._failed)
        self.events.listen(self._alerter)
        self._tail, self._lock = Tail(self.folder / FILE, end=True), threading.Lock()
        self._told: set[str] = {site for site, view in self.ledger.sites.items() if view.in_a_row >= self._most}
        self._warned, self._full = dict[str, int](), False
        self._doing, self._since = "starting", self.clock()
        self._spoken, self._looked = self.clock(), -1e9

    @property
    def _most(self) -> int:
        return self.config.alert.missing

    def report(self, line: str) -> None:
        """Print a line about what the supervisor does, and log it."""
        with self._lock:
            self._doing, self._since, self._spoken = line, self.clock(), self.clock()
        self.say(line)
        self.events.write("supervisor", line)

    def look(self) -> None:
        """Look at the folder once: log, alert, and print a line if none was printed for some seconds."""
        for line in self._tail():
            if line.get("process") != os.getpid():  # what this process writes is passed on directly
                self._alerter(line)
        self.ledger.read()
        self._sites()
        if self.clock() - self._looked >= RARELY:
            self._looked = self.clock()
            self._disk()
            self._certificates()
        if self.clock() - self._spoken >= SILENCE:
            self._spoken = self.clock()
            self.say(self.line())

    def line(self) -> str:
        """Return the state in one line."""
        done = f"{sum(self.ledger.done.values())} of {self.total} rounds done"
        waits = read_now(self.folder)
        if waits is None or not waits.get("task"):
            return f"{done}; {self._doing} ({self.clock() - self._since:.0f} s ago)"
        sites, task = ", ".join(map(str, waits.get("sites", ()))), str(waits["task"])
        where = f"{waits.get('run')}, round {waits['round'] + 1}: " if task == "round" else ""
        seconds = 0.0
        with contextlib.suppress(ValueError, TypeError):
            seconds = (datetime.now(UTC) - datetime.fromisoformat(str(waits["time"]))).total_seconds()
        limit = f"{seconds:.0f} s of at most {waits['deadline']:g} s"
        if seconds > waits["deadline"]:  # the hub itself computes, or its job was killed
            return f"{done}; {where}the hub is at work after '{task}' ({seconds:.0f} s)"
        return f"{done}; {where}waiting for {sites} to {_WORDS.get(task, task)} ({limit})"

    def measures(self) -> Iterator[Measure]:
        """The metrics."""
        self.ledger.read()
        sites, last = self.ledger.sites, self.ledger.last
        yield Measure("rounds_done", "Rounds done, of all runs.", {"": sum(self.ledger.done.values())})
        yield Measure("rounds", "Rounds of all runs.", {"": self.total})
        yield Measure("round_seconds", "Seconds of the last round.", {"": float(last.get("seconds", 0.0))})
        each = {site: view.seconds for site, view in sites.items() if view.seconds is not None}
        yield Measure("site_seconds", "Seconds of a site's last answer.", each, "site")
        missing = {site: view.missing for site, view in sites.items()}
        yield Measure("missing", "Rounds without an answer.", missing, "site", counter=True)
        in_a_row = {site: view.in_a_row for site, view in sites.items()}
        yield Measure("missing_in_a_row", "Rounds without an answer since the last one.", in_a_row, "site")
        refused = {site: view.refused for site, view in sites.items()}
        yield Measure("refused", "Messages that the hub refused.", refused, "site", counter=True)
        moved = {"down": self.ledger.bytes_down, "up": self.ledger.bytes_up}
        yield Measure("bytes", "Bytes of vectors.", moved, "direction", counter=True)
        yield Measure("memory_bytes", "Memory of the hub's processes.", {"": memory_of(self.pid())})
        days = {who: of["days"] for who, of in certificates(self.folder, self.own).items()}
        yield Measure("certificate_days", "Days until a certificate expires.", days, "of")

    def _sites(self) -> None:
        """Events for sites that have been missing for too long, and for those that are back."""
        for site, view in self.ledger.sites.items():
            if view.in_a_row >= self._most and site not in self._told and site not in self.config.left:
                self._told.add(site)
                text = f"site '{site}' has not answered in {view.in_a_row} rounds in a row: {view.reason}"
                fields = {"site": site, "rounds": view.in_a_row, "reason": view.reason}
                self.events.write("site missing", text, "warning", **fields)
            elif view.in_a_row == 0 and site in self._told:
                self._told.discard(site)
                self.events.write("site back", f"site '{site}' answers again", site=site)

    def _disk(self) -> None:
        try:
            free = shutil.disk_usage(self.folder).free
        except OSError:
            return
        full = free < LEAST_DISK
        if full and not self._full:
            text = f"{free / 1e6:,.0f} MB are free for {self.folder}: make room for {LEAST_DISK / 1e6:,.0f} MB"
            self.events.write("disk full", text, "error", free=free)
        self._full = full

    def _certificates(self) -> None:
        """Warn once per certificate and day."""
        for who, of in certificates(self.folder, self.own).items():
            day = int(of["days"])
            if of["warn"] and self._warned.get(who) != day:
                self._warned[who] = day
                text = f"the certificate of {who} expires on {of['expires'][:10]}: renew it (idiolect hub renew)"
                self.events.write("certificate expires", text, "warning", of=who, **of)
                self.say(text)

    def _failed(self, line: str) -> None:
        self.events.write("alert failed", line, "warning")

    @contextmanager
    def watching(self, metrics: int | None = None) -> Generator[None]:
        """Look at the folder every second inside the block, and serve metrics if a port is given.

        How the block ends is an event. Raises as `metrics.serving`.
        """
        with contextlib.ExitStack() as stack:
            if metrics is not None:
                stack.enter_context(serving(metrics, self.measures))
            try:
                with repeating(self.look, LOOK):
                    yield
                self.look()
                self.events.write("ended", "all rounds are done")
            except KeyboardInterrupt:
                self.events.write("stopped", "stopped by Ctrl-C or a signal; the same command resumes")
                raise
            except Exception as error:
                known = isinstance(error, IdiolectError)
                why = str(error) if known else type(error).__name__
                kind = "disk full" if "No space left" in why else "run failed"
                self.events.write(kind, f"the run has failed: {why}", "error", reason=why)
                raise
            finally:
                self._alerter.close()
                self.events.close()
