"""The engine of a sweep: runs in batches, kept in a store; a killed sweep goes on from its last evaluations."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core import tree
from idiolect.core.errors import DivergedError
from idiolect.data.federated import FederatedData
from idiolect.runtime.batched import Member, Program, member_of, signature
from idiolect.runtime.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from idiolect.runtime.devices import Devices
from idiolect.runtime.memory import at_once
from idiolect.runtime.simulate import Simulation, State
from idiolect.study.experiment import Cell
from idiolect.study.loop import diverged, is_due
from idiolect.study.resolve import Workbench
from idiolect.study.search.folds import Folds
from idiolect.study.store import RunRow, Store
from idiolect.study.summary import summarise


@dataclass(frozen=True)
class Setting:
    """One method with one choice of what is swept; cell: a cell with this method alone."""

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
    """An entry with all that it runs by; done: nothing is left to do for it."""

    entry: Entry
    row: RunRow
    simulation: Simulation
    member: Member
    done: bool


@dataclass(frozen=True)
class _Chunk:
    """The runs of a group that go at once, by their places in it; some fill a place more than once."""

    program: Program
    rows: list[int]
    group: Sequence[_Run]
    capacity: int


@dataclass
class Sweeper:
    """Runs entries in batches and keeps them in a store; a killed sweep goes on from its last evaluations.

    memory: bytes that a batch may use. block: runs vmapped together. on_progress: (what is at work, share done).
    """

    store: Store
    bench: Workbench
    data: FederatedData
    folds: Folds | None
    memory: int
    block: int | None = None
    on_progress: Callable[[str, float], None] = lambda *_: None
    _data: dict[int, FederatedData] = field(default_factory=dict[int, FederatedData])
    _compiled: dict[Any, Program] = field(default_factory=dict[Any, Program])
    _earlier: dict[Any, Program] = field(default_factory=dict[Any, Program])

    def row(self, entry: Entry) -> RunRow:
        """How an entry is registered in the store."""
        cell, fold = entry.setting.cell, entry.fold
        if fold is not None and self.folds is not None:
            held = {**cell.data, "fold": fold, "folds": self.folds.count}
            cell = cell.model_copy(update={"id": f"{cell.id}, fold {fold + 1}", "data": held})
        return self.bench.row(cell, cell.methods[0], self.data, entry.seed)

    def _fold(self, fold: int | None) -> FederatedData:
        if fold is None or self.folds is None:
            return self.data
        if fold not in self._data:
            self._data = {fold: self.folds.data(fold)}  # one at a time: each is as large as the data
        return self._data[fold]

    def run(self, entries: Sequence[Entry], until: int, splits: Sequence[str] = ("validation",)) -> None:
        """Bring every entry to round `until`, evaluating the primary model on the splits; what diverges is noted.

        Entries that are there already keep their place in the batches: what is left runs in the very program of an
        undisturbed sweep, to the same bit.
        """
        ordered = sorted(entries, key=lambda e: -1 if e.fold is None else e.fold)
        rows = [self.store.start(self.row(entry)) for entry in ordered]
        done = [row.status == "diverged" or self._is_there(row, until, splits) for row in rows]
        for row, finished in zip(rows, done, strict=True):
            if finished and row.status == "running":  # killed before this was noted
                self.store.finish(row.id, "done")
        if all(done):
            return
        self._earlier, self._compiled = self._compiled, {}  # what the last entries compiled, these may use
        groups: dict[Any, list[_Run]] = {}
        made: dict[tuple[str, int | None], tuple[Simulation, Member]] = {}
        signed: dict[tuple[str, int | None], Any] = {}
        for entry, row, finished in zip(ordered, rows, done, strict=True):
            key = (row.label, entry.fold)
            if key not in made:
                made[key] = self._made(entry)
                signed[key] = signature(*made[key])
            groups.setdefault(signed[key], []).append(_Run(entry, row, *made[key], finished))
        for place, group in enumerate(groups.values()):
            if not all(run.done for run in group):
                self._run_group(group, until, splits, (place, len(groups)))

    def _made(self, entry: Entry) -> tuple[Simulation, Member]:
        cell, data = entry.setting.cell, self._fold(entry.fold)
        model = self.bench.make_model(cell, data, entry.seed)
        simulation = self.bench.simulation(cell, cell.methods[0], data, model)
        if self.folds is not None and entry.fold is not None:
            return simulation, self.folds.member(simulation, entry.fold)
        return simulation, member_of(simulation)

    def _run_group(self, group: Sequence[_Run], until: int, splits: Sequence[str], place: tuple[int, int]) -> None:
        program = self._program(group, Devices(rows=len(group)))
        keys = jax.vmap(jax.random.key)(jnp.asarray([run.entry.seed for run in group]))
        capacity, names = program.capacity(keys, until), program.like.algorithm.model_names[:1]
        size = at_once(
            len(group),
            self.memory,
            program.bytes_about,
            lambda rows: program.bytes_compiled(rows, capacity, splits, names),
        )
        if size < len(program.devices):
            program = self._program(group, Devices(rows=size))
        chunks = math.ceil(len(group) / size)
        for chunk in range(chunks):
            # A last chunk that is not full runs its last member more than once: the program is compiled once.
            rows = [min(chunk * size + i, len(group) - 1) for i in range(size)]
            if left := [row for row in rows if not group[row].done]:
                rows = [left[0] if group[row].done else row for row in rows]
                share = (place[0] + chunk / chunks) / place[1], 1 / chunks / place[1]
                self._run_chunk(_Chunk(program, rows, group, capacity), until, splits, share)

    def _program(self, group: Sequence[_Run], devices: Devices) -> Program:
        program = Program([r.simulation for r in group], [r.member for r in group], block=self.block, devices=devices)
        before = self._compiled.get(program.key) or self._earlier.get(program.key)
        if before is not None:
            program.adopt(before)
        self._compiled[program.key] = program
        return program

    def _run_chunk(self, chunk: _Chunk, until: int, splits: Sequence[str], share: tuple[float, float]) -> None:
        program, rows, runs = chunk.program, chunk.rows, [chunk.group[row] for row in chunk.rows]
        cell, primary = runs[0].entry.setting.cell, program.like.algorithm.model_names[0]
        first = {row: place for place, row in reversed([*enumerate(rows)])}  # where each run stands first
        states, spent = self._restored(chunk)
        rounds = np.asarray(states.round)
        reached = int(rounds.min())
        last = [run.row for run, round in zip(runs, rounds, strict=True) if round == reached]
        begin = reached + all(self._is_there(row, reached, splits) for row in last)
        due = [round for round in range(max(begin, 1), until + 1) if is_due(round, until, cell.eval_every)]
        failed: set[int] = set()
        for end in due:
            began = time.perf_counter()
            states = jax.block_until_ready(program.advance(rows, states, end, chunk.capacity))
            took = (time.perf_counter() - began) / len(first)
            scores = program.scores(rows, states, splits, (primary,))
            for row, place in first.items():
                run = chunk.group[row].row
                if row in failed:
                    continue
                spent[row] += took
                try:
                    program.like.raise_fault(one := tree.gather(states, place))
                    results = [(s, asdict(summarise(s, self.data.task))) for s in scores[place]]
                    for s, summary in results:
                        if not math.isfinite(summary["loss"]):
                            raise diverged(program.like, s, end)
                except DivergedError as error:
                    failed.add(row)
                    self.store.finish(run.id, "diverged", str(error))
                    continue
                if int(one.round) == end:
                    # The state first: whoever finds a score finds the state that it is of.
                    path = self.store.checkpoint_path(run.id)
                    save_checkpoint(path, Checkpoint(one, spent[row], 0.0), run.config_hash)
                    self.store.record(run.id, end, results, seconds=spent[row], compile_seconds=0.0)
            self.on_progress(f"{len(first)} runs, round {end}", share[0] + share[1] * end / until)
        for row in first:
            if row not in failed:
                self.store.finish(chunk.group[row].row.id, "done")

    def _restored(self, chunk: _Chunk) -> tuple[State, dict[int, float]]:
        """Where the runs of a chunk stand, leaves (members, ...), and the seconds spent on each."""
        runs = [chunk.group[row] for row in chunk.rows]
        seeds = [run.entry.seed for run in runs]
        params = {seed: self._params(runs[seeds.index(seed)].entry) for seed in {*seeds}}
        states = chunk.program.start(chunk.rows, seeds, [params[seed] for seed in seeds])
        kept = [
            load_checkpoint(self.store.checkpoint_path(run.row.id), tree.gather(states, i), run.row.config_hash)
            for i, run in enumerate(runs)
        ]
        if any(kept):
            each = [k.state if k else tree.gather(states, i) for i, k in enumerate(kept)]
            states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        return states, {row: k.seconds if k else 0.0 for row, k in zip(chunk.rows, kept, strict=True)}

    def _params(self, entry: Entry) -> Any:
        model = self.bench.make_model(entry.setting.cell, self.data, entry.seed)
        return eqx.filter(model, eqx.is_inexact_array)

    def _is_there(self, row: RunRow, round: int, splits: Sequence[str]) -> bool:
        return self.score(row, round, splits[-1]) is not None

    def score(self, row: RunRow, round: int, split: str) -> float | None:
        """A run's primary model's score in one round, if it is known."""
        found = self.store.scores(row.id, round, ALGORITHMS[row.method].model_names[0], split)
        return None if found is None else summarise(found, self.data.task).weighted
