"""The engine behind compare, run and reproduce: every method of every cell with every seed, kept in a store."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from idiolect.algorithms import registry as methods
from idiolect.checkpoint import load_checkpoint, save_checkpoint
from idiolect.config import Cell, Experiment, Method, digest
from idiolect.data import audit
from idiolect.data import registry as sources
from idiolect.data.federated import FederatedData
from idiolect.errors import ConfigError, DivergedError, StoreError
from idiolect.evaluate import Evaluator
from idiolect.fit import Evaluated, Progress, fit
from idiolect.model_files import save_client_models
from idiolect.models import build as build_model
from idiolect.models import check_model, l2_of
from idiolect.objective import objective_of
from idiolect.provenance import provenance
from idiolect.simulate import Simulation, State
from idiolect.store import RunRow, Store
from idiolect.summary import higher_is_better

_CHECKPOINT_SECONDS = 5.0


@dataclass(frozen=True)
class Group:
    """One method in one cell, for some seeds: what one process compiles once and runs."""

    cell: str
    title: str
    seeds: tuple[int, ...]


def groups(experiment: Experiment) -> list[Group]:
    """All work of an experiment."""
    return [Group(cell.id, m.title, experiment.seed_list) for cell in experiment.cells for m in cell.methods]


def run_id(cell: str, title: str, seed: int) -> str:
    """The name of one run inside its folder."""
    return f"{cell}/{title}/seed{seed}"


class StoreRecorder:
    """Keeps a run in a store: metrics in SQLite, then the checkpoint; the best state by validation if asked."""

    def __init__(self, store: Store, run: RunRow, cell: Cell, better: Callable[[float, float], bool]) -> None:
        self.store, self.run, self.cell, self.better = store, run, cell, better
        self.hash = digest(run.config_hash, run.data_hash)
        self.best: dict[str, float] = {}
        self._saved = 0.0

    def restore(self, like: State) -> tuple[State, float, float] | None:
        """The checkpoint's state; evaluations beyond it are forgotten and will be made again."""
        state = load_checkpoint(self.store.checkpoint_path(self.run.id), like, self.hash)
        self.store.rewind(self.run.id, int(state.round) if state is not None else -1)
        if state is None:
            return None
        for model in self.store.models(self.run.id):
            for _, score, _ in self.store.curve(self.run.id, model, "validation"):
                self._improves(model, score)
        row = self.store.run(self.run.id)
        return state, row.seconds if row else 0.0, row.compile_seconds if row else 0.0

    def _improves(self, model: str, score: float) -> bool:
        if model in self.best and not self.better(score, self.best[model]):
            return False
        self.best[model] = score
        return True

    def best_path(self, model: str) -> Path:
        """The checkpoint of the round that was best on validation data for one named model."""
        path = self.store.checkpoint_path(self.run.id)
        return path.with_name(f"{path.stem}.best-{model}.eqx")

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Metrics first, then the checkpoint: at the end, and else every few seconds."""
        if self.cell.select == "best-validation":
            for scores, summary in evaluated.results:
                if scores.split == "validation" and self._improves(scores.model, summary.weighted):
                    save_checkpoint(self.best_path(scores.model), evaluated.state, self.hash)
        self.store.record(
            self.run.id,
            evaluated.round,
            [(scores, asdict(summary)) for scores, summary in evaluated.results],
            seconds=evaluated.seconds,
            compile_seconds=evaluated.compile_seconds,
        )
        now = time.monotonic()
        if last or now - self._saved > _CHECKPOINT_SECONDS:
            save_checkpoint(self.store.checkpoint_path(self.run.id), evaluated.state, self.hash)
            self._saved = now


@dataclass
class Workbench:
    """What runs share in one process: the store, the data last loaded, and objects the user passed in.

    folder: the user's data folder. data, model: replace the specifications in every cell.
    save_models: seeds whose client models are written as files.
    """

    store: Store
    folder: str | None = None
    data: FederatedData | None = None
    model: eqx.Module | None = None
    save_models: tuple[int, ...] = ()
    debug: bool = False
    _loaded: tuple[str, FederatedData] | None = None

    def load(self, cell: Cell) -> FederatedData:
        """The cell's data; the last one loaded is kept."""
        if self.data is not None:
            self._audit(self.data)
            return self.data
        key = json.dumps(cell.data, sort_keys=True)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None  # let the old one go before the new one comes
            self._loaded = (key, sources.load({**cell.data, **self._where(cell)}))
            self._audit(self._loaded[1])
        return self._loaded[1]

    def _audit(self, data: FederatedData) -> None:
        """Keep the leakage audit of every data set with its runs; made once."""
        key = f"audit {data.fingerprint}"
        if self.store.fact(key) is None:
            self.store.set_fact(key, audit(data).lines())

    def _where(self, cell: Cell) -> dict[str, str]:
        """The user's folder, for data sets that are read from one and were not told another."""
        source = sources.SOURCES.get(cell.data.get("name", ""))
        takes = source is not None and "folder" in signature(source).parameters and "folder" not in cell.data
        return {"folder": self.folder} if self.folder is not None and takes else {}

    def make_model(self, cell: Cell, data: FederatedData, seed: int) -> eqx.Module:
        """The initial model of a run; with `shared_init` the same for all seeds."""
        if self.model is not None:
            return self.model
        key = jax.random.fold_in(jax.random.key(0 if cell.shared_init else seed), 0x1D10)
        return build_model(cell.model, data.feature_shape, data.num_outputs, data.task, key)

    def simulation(self, cell: Cell, method: Method, data: FederatedData, model: eqx.Module) -> Simulation:
        """Compile-ready: one method on one federation."""
        check_model(model, data.feature_shape, data.num_outputs)
        if cell.select == "best-validation" and len(data.validation.y) == 0:
            raise ConfigError(f"cell '{cell.id}': select = 'best-validation', but the data have no validation split")
        objective = objective_of(model, data.task, l2_of(cell.model) if self.model is None else 0.0)
        return Simulation(
            data,
            objective,
            eqx.filter(model, eqx.is_inexact_array),
            methods.build(method.spec),
            cohort=cell.cohort,
            sampling=cell.sampling,
            rounds=cell.rounds,
            debug=self.debug,
        )

    def run_group(
        self, experiment: Experiment, group: Group, on_progress: Callable[[str, Progress], None] = lambda *_: None
    ) -> Iterator[RunRow]:
        """Run (or continue) one method in one cell for its seeds; a diverged run is recorded and the rest goes on."""
        cell = experiment.cell(group.cell)
        method = next(m for m in cell.methods if m.title == group.title)
        data = self.load(cell)
        simulation: Simulation | None = None
        evaluator: Evaluator | None = None
        for seed in group.seeds:
            run = self.store.start(self._row(cell, method, data, seed))
            if run.status == "done":
                yield run
                continue
            model = self.make_model(cell, data, seed)
            if simulation is None or evaluator is None:
                simulation = self.simulation(cell, method, data, model)
                evaluator = Evaluator(simulation)
            better = (lambda a, b: a > b) if higher_is_better(data.task) else (lambda a, b: a < b)
            recorder = StoreRecorder(self.store, run, cell, better)
            splits = [s for s in cell.splits if len(data.split(s).y)]
            try:
                state = fit(
                    simulation,
                    evaluator,
                    seed=seed,
                    rounds=cell.rounds,
                    params=eqx.filter(model, eqx.is_inexact_array),
                    eval_every=cell.eval_every,
                    splits=splits,
                    recorder=recorder,
                    on_progress=lambda p, name=run.id: on_progress(name, p),
                )
            except DivergedError as error:
                self.store.finish(run.id, "diverged", str(error))
            else:
                if seed in self.save_models:
                    self._save(cell, recorder, evaluator, model, state)
                self.store.finish(run.id, "done")
            row = self.store.run(run.id)
            assert row is not None
            yield row

    def _save(
        self, cell: Cell, recorder: StoreRecorder, evaluator: Evaluator, model: eqx.Module, state: State
    ) -> None:
        for name in evaluator.simulation.algorithm.model_names:
            chosen = state
            if cell.select == "best-validation":
                chosen = load_checkpoint(recorder.best_path(name), state, recorder.hash) or state
            save_client_models(
                self.store.folder / "models" / recorder.run.id,
                name,
                evaluator.client_params(chosen, [name])[name],
                model,
                data=evaluator.simulation.data,
                spec=cell.model if self.model is None else None,
                extra={"run": recorder.run.id, "round": int(chosen.round)},
            )

    def _row(self, cell: Cell, method: Method, data: FederatedData, seed: int) -> RunRow:
        config = cell.model_dump(mode="json", exclude={"methods", "title", "select", "gaps"})
        config["method"] = {**methods.hyperparameters(methods.ALGORITHMS[method.name]), **method.spec}
        if self.model is not None:
            config["model"] = {"own": digest(str(self.model), _bytes_of(self.model))}
        if self.data is not None:
            config["data"] = {"own": data.name}
        config["splits"] = sorted(config["splits"])
        return RunRow(
            id=run_id(cell.id, method.title, seed),
            cell=cell.id,
            label=method.title,
            method=method.name,
            seed=seed,
            config=config,
            config_hash=digest(config, seed),
            data_hash=data.fingerprint,
            provenance={
                **provenance(),
                "data": dict(data.provenance),
                "notes": list(data.notes),
                "clients": list(data.clients),
                "task": data.task,
            },
            status="running",
            round=0,
            seconds=0.0,
            compile_seconds=0.0,
            message="",
        )


