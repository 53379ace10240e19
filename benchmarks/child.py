"""A system in a process of its own, seen from the run that drives it; see `worker` for what it understands."""

import json
import os
import re
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 600.0  # seconds after which a system that does not answer is given up


class Absent(Exception):
    """A system that cannot run here, or not any more; the message says why in one line."""


class Child:
    """The worker of one system on one workload. Raises `Absent` if it has no answer.

    python: its interpreter. checkout: a folder with another commit of idiolect, which is run in its place.
    """

    def __init__(
        self,
        system: str,
        workload: str,
        beginning: Path,
        *,
        quick: bool,
        python: str | None = None,
        checkout: Path | None = None,
    ) -> None:
        arguments = ["-m", "benchmarks.worker", system, workload, str(beginning), "quick" if quick else "full"]
        environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        folder = Path(__file__).parents[1] if checkout is None else checkout
        environment["PYTHONPATH"] = str(folder / "src")  # before what is installed
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed in `close`
        self.process = subprocess.Popen(
            [python or sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            env=environment,
            cwd=folder,
        )
        answer = self._answer()
        if "missing" in answer:
            self.close()
            raise Absent(f"not installed: {answer['missing']}")

    def rounds(self, count: int) -> tuple[float, float]:
        """Run so many rounds; the seconds of one, on the clock and of its process's threads."""
        answer = self._ask(f"rounds {count}")
        return answer["seconds"], answer["cpu"]

    def result(self) -> tuple[list[np.ndarray], int | None]:
        """What its rounds have made, and the gradients it took for it."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.npz"
            gradients = self._ask(f"result {path}")["gradients"]
            with np.load(path) as file:
                return [file[f"arr_{i}"] for i in range(len(file.files))], gradients

    def memory(self) -> float | None:
        """Peak resident memory in MB, its own processes added up; None where the system does not tell."""
        try:
            return sum(_peak(process) for process in _family(self.process.pid))
        except OSError:
            return None

    def close(self) -> None:
        """End the process."""
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            print(line, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise self._lost() from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], LIMIT)[0]:
            self.process.kill()
            raise Absent(f"no answer within {LIMIT:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise self._lost()
        return json.loads(line)

    def _lost(self) -> Absent:
        self.process.wait()
        self.said.seek(0)
        lines = [line.strip() for line in self.said if line.strip()]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
        why = [f"exit status {self.process.returncode}", *lines[-1:], *errors]
        return Absent(f"failed: {why[-1]}")


def _family(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += _family(int(child))
    return found


def _peak(pid: int) -> float:
    """VmHWM of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
