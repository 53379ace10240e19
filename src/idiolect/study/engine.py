"""The engine behind compare, run and reproduce: every method of every cell with every seed, kept in a store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
from jaxtyping import PyTree

from idiolect.core.errors import DivergedError, StoreError
from idiolect.data.audit import audit_lines
from idiolect.data.federated import FederatedData
from idiolect.runtime.batched import Program
from idiolect.runtime.plan import State
from idiolect.study.experiment import Cell, Experiment, experiment_of
from idiolect.study.loop import fit
from idiolect.study.model_files import save_client_models
from idiolect.study.recorder import StoreRecorder, Together, everywhere
from idiolect.study.recording import Progress
from idiolect.study.resolve import Workbench, run_id
from idiolect.study.schedule import Schedule
from idiolect.study.store import RunRow, Store, changes

FINISHED = ("done", "diverged")

__all__ = ["Engine", "Group", "claim", "groups", "missing", "run_id", "run_serial", "stored_experiment"]


@dataclass(frozen=True)
class Group:
    """One method in one cell, for some seeds: what one process compiles once and runs."""

    cell: str
    title: str
    seeds: tuple[int, ...]


def groups(experiment: Experiment) -> list[Group]:
    """All work of an experiment."""
    return [Group(cell.id, m.title, experiment.seed_list) for cell in experiment.cells for m in cell.methods]


@dataclass
class Engine:
    """Runs groups and keeps them in a store. save_models: seeds whose client models are written as files."""

    store: Store
    bench: Workbench
    save_models: tuple[int, ...] = ()

    def is_finished(self, row: RunRow | None) -> bool:
        """Whether nothing is left to do for a run, its model files included."""
        if row is None or row.status not in FINISHED:
            return False
        wanted = row.status == "done" and row.seed in self.save_models
        return not wanted or self.store.models_folder(row).is_dir()

    def run_group(
        self, experiment: Experiment, group: Group, on_progress: Callable[[str, Progress], None] = lambda *_: None
    ) -> Iterator[RunRow]:
        """Run (or continue) one method in one cell for its seeds; a diverged run is recorded and the rest goes on."""
        cell = experiment.cell(group.cell)
        method = cell.method(group.title)
        data = self.bench.load(cell)
        self._audit(data)
        program: Program | None = None
        for seed in group.seeds:
            run = self.store.start(self.bench.row(cell, method, data, seed))
            if not self.is_finished(run):
                model = self.bench.make_model(cell, data, seed)
                if program is None:
                    program = self.bench.program(cell, method, data, model)
                run = self._run(cell, run, program, model, on_progress)
            yield run

    def _run(
        self,
        cell: Cell,
        run: RunRow,
        program: Program,
        model: eqx.Module,
        on_progress: Callable[[str, Progress], None],
    ) -> RunRow:
        schedule = schedule_of(cell, program.like.data)
        chooses = program.metrics[0] if cell.select == "best-validation" else None
        recorder = StoreRecorder(self.store, run, schedule, chooses)

        def report(progress: Progress) -> None:
            on_progress(run.id, progress)

        try:
            state = fit(
                program,
                schedule,
                seed=run.seed,
                params=eqx.filter(model, eqx.is_inexact_array),
                recorder=Together(recorder),
                file=self._rows(cell, run),
                on_progress=report,
            )
        except DivergedError as error:
            self.store.finish(run.id, "diverged", str(error))
        else:
            if run.seed in self.save_models:
                self._save(cell, recorder, program, state)
            self.store.finish(run.id, "done")
        row = self.store.run(run.id)
        assert row is not None
        return row

    def _rows(self, cell: Cell, run: RunRow) -> Path | None:
        """The file for a run's private states, if they are not held in memory."""
        return self.store.checkpoint_path(run.id).with_suffix(".private") if cell.private == "file" else None

    def _save(self, cell: Cell, recorder: StoreRecorder, program: Program, state: State) -> None:
        data = program.like.data
        for name in program.like.offered:
            chosen = everywhere(recorder.chosen(name, state))
            save_client_models(
                self.store.models_folder(recorder.run),
                name,
                models_of(program, chosen, name),
                program.like.objective,
                data=data,
                clients=[data.clients[i] for i in program.evaluator.ids],
                spec=cell.model if self.bench.model is None else None,
                extra={"run": recorder.run.id, "round": int(chosen.round)},
            )

    def _audit(self, data: FederatedData) -> None:
        """Keep the leakage audit of every data set with its runs; made once."""
        key = f"audit {data.fingerprint}"
        if self.store.fact(key) is None:
            self.store.set_fact(key, audit_lines(data))


