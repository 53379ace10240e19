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

from idiolect import tree
from idiolect.algorithms.registry import ALGORITHMS
from idiolect.batched import Member, Program, default_memory, member_of, signature
from idiolect.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from idiolect.config import Cell
from idiolect.data.federated import FederatedData
from idiolect.errors import DivergedError
from idiolect.fit import diverged
from idiolect.folds import Folds
from idiolect.simulate import Simulation
from idiolect.store import RunRow, Store
from idiolect.summary import summarise
from idiolect.workbench import Workbench


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


@dataclass
class Sweeper:
    """Runs entries in batches and keeps them in a store; a killed sweep goes on from its last evaluations.

    memory: bytes that a batch may use. block: runs vmapped together. on_progress: (what is at work, share done).
    """

    store: Store
    bench: Workbench
    data: FederatedData
    folds: Folds | None = None
    memory: int | None = None
    block: int | None = None
    on_progress: Callable[[str, float], None] = lambda *_: None
    _data: dict[int, FederatedData] = field(default_factory=dict[int, FederatedData])

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
        """Bring every entry to round `until`, evaluating the primary model on the splits; what diverges is noted."""
        todo: list[tuple[Entry, RunRow]] = []
        for entry in sorted(entries, key=lambda e: -1 if e.fold is None else e.fold):
            row = self.store.start(self.row(entry))
            if row.status != "diverged" and self.score(row, until, splits[-1]) is None:
                todo.append((entry, row))
        groups: dict[Any, list[tuple[Entry, RunRow, Simulation, Member]]] = {}
        made: dict[tuple[str, int | None], tuple[Simulation, Member]] = {}
        for entry, row in todo:
            cell, key = entry.setting.cell, (row.label, entry.fold)
            if key not in made:
                data = self._fold(entry.fold)
                model = self.bench.make_model(cell, data, entry.seed)
                simulation = self.bench.simulation(cell, cell.methods[0], data, model)
                if self.folds is not None and entry.fold is not None:
                    member = self.folds.member(simulation, entry.fold)
                else:
                    member = member_of(simulation)
                made[key] = simulation, member
            groups.setdefault(signature(*made[key]), []).append((entry, row, *made[key]))
        for done, group in enumerate(groups.values()):
            self._run_group(group, until, splits, (done, len(groups)))

    def _run_group(
        self,
        group: list[tuple[Entry, RunRow, Simulation, Member]],
        until: int,
        splits: Sequence[str],
        place: tuple[int, int],
    ) -> None:
        program = Program([g[2] for g in group], [g[3] for g in group], block=self.block)
        fits = max(1, (self.memory or default_memory()) // max(program.bytes_each(), 1))
        chunks = math.ceil(len(group) / fits)
        size = math.ceil(len(group) / chunks)
        for chunk in range(chunks):
            # A last chunk that is not full runs its last member more than once: the program is compiled once.
            rows = [min(chunk * size + i, len(group) - 1) for i in range(size)]
            self._run_chunk(program, rows, group, until, splits, ((place[0] + chunk / chunks) / place[1], place[1]))

    def _run_chunk(
        self,
        program: Program,
        rows: list[int],
        group: list[tuple[Entry, RunRow, Simulation, Member]],
        until: int,
        splits: Sequence[str],
        place: tuple[float, int],
    ) -> None:
        entries, runs = [group[row][0] for row in rows], [group[row][1] for row in rows]
        cell, primary = entries[0].setting.cell, program.like.algorithm.model_names[0]
        params = {seed: self._params(cell, seed) for seed in {e.seed for e in entries}}
        states = program.start(rows, [e.seed for e in entries], [params[e.seed] for e in entries])
        kept = [
            load_checkpoint(self.store.checkpoint_path(run.id), tree.gather(states, i), run.config_hash)
            for i, run in enumerate(runs)
        ]
        if any(kept):
            each = [k.state if k else tree.gather(states, i) for i, k in enumerate(kept)]
            states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        spent = {run.id: (k.seconds if k else 0.0) for run, k in zip(runs, kept, strict=True)}
        reached = int(np.min(np.asarray(states.round)))
        due = [r for r in range(reached + 1, until + 1) if r % cell.eval_every == 0 or r == until] or [until]
        failed: set[str] = set()
        for end in due:
            began = time.perf_counter()
            states = jax.block_until_ready(program.advance(rows, states, end))
            took = (time.perf_counter() - began) / len({*rows})
            scores = program.scores(rows, states, splits, (primary,))
            for i, run in enumerate(runs):
                if run.id in failed or (i and rows[i] == rows[i - 1]):
                    continue
                spent[run.id] += took
                try:
                    program.like.raise_fault(one := tree.gather(states, i))
                    results = [(s, asdict(summarise(s, self.data.task))) for s in scores[i]]
                    for s, summary in results:
                        if not math.isfinite(summary["loss"]):
                            raise diverged(program.like, s, end)
                except DivergedError as error:
                    failed.add(run.id)
                    self.store.finish(run.id, "diverged", str(error))
                    continue
                if int(one.round) == end:
                    self.store.record(run.id, end, results, seconds=spent[run.id], compile_seconds=0.0)
                    path = self.store.checkpoint_path(run.id)
                    save_checkpoint(path, Checkpoint(one, spent[run.id], 0.0), run.config_hash)
            self.on_progress(f"{len({*rows})} runs, round {end}", place[0] + end / until / place[1] / 2)
        for run in runs:
            if run.id not in failed:
                self.store.finish(run.id, "done")

    def _params(self, cell: Cell, seed: int) -> Any:
        model = self.bench.make_model(cell, self.data, seed)
        return eqx.filter(model, eqx.is_inexact_array)

    def score(self, row: RunRow, round: int, split: str) -> float | None:
        """A run's primary model's score in one round, if it is known."""
        found = self.store.scores(row.id, round, ALGORITHMS[row.method].model_names[0], split)
        return None if found is None else summarise(found, self.data.task).weighted
