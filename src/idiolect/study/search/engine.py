"""The engine of a sweep: runs in batches, recorded in a store; a killed sweep resumes from its checkpoints."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.data.federated import FederatedData
from idiolect.metrics.base import Metric
from idiolect.runtime.checkpoint import saved_round
from idiolect.runtime.devices import Devices
from idiolect.runtime.members import Member
from idiolect.runtime.memory import at_once
from idiolect.runtime.program import Program, member_of, signature
from idiolect.runtime.simulate import Simulation
from idiolect.study.run.loop import Run, run_together
from idiolect.study.run.recorder import StoreRecorder
from idiolect.study.run.recording import Progress, Schedule
from idiolect.study.run.resolve import Workbench
from idiolect.study.search.folds import Folds
from idiolect.study.spec.experiment import Cell
from idiolect.study.store.recorded import record_method
from idiolect.study.store.store import RunRow, Store


@dataclass(frozen=True)
class Setting:
    """One method with one value of each swept key. values: key -> value; cell: a cell with this method only."""

    values: Mapping[str, Any]
    cell: Cell

    @property
    def method(self) -> str:
        """The method's name."""
        return self.cell.methods[0].name


@dataclass(frozen=True)
class Entry:
    """One run of a sweep: a setting, a seed, and in cross-validation the fold that is held out."""

    setting: Setting
    seed: int
    fold: int | None = None


@dataclass(frozen=True)
class _Run:
    """An entry with its store row, simulation and program member. done: whether it is finished."""

    entry: Entry
    row: RunRow
    simulation: Simulation
    member: Member
    done: bool


