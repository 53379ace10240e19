"""A small federation of real processes to which something happens while it runs."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.sites.federation import Place, processes
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.nvflare.provision import Kits
from idiolect.study.spec.experiment import Experiment

PATIENCE = 120.0
"""Seconds after which what is waited for will not happen."""


@dataclass(frozen=True)
class Row:
    """One event. seen: what was observed; seconds: of the event; good: whether it went as it must."""

    event: str
    seen: str
    seconds: float | str
    good: bool


@dataclass
class Live:
    """A run that goes on. told: what its supervisor has said; submitted: when it gave the hub the first job."""

    out: Path
    kits: Kits
    place: Place
    told: list[str] = field(default_factory=list[str])
    submitted: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)

    def lines(self) -> list[dict[str, Any]]:
        """All rounds' lines."""
        return list(Participation(self.out).lines())

    def rounds(self) -> int:
        """Rounds done."""
        return max((line["round"] + 1 for line in self.lines()), default=0)

    def wait(self, what: Callable[[], bool], limit: float = PATIENCE) -> bool:
        """Wait until something is so; False if the run has ended before, or `limit` seconds have passed."""
        end = time.monotonic() + limit
        while not what():
            if self.ended.wait(0.02) or time.monotonic() > end:
                return what()
        return True

    def after(self, rounds: int) -> bool:
        """Wait for so many more rounds."""
        wanted = self.rounds() + rounds
        return self.wait(lambda: self.rounds() >= wanted)

    def missing(self) -> list[tuple[int, dict[str, str]]]:
        """(round, why each missing site is missing), of the rounds in which one was."""
        return [(line["round"], line["missing"]) for line in self.lines() if line["missing"]]


def live(
    out: Path, experiment: Experiment, data: FederatedData, act: Callable[[Live], None], **settings: Any
) -> Live:
    """Run between real processes to the end while `act` does something to it; what `act` raises is raised here."""
    failed = list[BaseException]()
    with processes(out, experiment, data, **settings) as (kits, place, supervise):
        run = Live(out, kits, place)

        def acting() -> None:
            try:
                act(run)
            except BaseException as error:
                failed.append(error)

        def tell(line: str) -> None:
            run.told.append(line)
            if line.startswith("job 1 has started"):
                run.submitted = time.time()
            print(f"  {line}", flush=True)

        thread = threading.Thread(target=acting, daemon=True)
        thread.start()
        try:
            supervise(tell)
        finally:
            run.ended.set()
            thread.join()
    if failed:
        raise failed[0]
    return run
