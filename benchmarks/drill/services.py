"""Commands of idiolect as an administrator runs them, and as services that are started again after a failure."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError

ROOT = Path(__file__).parents[2]
LONGEST = 600.0
"""Seconds for one command."""
BURST, WITHIN = 8, 300.0
"""A service that fails so many times within so many seconds is given up."""
_PDEATHSIG = 1


FEW_THREADS = {"OPENBLAS_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
"""One thread for linear algebra, since many processes share a core. It changes sums in their last bits."""


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of all processes: this checkout, and `FEW_THREADS`."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**os.environ, **FEW_THREADS, "PYTHONPATH": path, **(more or {})}


def command(*arguments: object) -> str:
    """Run a command of idiolect to its end; what it printed. Raises `StoreError` with its last lines if it fails."""
    return called([sys.executable, "-m", "idiolect", *map(str, arguments)], " ".join(map(str, arguments[:2])))


def values(*arguments: object) -> dict[str, Any]:
    """Run a command of idiolect with --json; its values."""
    return json.loads(command(*arguments, "--json"))


def called(line: list[str], name: str, cwd: Path | None = None, more: Mapping[str, str] | None = None) -> str:
    """Run a program to its end; what it printed. Raises `StoreError` with its last lines if it fails."""
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        stdin=subprocess.DEVNULL,
        env=environment(more),
        cwd=cwd,
    )
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
        raise StoreError(f"{name}: {' | '.join(lines[-3:])}")
    return done.stdout


def _with_parent() -> None:
    """End the service if the drill is killed: the kernel sends it SIGTERM, and it ends what it has started."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGTERM)


class Service:
    """A command that is started again whenever it fails or is killed: what systemd does with `Restart=on-failure`.

    log: gets its output. more: variables of its environment. starts: how often it was started.
    """

    def __init__(self, log: Path, *arguments: object, more: Mapping[str, str] | None = None) -> None:
        self.line, self.log, self.more = [sys.executable, "-m", "idiolect", *map(str, arguments)], log, more
        self.starts, self.gave_up = 0, False
        self.process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        failures = list[float]()
        while not self._stopping.is_set():
            with self.log.open("ab") as out:
                self.process = subprocess.Popen(
                    self.line,
                    stdout=out,
                    stderr=out,
                    stdin=subprocess.DEVNULL,
                    env=environment(self.more),
                    preexec_fn=_with_parent,
                )
            self.starts += 1
            if self.process.wait() == 0:
                return
            failures = [at for at in failures if at > time.monotonic() - WITHIN] + [time.monotonic()]
            self.gave_up = len(failures) >= BURST
            if self.gave_up or self._stopping.wait(2):
                return

    @property
    def runs(self) -> bool:
        """Whether it has not ended by itself."""
        return self._thread.is_alive()

    def signal(self, number: int) -> None:
        """Send a signal to the command, not to what it has started."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def stop(self, limit: float = 60.0) -> None:
        """End it as systemd does, with SIGTERM; kill what is left after `limit` seconds."""
        self._stopping.set()
        self.signal(signal.SIGTERM)
        self._thread.join(limit)
        self.signal(signal.SIGKILL)
        self._thread.join(10)

    def words(self, lines: int = 3) -> str:
        """The last lines of its log."""
        try:
            return " | ".join(self.log.read_text(errors="replace").strip().splitlines()[-lines:])
        except OSError:
            return ""
