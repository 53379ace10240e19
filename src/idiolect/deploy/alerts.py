"""Alerts: a command of the administrator's that gets an event as JSON on its standard input.

It runs in a thread, without a shell and with a time limit. Whatever it does, the run continues.
"""

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from idiolect.core.errors import reason_of

EVENTS = (
    "site missing",
    "refused",
    "rolled back",
    "certificate expires",
    "run ended",
    "run failed",
    "disk full",
)
"""The events that an alert is sent for."""
WAITING = 100
"""Alerts that wait for their turn, at most; further ones are dropped."""


class Alert(BaseModel):
    """The setting `alert` of `hub.json` and `site.toml`.

    command: program and arguments, each a text; none: no alerts. seconds: after which the command is killed. missing:
    rounds in a row without an answer of a site, after which it is an event. events: those that are wanted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    command: tuple[str, ...] = ()
    seconds: float = Field(default=10.0, gt=0, le=600)
    missing: int = Field(default=3, ge=1)
    events: tuple[str, ...] = EVENTS


class Alerter:
    """Sends alerts, one after the other.

    Args:
        alert: the setting.
        folder: where the command runs.
        failed: gets one line if the command cannot run, takes too long, or ends with an error.
    """

    def __init__(self, alert: Alert, folder: Path, failed: Callable[[str], None] = lambda _: None) -> None:
        self._alert, self._folder, self._failed = alert, folder, failed
        self._queue: queue.Queue[Mapping[str, Any] | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        if alert.command:
            self._thread.start()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Send an event if it is one of those that are wanted. Returns at once."""
        if not self._alert.command or event.get("event") not in self._alert.events:
            return
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._failed(f"more than {WAITING} alerts wait: one was dropped")

    def close(self) -> None:
        """Wait for the alerts that are under way, at most for two time limits."""
        if self._thread.is_alive():
            try:
                self._queue.put(None, timeout=self._alert.seconds)
            except queue.Full:
                return
            self._thread.join(2 * self._alert.seconds)

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            line = _ran(self._alert, self._folder, json.dumps(event, default=str).encode() + b"\n")
            if line:
                self._failed(line)


def _ran(alert: Alert, folder: Path, content: bytes) -> str:
    """Run the command; one line if it failed, else ""."""
    name = alert.command[0]
    try:
        done = subprocess.run(
            alert.command,
            input=content,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=alert.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the alert command '{name}' was stopped after {alert.seconds:g} s"
    except (OSError, ValueError) as error:
        return f"the alert command '{name}' cannot run: {reason_of(error)}"
    return f"the alert command '{name}' ended with code {done.returncode}" if done.returncode else ""