def _bytes_of(model: eqx.Module) -> str:
    sha = hashlib.sha256()
    for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array)):
        sha.update(jax.device_get(leaf).tobytes())
    return sha.hexdigest()


def claim(store: Store, experiment: Experiment) -> None:
    """Tie a folder to one experiment; refuse another one in the same folder, naming what differs.

    More seeds, or a selection of cells, of the same experiment are welcome.
    """
    new = experiment.model_dump(mode="json")
    old: dict[str, Any] | None = store.fact("experiment")
    if old is not None and old["name"] != new["name"]:
        raise StoreError(
            f"'{store.folder}' holds the experiment '{old['name']}', not '{new['name']}'; use another --out"
        )
    if old is not None:
        cells = {cell["id"]: cell for cell in old["cells"]}
        for cell in new["cells"]:
            known = cells.get(cell["id"])
            if known is not None:
                titles = {m["label"] or m["name"] for m in cell["methods"]}
                cell["methods"] += [m for m in known["methods"] if (m["label"] or m["name"]) not in titles]
        new["cells"] += [c for c in old["cells"] if c["id"] not in {cell["id"] for cell in new["cells"]}]
        new["seeds"] = max(new["seeds"], old["seeds"])
    store.set_fact("experiment", new)


def stored_experiment(store: Store) -> Experiment:
    """The experiment a folder holds."""
    values = store.fact("experiment")
    if values is None:
        raise StoreError(f"'{store.folder}' holds no experiment")
    return Experiment.model_validate(values)


def run_serial(
    bench: Workbench,
    experiment: Experiment,
    work: Sequence[Group],
    on_progress: Callable[[str, Progress], None] = lambda *_: None,
    on_done: Callable[[RunRow], None] = lambda _: None,
) -> None:
    """Run groups one after the other in this process."""
    for group in work:
        for row in bench.run_group(experiment, group, on_progress):
            on_done(row)