def schedule_of(cell: Cell, data: FederatedData) -> Schedule:
    """When and on what a cell's runs are evaluated: of its splits, those that have samples."""
    splits = tuple(split for split in cell.splits if data.split(split).count)
    return Schedule(cell.rounds, cell.eval_every, cell.tail, splits)


def models_of(program: Program, state: State, name: str) -> PyTree:
    """One named model of the evaluated clients, leaves (n, ...), as a method names it."""
    return program.evaluator.client_models(program.like.devices.place(state), [name])[name]


def follow(bench: Workbench, experiment: Experiment, work: Sequence[Group], save_models: Sequence[int]) -> None:
    """What the other processes of a run do while the leader's engine keeps it: the same, and nothing is kept."""
    for group in work:
        cell = experiment.cell(group.cell)
        method = cell.method(group.title)
        data = bench.load(cell)
        program: Program | None = None
        for seed in group.seeds:
            model = bench.make_model(cell, data, seed)
            if program is None:
                program = bench.program(cell, method, data, model)
            params = eqx.filter(model, eqx.is_inexact_array)
            try:
                schedule = schedule_of(cell, data)
                state = fit(program, schedule, seed=seed, params=params, recorder=Together(None))
            except DivergedError:
                continue
            for name in program.like.offered if seed in save_models else ():
                models_of(program, everywhere(state), name)


def claim(store: Store, experiment: Experiment, runs: Sequence[RunRow]) -> None:
    """Tie a folder to one experiment; refuse another one in the same folder, naming what differs.

    runs: all of the experiment's, as they will be registered. More seeds, cells or methods are welcome.
    """
    new = experiment.model_dump(mode="json")
    old: dict[str, Any] | None = store.fact("experiment")
    for run in runs:
        store.check(run)
    if old is not None:
        for key in ("name", "protocol", "first_seed"):
            if old[key] != new[key]:
                raise StoreError(
                    f"'{store.folder}' holds an experiment with {key} {old[key]!r}, not {new[key]!r}; "
                    "use another --out"
                )
        cells = {cell["id"]: cell for cell in old["cells"]}
        started = {row.cell for row in store.runs()}
        for cell in new["cells"]:
            known = cells.get(cell["id"])
            if known is not None:
                if cell["id"] in started and (changed := changes(_settings(known), _settings(cell))):
                    raise StoreError(
                        f"'{store.folder}' holds runs of cell '{cell['id']}' with other settings (changed: "
                        f"{', '.join(changed)}); use another --out, or set it back"
                    )
                titles = {m["label"] or m["name"] for m in cell["methods"]}
                cell["methods"] += [m for m in known["methods"] if (m["label"] or m["name"]) not in titles]
        new["cells"] += [c for c in old["cells"] if c["id"] not in {cell["id"] for cell in new["cells"]}]
        new["seeds"] = max(new["seeds"], old["seeds"])
    store.set_fact("experiment", new)


def _settings(cell: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in cell.items() if key not in ("methods", *Cell.PRESENTATION)}


def stored_experiment(store: Store) -> Experiment:
    """The experiment a folder holds."""
    values = store.fact("experiment")
    if values is None:
        raise StoreError(f"'{store.folder}' holds no experiment")
    return experiment_of(values, str(store.folder))


def missing(engine: Engine, experiment: Experiment) -> list[Group]:
    """The groups, with the seeds, that are not finished yet."""
    rows = {row.id: row for row in engine.store.runs()}
    found: list[Group] = []
    for group in groups(experiment):
        left = [s for s in group.seeds if not engine.is_finished(rows.get(run_id(group.cell, group.title, s)))]
        if left:
            found.append(Group(group.cell, group.title, tuple(left)))
    return found


def run_serial(
    engine: Engine,
    experiment: Experiment,
    work: Sequence[Group],
    on_progress: Callable[[str, Progress], None] = lambda *_: None,
    on_done: Callable[[RunRow], None] = lambda _: None,
) -> None:
    """Run groups one after the other in this process."""
    for group in work:
        for row in engine.run_group(experiment, group, on_progress):
            on_done(row)
