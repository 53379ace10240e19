"""The pulse of a folder of runs: a small file that the process at work renews, for whoever looks on."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write

FILE = "progress.json"
FRESH = 15.0
"""Seconds after which a pulse that was not renewed is of a process that is gone."""


@dataclass(frozen=True)
class Pulse:
    """How far the runs are. time: when it was written, in seconds since 1970; seconds: since the process began.

    done, total: rounds of all runs, or the share of a sweep and 1; speed: of them a second, None if not known yet.
    runs: run id -> (rounds done, rounds a second) of those at work. text: what is at work, in words.
    """

    time: float
    seconds: float
    done: float
    total: float
    speed: float | None = None
    runs: Mapping[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    text: str = ""

    @property
    def fresh(self) -> bool:
        """Whether the process that wrote it is still at work."""
        return abs(time.time() - self.time) < FRESH

    @property
    def left(self) -> float | None:
        """Seconds left; None if not known yet."""
        return (self.total - self.done) / self.speed if self.speed else None

    def write(self, folder: Path) -> None:
        """Renew the file. What cannot be written is left out: nothing depends on it."""
        with suppress(StoreError), atomic_write(folder / FILE, shared=True) as file:
            file.write(json.dumps(asdict(self)).encode())


def read_pulse(folder: Path) -> Pulse | None:
    """The folder's pulse; None if there is none that can be read."""
    try:
        values = json.loads((folder / FILE).read_bytes())
        runs = {str(name): (int(round), float(rate)) for name, (round, rate) in values["runs"].items()}
        numbers = {key: float(values[key]) for key in ("time", "seconds", "done", "total")}
        speed = None if values["speed"] is None else float(values["speed"])
        return Pulse(**numbers, speed=speed, runs=runs, text=str(values["text"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def end_pulse(folder: Path) -> None:
    """Remove the file: the process ends."""
    with suppress(OSError):
        (folder / FILE).unlink()
