"""A process that runs the tiny experiment and is killed at an instant: python -m tests.killed OUT INSTANT."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from idiolect.runtime import checkpoint
from idiolect.runtime.private_rows import PrivateRows
from idiolect.study.run import engine as experiment
from idiolect.study.run import recorder
from idiolect.study.store import model_files
from idiolect.study.store.store import Store
from tests import engine

INSTANTS = ("after the second commit", "while the third checkpoint is written", "while client models are written")
ROWS = "while private states are written"
POPULATION = "while private states of a large population are written"
SETTINGS: dict[str, dict[str, Any]] = {
    ROWS: {"private": "file"},
    POPULATION: {
        "private": "file",
        "data": {"name": "synthetic-population", "clients": 100_000, "max_size": 30, "validation": 0.2},
        "eval_clients": 20,
    },
}


def kill() -> None:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def arm(instant: str) -> None:
    """Arrange for the death, and for a checkpoint at each evaluation."""
    recorder._CHECKPOINT_SECONDS = recorder._CHECKPOINT_SHARE = 0
    if instant == INSTANTS[0]:
        Store.record = engine.dies(Store.record, 2, kill)
    elif instant == INSTANTS[1]:
        checkpoint.atomic_write = half_written(3)
    elif instant in SETTINGS:
        PrivateRows.write = engine.dies(PrivateRows.write, 5, kill)
    elif instant == INSTANTS[2]:
        model_files.save_model = engine.dies(model_files.save_model, 2, kill)
    assert experiment.save_client_models is model_files.save_client_models


def half_written(at: int) -> Any:
    """A writer that dies in the middle of its file number `at`."""
    whole, count = checkpoint.atomic_write, 0

    @contextmanager
    def writer(path: Path) -> Generator[Any, None, None]:
        nonlocal count
        count += 1
        with whole(path) as file:
            if count == at:
                write = file.write

                class Dying:
                    def write(self, data: Any) -> None:
                        write(bytes(data)[: len(data) // 2])
                        file.flush()
                        if len(data) > 1000:
                            kill()

                yield Dying()
            else:
                yield file

    return writer


if __name__ == "__main__":
    arm(sys.argv[2])
    engine.run(engine.experiment(**SETTINGS.get(sys.argv[2], {"select": "best-validation"})), Path(sys.argv[1]))
