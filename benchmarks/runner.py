"""Systems side by side: timed in turn, repeat by repeat, then compared in what they made of one start."""

import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from scipy.stats import binom

from benchmarks.beginning import beginning
from benchmarks.child import Absent, Child
from benchmarks.counts import PRODUCT
from benchmarks.oracle import distance, expected, start_of
from benchmarks.peers import BEFORE, OWN
from benchmarks.workloads import Workload

CHECKED = 2  # rounds after which results are compared
CLOSE = 1e-4
LEAST = 0.2  # seconds of a timing of idiolect's rounds, of which the first touches memory for the first time
YARDSTICKS = ("gemm", "torch-gemm")
PAUSE = 0.5
"""Seconds before each timing: OpenMP's threads wait for more work on their cores for 0.2 s after the last."""


@dataclass
class Measured:
    """One system on one workload.

    seconds: of a round, one number for each repeat; cpu: those of its own process's threads, which a busy machine
    changes less. first: of the first rounds, with compilation. memory: peak MB.
    distance: of its result from idiolect's after the same rounds. skipped: why there is nothing, else empty.
    """

    system: str
    seconds: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])
    first: float = 0.0
    memory: float | None = None
    distance: float | None = None
    skipped: str = ""

    @property
    def median(self) -> float:
        """Median seconds of a round."""
        return statistics.median(self.seconds)


@dataclass
class Comparison:
    """All systems on one workload; peak: GFLOP/s of each yardstick's product, timed between them."""

    work: Workload
    systems: list[Measured]
    peak: dict[str, float]

    def of(self, system: str) -> Measured | None:
        """One system's measurement, if it ran."""
        return next((m for m in self.systems if m.system == system and m.seconds), None)

    def cpu_ratio(self, peer: str) -> float | None:
        """The same in seconds of their threads."""
        own, other = self.of(OWN), self.of(peer)
        return statistics.median(other.cpu) / statistics.median(own.cpu) if own and other else None

    def ratio(self, peer: str) -> float | None:
        """How many times a peer's round is as long as idiolect's."""
        own, other = self.of(OWN), self.of(peer)
        return other.median / own.median if own and other else None

    def interval(self, peer: str) -> tuple[float, float] | None:
        """95 % interval of the median of the repeats' ratios, by their order; None of fewer than six repeats.

        The median lies between the k-th least and the k-th largest of n ratios with probability 1 - 2 P(B < k), where
        B ~ Bin(n, 1/2).
        """
        own, other = self.of(OWN), self.of(peer)
        if own is None or other is None:
            return None
        ratios = sorted(theirs / ours for ours, theirs in zip(own.seconds, other.seconds, strict=True))
        outside = int(binom.ppf(0.025, len(ratios), 0.5))  # the least k with P(B <= k) of at least 2.5 %
        return (ratios[outside - 1], ratios[-outside]) if outside else None


@dataclass(frozen=True)
class Runner:
    """How to measure.

    pythons: interpreters of systems that have their own. report: hears what is going on. before: a checkout of
    another commit of idiolect, timed as one more system.
    """

    repeats: int
    quick: bool
    pythons: dict[str, str]
    report: Callable[[str], None]
    before: Path | None = None

    def compare(self, work: Workload) -> Comparison:
        """Time all systems on a workload, then check that they do equal work."""
        comparison = self.timed(work)
        for measured in comparison.systems:
            if measured.system != OWN and measured.seconds:
                self.report(f"{work.name}: results of {measured.system}")
                try:
                    measured.distance = self.checked(work, measured.system)
                except Absent as absent:
                    measured.seconds, measured.skipped = [], f"its result could not be checked: {absent}"
        return comparison

    def timed(self, work: Workload) -> Comparison:
        """Rounds of every system in turn."""
        earlier = (BEFORE,) if self.before else ()
        systems = [Measured(name) for name in (OWN, *earlier, *work.peers, *YARDSTICKS)]
        with ExitStack() as stack:
            start = self._start(stack, work, (self.repeats + 1) * work.rounds)
            children: dict[str, Child] = {}
            counts: dict[str, int] = {}
            for measured in systems:
                self.report(f"{work.name}: starting {measured.system}")
                with _noting(measured):
                    child = self._child(stack, measured.system, work, start)
                    measured.first = child.rounds(work.rounds)[0] * work.rounds
                    children[measured.system] = child
                    counts[measured.system] = work.rounds
                    if measured.system in (OWN, BEFORE):  # the others have mini-batches for so many rounds only
                        counts[measured.system] *= math.ceil(LEAST / (child.rounds(work.rounds)[0] * work.rounds))
            for repeat in range(self.repeats):
                self.report(f"{work.name}: repeat {repeat + 1} of {self.repeats}")
                # In another order each time: what went before a system costs it time.
                for measured in random.Random(repeat).sample(systems, len(systems)):
                    if measured.system in children and not measured.skipped:
                        with _noting(measured):
                            time.sleep(PAUSE)
                            seconds, cpu = children[measured.system].rounds(counts[measured.system])
                            measured.seconds.append(seconds)
                            measured.cpu.append(cpu)
            for measured in systems:
                if measured.seconds and not measured.skipped:
                    measured.memory = children[measured.system].memory()
        peak = {m.system: PRODUCT / m.median / 1e9 for m in systems if m.system in YARDSTICKS and m.seconds}
        return Comparison(work, [m for m in systems if m.system not in YARDSTICKS], peak)

    def checked(self, work: Workload, peer: str) -> float:
        """Distance of a peer's result from idiolect's. Raises `Absent` if it took another number of gradients."""
        with ExitStack() as stack:
            start = self._start(stack, work, CHECKED, **start_of(work, peer))
            results = []
            for name in (OWN, peer):
                child = self._child(stack, name, work, start)
                child.rounds(CHECKED)
                result, gradients = child.result()
                results.append(result)
        if peer != BEFORE and gradients != (wanted := expected(work, CHECKED)):
            raise Absent(f"it took {gradients} gradients of a sample, not {wanted}")
        return distance(*results)

    def _start(
        self, stack: ExitStack, work: Workload, rounds: int, *, rows: bool = False, alike: bool = False
    ) -> Path:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder) / "beginning.npz"
        beginning(work, rounds, rows=rows, alike=alike).save(path)
        return path

    def _child(self, stack: ExitStack, system: str, work: Workload, start: Path) -> Child:
        python, checkout = self.pythons.get(system), self.before if system == BEFORE else None
        name = OWN if system == BEFORE else system
        child = Child(name, work.name, start, quick=self.quick, python=python, checkout=checkout)
        stack.callback(child.close)
        return child


class _noting:
    """Turns `Absent` into the reason why a system is skipped."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, Absent):
            self.measured.skipped, self.measured.seconds = str(error), []
            return True
        return False


def below(comparisons: Iterable[Comparison], floors: dict[str, dict[str, float]]) -> list[str]:
    """What a check finds: ratios below their floors, results that differ, and systems that were to be compared."""
    found: list[str] = []
    for comparison in comparisons:
        name = comparison.work.name
        for peer, floor in floors.get(name, {}).items():
            ratio = comparison.ratio(peer)
            if ratio is None:
                found.append(f"{name}: {peer} did not run, so its floor of {floor:g} cannot be checked")
            elif ratio < floor:
                found.append(f"{name}: {ratio:.2f} times as fast as {peer}, the floor is {floor:g}")
        for measured in comparison.systems:
            if measured.distance is not None and not measured.distance < CLOSE:
                found.append(f"{name}: the result of {measured.system} is {measured.distance:.1e} from idiolect's")
    return found