@dataclass
class Sweeper:
    """Runs entries in batches and records them in a store.

    memory: bytes that a batch may use. metrics: the metrics to measure; settings are compared by the first. block:
    runs vmapped together. on_progress: called with (a text, share done).
    """

    store: Store
    bench: Workbench
    data: FederatedData
    folds: Folds | None
    memory: int
    metrics: tuple[Metric, ...]
    block: int | None = None
    on_progress: Callable[[str, float], None] = lambda *_: None
    _data: dict[int, FederatedData] = field(default_factory=dict[int, FederatedData])

    def row(self, entry: Entry) -> RunRow:
        """Build the store's row of an entry."""
        cell, fold = entry.setting.cell, entry.fold
        if fold is not None and self.folds is not None:
            data = {**cell.data, "fold": fold, "folds": self.folds.count}
            cell = cell.model_copy(update={"id": f"{cell.id}, fold {fold + 1}", "data": data})
        return self.bench.row(cell, cell.methods[0], self.data, entry.seed, single=False)

    def _fold(self, fold: int | None) -> FederatedData:
        if fold is None or self.folds is None:
            return self.data
        if fold not in self._data:
            self._data = {fold: self.folds.data(fold)}  # only one is held: each is as large as the data
        return self._data[fold]

    def run(self, entries: Sequence[Entry], until: int, splits: Sequence[str] = ("validation",)) -> None:
        """Run every entry to round `until`, and evaluate its primary model on the splits; divergence is recorded.

        Finished entries keep their places in the batches. So a resumed sweep runs the same programs as one that was
        never stopped, and gives the same bits.
        """
        ordered = sorted(entries, key=lambda e: -1 if e.fold is None else e.fold)
        rows = [self.store.start(self.row(entry)) for entry in ordered]
        done = [row.status == "diverged" or self._is_finished(row, until, splits) for row in rows]
        for row, finished in zip(rows, done, strict=True):
            if finished and row.status == "running":  # killed before its status was written
                self.store.finish(row.id, "done")
        if all(done):
            return
        groups: dict[Any, list[_Run]] = {}
        built: dict[tuple[str, int | None], tuple[Simulation, Member]] = {}
        signatures: dict[tuple[str, int | None], Any] = {}
        for entry, row, finished in zip(ordered, rows, done, strict=True):
            key = (row.label, entry.fold)
            if key not in built:
                built[key] = self._simulation_and_member(entry)
                signatures[key] = signature(*built[key])
                if "test" in splits:  # what a report compares; a sweep may try thousands of settings
                    record_method(self.store, row, built[key][0])
            groups.setdefault(signatures[key], []).append(_Run(entry, row, *built[key], finished))
        for place, group in enumerate(groups.values()):
            if not all(run.done for run in group):
                self._run_group(group, until, splits, (place, len(groups)))

    def _simulation_and_member(self, entry: Entry) -> tuple[Simulation, Member]:
        cell, data = entry.setting.cell, self._fold(entry.fold)
        simulation = self.bench.simulation(cell, cell.methods[0], self.bench.problem(cell, data, entry.seed))
        if self.folds is not None and entry.fold is not None:
            return simulation, self.folds.member(simulation, entry.fold)
        return simulation, member_of(simulation)

    def _run_group(self, group: Sequence[_Run], until: int, splits: Sequence[str], place: tuple[int, int]) -> None:
        program = self._program(group, Devices(rows=len(group)))
        seeds = [run.entry.seed for run in group]
        capacity, names = program.capacity(seeds, until), program.like.algorithm.model_names[:1]
        size = at_once(
            len(group),
            self.memory,
            program.bytes_about,
            lambda rows: program.bytes_compiled(rows, capacity, splits, names),
        )
        if size < len(program.devices):
            program = self._program(group, Devices(rows=size))
        params = {run.entry.seed: self._params(run.entry) for run in group}
        cell = group[0].entry.setting.cell
        schedule = Schedule(until, cell.eval_every, splits=tuple(splits), models=names, initial=False)
        runs = [
            Run(
                run.simulation,
                run.entry.seed,
                params[run.entry.seed],
                StoreRecorder(self.store, run.row, schedule),
                row,
            )
            for row, run in enumerate(group)
        ]
        portions = math.ceil(len(group) / size)
        for portion in range(portions):
            # Free places and those of finished runs hold copies of other runs: one compiled program serves all.
            rows = [min(portion * size + i, len(group) - 1) for i in range(size)]
            if waiting := [row for row in rows if not group[row].done]:
                rows = [waiting[0] if group[row].done else row for row in rows]
                share = (place[0] + portion / portions) / place[1], 1 / portions / place[1]
                self._run_portion(program, [runs[row] for row in rows], schedule, capacity, share)

    def _program(self, group: Sequence[_Run], devices: Devices) -> Program:
        simulations = [run.simulation for run in group]
        if len(group) == 1 and group[0].entry.fold is None:
            return Program(simulations, metrics=self.metrics)
        members = [run.member for run in group]
        return Program(simulations, members, block=self.block, devices=devices, metrics=self.metrics)

    def _run_portion(
        self, program: Program, runs: Sequence[Run], schedule: Schedule, capacity: int, share: tuple[float, float]
    ) -> None:
        distinct = dict.fromkeys(runs)

        def report(progress: Progress) -> None:
            done = share[0] + share[1] * progress.round / max(progress.rounds, 1)
            self.on_progress(f"{len(distinct)} runs, round {progress.round}", done)

        _, failed = run_together(program, runs, schedule, capacity=capacity, on_progress=report)
        for run in distinct:
            assert isinstance(run.recorder, StoreRecorder)
            error = failed.get(run)
            self.store.finish(run.recorder.run.id, "diverged" if error else "done", str(error) if error else "")

    def _params(self, entry: Entry) -> Any:
        return self.bench.problem(entry.setting.cell, self.data, entry.seed).params

    def _is_finished(self, row: RunRow, round: int, splits: Sequence[str]) -> bool:
        """Whether a run is finished: it has its score in this round, and the state of this round is saved."""
        if self.score(row, round, splits[-1]) is None:
            return False
        return row.status == "done" or saved_round(self.store.checkpoint_path(row.id)) >= round

    def score(self, row: RunRow, round: int, split: str) -> float | None:
        """The score of a run's primary model in one round, over all samples; None if it was not evaluated."""
        scores = self.store.scores(row.id, round, ALGORITHMS[row.method].model_names[0], split)
        return None if scores is None else scores.pooled[self.metrics[0].name]
