"""One system on one workload in a process of its own, told by lines on standard input what to do.

    rounds N     run N rounds; answers {"seconds": of one, "cpu": seconds of all its threads}
    result PATH  write the result to a .npz file; answers {"gradients": taken so far}

The first answer is {"ready": true}, or {"missing": "the packages it lacks"}. What libraries print goes to standard
error.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.peers import make, missing
from benchmarks.samples import Given
from benchmarks.workloads import named, smaller


def main() -> None:
    """Serve until the input ends. Arguments: the system, the workload, the file with the beginning, quick or full."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)

        def answer(**values: object) -> None:
            print(json.dumps(values), file=out, flush=True)

        name, workload, beginning, form = sys.argv[1:]
        if lacks := missing(name):
            answer(missing=lacks)
            return
        work = smaller(named(workload)) if form == "quick" else named(workload)
        system = make(name, work, Given.load(Path(beginning)))
        answer(ready=True)
        for line in sys.stdin:
            command, _, argument = line.strip().partition(" ")
            if command == "rounds":
                count, began, busy = int(argument), time.perf_counter(), time.process_time()
                system.rounds(count)
                cpu = (time.process_time() - busy) / count
                answer(seconds=(time.perf_counter() - began) / count, cpu=cpu)
            else:
                np.savez(argument, *system.result())
                answer(gradients=system.gradients)
        system.close()


if __name__ == "__main__":
    main()
