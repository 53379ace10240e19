"""The engine of compare, run and reproduce: runs every method, cell and seed, and records them in a store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import PyTree

from idiolect.algorithms.base import Algorithm
from idiolect.core.errors import DivergedError
from idiolect.data.federated import FederatedData
from idiolect.runtime.program import Program
from idiolect.runtime.round import State
from idiolect.study.run.loop import fit
from idiolect.study.run.newcomers import score_held_out
from idiolect.study.run.recorder import StoreRecorder, Together, everywhere
from idiolect.study.run.recording import Progress, Schedule
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Cell, Experiment, run_id
from idiolect.study.store.model_files import save_client_models, write_index
from idiolect.study.store.predicted import is_recorded, predicted_of, record_predicted
from idiolect.study.store.recorded import record_audit, record_clients, record_method, record_relations
from idiolect.study.store.store import RunRow, Store

FINISHED = ("done", "diverged")


@dataclass(frozen=True)
class Group:
    """One method in one cell with several seeds: one process compiles it once and runs them all."""

    cell: str
    title: str
    seeds: tuple[int, ...]


def groups(experiment: Experiment) -> list[Group]:
    """List all groups of an experiment, each with all seeds."""
    return [Group(cell.id, m.title, experiment.seed_list) for cell in experiment.cells for m in cell.methods]


@dataclass
class Engine:
    """Runs groups and records them in a store. save_models: seeds whose client models are written as files."""

    store: Store
    bench: Workbench
    save_models: tuple[int, ...] = ()

    def is_finished(self, row: RunRow | None) -> bool:
        """Whether a run has ended and its model files, if they are wanted, exist."""
        if row is None or row.status not in FINISHED:
            return False
        needs_models = row.status == "done" and row.seed in self.save_models
        return not needs_models or self.store.models_folder(row).is_dir()

    def run_group(
        self, experiment: Experiment, group: Group, on_progress: Callable[[str, Progress], None] = lambda *_: None
    ) -> Iterator[RunRow]:
        """Run or resume a group, yielding each seed's run. A diverged run is recorded, and the next seed follows."""
        cell = experiment.cell(group.cell)
        method = cell.method(group.title)
        program: Program | None = None
        for seed in group.seeds:
            data = self.bench.load(cell, seed)
            record_clients(self.store, data, cell.eval_clients)
            run = self.store.start(self.bench.row(cell, method, data, seed))
            if not self.is_finished(run):
                problem = self.bench.problem(cell, data, seed)
                if program is None or program.like.data is not data:
                    program = self.bench.program(cell, method, problem)
                run = self._run(cell, run, program, problem.params, on_progress)
            record_audit(self.store, data)  # after the run: whoever waits for its first round need not wait for this
            yield run

    def _run(
        self,
        cell: Cell,
        run: RunRow,
        program: Program,
        params: PyTree,
        on_progress: Callable[[str, Progress], None],
    ) -> RunRow:
        schedule = schedule_of(cell, program.like.data, program.like.algorithm)
        metric = program.metrics[0] if cell.select == "best-validation" else None
        recorder = StoreRecorder(self.store, run, schedule, metric)

        def report(progress: Progress) -> None:
            on_progress(run.id, progress)

        record_method(self.store, run, program.like)
        try:
            state = fit(
                program,
                schedule,
                seed=run.seed,
                params=params,
                recorder=Together(recorder),
                file=self._rows(cell, run),
                on_progress=report,
            )
        except DivergedError as error:
            self.store.finish(run.id, "diverged", str(error))
        else:
            if run.seed in self.save_models:
                self._save(cell, recorder, program, state)
            states = {name: recorder.chosen(name, state) for name in program.like.offered}
            record_relations(self.store, run, program.like, state)
            score_held_out(self.store, run, program.like, params, program.metrics, states)
            self.store.finish(run.id, "done")
        row = self.store.run(run.id)
        assert row is not None
        return row

    def _rows(self, cell: Cell, run: RunRow) -> Path | None:
        """The file of a run's private states; None if they are held in memory."""
        return self.store.checkpoint_path(run.id).with_suffix(".private") if cell.private == "file" else None

    def _save(self, cell: Cell, recorder: StoreRecorder, program: Program, state: State) -> None:
        data = program.like.data
        written: list[dict[str, Any]] = []
        predicted: dict[str, list[Any]] = {}
        ids = program.evaluator.ids
        for name in program.like.offered:
            selected = everywhere(recorder.chosen(name, state))
            models = models_of(program, selected, name)
            if is_recorded(data, len(ids)):
                predicted[name] = predicted_of(program.like.objective, models, data, ids)
            written += save_client_models(
                self.store.models_folder(recorder.run),
                name,
                models,
                program.like.objective,
                data=data,
                clients=[data.clients[i] for i in ids],
                spec=cell.model if self.bench.model is None else None,
                extra={"run": recorder.run.id, "round": int(selected.round)},
            )
        write_index(self.store.models_folder(recorder.run), cell.id, recorder.run.method, written)
        record_predicted(self.store, recorder.run, predicted)


def schedule_of(cell: Cell, data: FederatedData, method: Algorithm) -> Schedule:
    """Build the evaluation schedule of a cell's runs of a method, on the splits that have samples."""
    splits = tuple(split for split in cell.splits if data.split(split).count)
    return Schedule(
        cell.rounds,
        cell.eval_every,
        cell.tail,
        splits,
        until_settled=cell.stop == "settled",
        settling=method.settling,
    )


def models_of(program: Program, state: State, name: str) -> PyTree:
    """One named model of the evaluated clients, leaves (n, ...), or as `Shared`."""
    return program.evaluator.client_models(program.like.devices.place(state), [name])[name]


def follow(bench: Workbench, experiment: Experiment, work: Sequence[Group], save_models: Sequence[int]) -> None:
    """Run the leader's groups in another process of a distributed run, recording nothing."""
    for group in work:
        cell = experiment.cell(group.cell)
        method = cell.method(group.title)
        program: Program | None = None
        for seed in group.seeds:
            data = bench.load(cell, seed)
            problem = bench.problem(cell, data, seed)
            if program is None or program.like.data is not data:
                program = bench.program(cell, method, problem)
            try:
                schedule = schedule_of(cell, data, program.like.algorithm)
                state = fit(program, schedule, seed=seed, params=problem.params, recorder=Together(None))
            except DivergedError:
                continue
            for name in program.like.offered if seed in save_models else ():
                models_of(program, everywhere(state), name)


def missing(engine: Engine, experiment: Experiment) -> list[Group]:
    """List the groups that are not finished, each with its unfinished seeds."""
    rows = {row.id: row for row in engine.store.runs()}
    unfinished: list[Group] = []
    for group in groups(experiment):
        seeds = [s for s in group.seeds if not engine.is_finished(rows.get(run_id(group.cell, group.title, s)))]
        if seeds:
            unfinished.append(Group(group.cell, group.title, tuple(seeds)))
    return unfinished


def run_serial(
    engine: Engine,
    experiment: Experiment,
    work: Sequence[Group],
    on_progress: Callable[[str, Progress], None] = lambda *_: None,
    on_done: Callable[[RunRow], None] = lambda _: None,
) -> None:
    """Run the groups one after the other in this process."""
    for group in work:
        for row in engine.run_group(experiment, group, on_progress):
            on_done(row)
