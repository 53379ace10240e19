"""`idiolect sweep` that counts its rounds and is killed at an instant.

python -m tests.killed_sweep LOG INSTANT COUNT sweep --data ...
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.cli import main as cli
from idiolect.runtime.program import Program
from idiolect.study.run import recorder
from idiolect.study.store.store import Store
from tests import engine
from tests.killed import kill

RECORDED, SAVED = "after a score was recorded, before its state was saved", "after a state was saved"


def counted(log: Path) -> Any:
    """`Program.advance`, which first writes down how many rounds x runs it is to do."""
    advance = Program.advance

    def writing(self: Program, rows: Sequence[int], states: Any, end: int, *more: Any) -> Any:
        before = dict(zip(rows, np.atleast_1d(states.round).tolist(), strict=True))
        with log.open("a") as file:
            file.write(json.dumps(sum(max(0, end - round) for round in before.values())) + "\n")
        return advance(self, rows, states, end, *more)

    return writing


if __name__ == "__main__":
    Program.advance = counted(Path(sys.argv[1]))
    recorder._CHECKPOINT_SECONDS = recorder._CHECKPOINT_SHARE = 0  # every evaluation is followed by a checkpoint
    if sys.argv[2] == RECORDED:
        Store.record = engine.dies(Store.record, int(sys.argv[3]), kill)
    elif sys.argv[2] == SAVED:
        recorder.save_checkpoint = engine.dies(recorder.save_checkpoint, int(sys.argv[3]), kill)
    sys.argv = ["idiolect", *sys.argv[4:]]
    cli.main()
