"""Rounds on samples in a file against the same rounds on samples in memory: seconds a round, and the memory held.

    python -m benchmarks.from_disk FOLDER                          # 20 GB: 5,000 clients of 2,000 rows, 500 features
    python -m benchmarks.from_disk FOLDER --clients 500            # 2 GB
    python -m benchmarks.from_disk FOLDER --cgroup /sys/fs/cgroup/memory/small

FedAvg trains MLP 500-100-2 for --epochs in batches of 20; a cohort has 10 clients, whose rows are 40 MB. In memory
there is a twentieth of the clients, so that rounds are of equal size. Each is a process of its own; they take turns.
Before each stretch of rounds the system forgets what it has read of the file. The folder is made if it is missing.
--cgroup: a control group with a limit of memory, in which the process with the file runs; root can make one.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import jax
import numpy as np
from rich.console import Console

from idiolect.algorithms.registry import build
from idiolect.core.memory import aligned_empty
from idiolect.data import FederatedData, FolderWriter, load_data
from idiolect.data.federated import SPLITS, Split
from idiolect.runtime.devices import use_cores
from idiolect.study.spec.assemble import problem_of

ROWS, TEST, FEATURES, COHORT, SHARE = 2_000, 20, 500, 10, 20


def write(folder: Path, clients: int) -> None:
    """Write clients with logistic labels, each with a relation near the common one."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=FEATURES) / np.sqrt(FEATURES)
    with FolderWriter(folder, task="classification", classes=("no", "yes"), name="from disk") as out:
        for number in range(clients):
            x = rng.standard_normal((ROWS + TEST, FEATURES), np.float32)
            odds = x @ (4 * common + rng.normal(size=FEATURES) / FEATURES)
            y = (rng.random(len(x)) < 1 / (1 + np.exp(-odds))).astype(np.int32)
            out.add(f"client {number + 1}", train=(x[TEST:], y[TEST:]), test=(x[:TEST], y[:TEST]))


def first_clients(data: FederatedData, count: int) -> FederatedData:
    """The first clients, with their samples in memory."""
    splits = dict[str, Split]()
    for name in SPLITS:
        split = data.stored(name)
        offsets = split.offsets[: count + 1]
        x = aligned_empty((int(offsets[-1]), *split.feature_shape))
        x[:] = split.x[: offsets[-1]]
        splits[name] = replace(split, x=x, y=split.y[: offsets[-1]], offsets=offsets)
    return replace(data, clients=data.clients[:count], **splits)


def forget(path: Path) -> None:
    """Let the system forget what it has read of a file."""
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def held() -> int:
    """Bytes of memory that this process holds for itself, without what the system can read again from a file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def serve(folder: Path, in_memory: bool, epochs: int) -> None:
    """Run as many rounds as each line of the input says, and answer with the seconds of one and the bytes held."""
    use_cores()
    data = load_data(folder)
    if in_memory:
        data = first_clients(data, max(COHORT + 1, data.num_clients // SHARE))
    problem = problem_of(data, {"name": "mlp", "hidden": [100]})
    method = build({"name": "fedavg", "rate": 0.05, "batch_size": 20, "local_steps": epochs * ROWS // 20})
    simulation = problem.simulation(method, cohort=COHORT, rounds=10**6)
    state = simulation.init(0)
    for line in sys.stdin:
        if not in_memory:
            forget(folder / "train.x.npy")
        began = time.perf_counter()
        state = simulation.advance(state, int(line))
        jax.block_until_ready(state.shared)
        print((time.perf_counter() - began) / int(line), held(), flush=True)


def answers(
    folder: Path, in_memory: bool, epochs: int, cgroup: Path | None
) -> Generator[tuple[float, int], int, None]:
    """Start a process, send it the rounds of a stretch, and give what it answers; the first is not measured."""
    arguments = [sys.executable, "-m", "benchmarks.from_disk", str(folder), "--serve", "--epochs", str(epochs)]

    def limited() -> None:
        if cgroup is not None:
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))

    process = subprocess.Popen(
        [*arguments, *(["--in-memory"] if in_memory else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=None if in_memory else limited,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        rounds = yield 0.0, 0
        while True:
            rounds = yield _ask(process.stdin, process.stdout, rounds)
    finally:
        process.stdin.close()
        process.wait()


def _ask(into: IO[str], out: IO[str], rounds: int) -> tuple[float, int]:
    into.write(f"{rounds}\n")
    into.flush()
    seconds, memory = out.readline().split()
    return float(seconds), int(memory)


def main() -> None:
    """Make the folder if it is missing, then measure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.from_disk", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of a stretch")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--cgroup", type=Path, default=None)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--in-memory", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.folder, args.in_memory, args.epochs)
        return
    console = Console()
    if not args.folder.exists():
        began = time.perf_counter()
        write(args.folder, args.clients)
        console.print(f"written in {time.perf_counter() - began:.0f} s")
    both = [answers(args.folder, in_memory, args.epochs, args.cgroup) for in_memory in (True, False)]
    measure(both, args.rounds, args.repeats, console)
    console.print(f"file: {(args.folder / 'train.x.npy').stat().st_size / 1e9:.1f} GB")


def measure(
    both: Sequence[Generator[tuple[float, int], int, None]], rounds: int, repeats: int, console: Console
) -> None:
    """Print the median seconds in memory and from disk, their ratio, and the memory held."""
    for one in both:
        next(one)
        one.send(1)  # compile
    times: list[list[float]] = [[], []]
    memory = [0, 0]
    for _ in range(repeats):
        for place, one in enumerate(both):
            seconds, bytes_held = one.send(rounds)
            times[place].append(seconds)
            memory[place] = max(memory[place], bytes_held)
    for one in both:
        one.close()
    ratios = [memory / disk for memory, disk in zip(*times, strict=True)]
    for name, found, bytes_held in zip(("in memory", "from disk"), times, memory, strict=True):
        console.print(f"{name}: {statistics.median(found):.4f} s a round, {bytes_held / 1e9:.2f} GB held")
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    console.print(f"in memory / from disk: median {statistics.median(ratios):.2f}, each pair {each}")


if __name__ == "__main__":
    main()
