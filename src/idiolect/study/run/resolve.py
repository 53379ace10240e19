"""Build the objects that an experiment specifies: data, models, simulations, and the store's rows of its runs."""

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import equinox as eqx
import jax
import numpy as np

from idiolect.algorithms import registry as methods
from idiolect.algorithms.base import Algorithm, remarks_of
from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.handing import Handed, hand_over
from idiolect.core.memory import is_mapped
from idiolect.data.federated import FederatedData, Split
from idiolect.data.sets import registry as sources
from idiolect.models import check_model
from idiolect.runtime.evaluate import evaluated_clients
from idiolect.runtime.program import Program
from idiolect.runtime.simulate import Simulation
from idiolect.study.spec.assemble import Problem, problem_of
from idiolect.study.spec.experiment import Cell, Experiment, Method, check_metrics, digest, metrics_of, run_id
from idiolect.study.store.provenance import provenance
from idiolect.study.store.recorded import constant_scores
from idiolect.study.store.store import RunRow


@dataclass
class Workbench:
    """Builds what the runs of one process need, and caches the data last loaded.

    folder: the user's data folder. data, model: the user's objects, which replace the specifications in every cell.
    debug: see `Simulation`.
    """

    folder: str | None = None
    data: FederatedData | None = None
    model: eqx.Module | None = None
    debug: bool = False
    _loaded: tuple[str, FederatedData] | None = None

    def load(self, cell: Cell, seed: int = 0) -> FederatedData:
        """Load the data of a cell's runs with one seed, which matters with `new_splits`; the last are cached."""
        check_new_splits(cell, self.data)
        if self.data is not None:
            return self.data
        return self.read({**cell.data, **_own_split(cell, seed)})

    def read(self, spec: Mapping[str, Any]) -> FederatedData:
        """Load the data of a specification; the last data set loaded is cached."""
        key = _key(spec)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None  # free the old data before the new data are loaded
            self._loaded = (key, sources.load({**spec, **self._where(spec)}))
        return self._loaded[1]

    @contextmanager
    def giving(self, experiment: Experiment) -> Generator[Handed | None]:
        """Drop the cached data, of which processes that are started inside the block may take a copy.

        None if some runs need other data, or if the data are mapped from a file already.
        """
        needed = {
            _key({**cell.data, **_own_split(cell, s)}) for cell in experiment.cells for s in experiment.seed_list
        }
        with hand_over(self._released(needed)) as handed:
            yield handed

    def _released(self, needed: set[str]) -> tuple[str, FederatedData] | None:
        loaded, self._loaded = self._loaded, None
        if loaded is None or needed != {loaded[0]}:
            return None
        train = loaded[1].train
        return None if isinstance(train, Split) and is_mapped(train.x) else loaded

    def take(self, handed: Handed | None) -> None:
        """Cache the data that another process gives; where there are none, they are loaded when they are needed."""
        with suppress(OSError):
            self._loaded = None if handed is None else handed.take()

    def _where(self, spec: Mapping[str, Any]) -> dict[str, str]:
        """The folder argument of a source that takes one and whose specification names none; else no argument."""
        source = sources.SOURCES.get(spec.get("name", ""))
        takes_folder = source is not None and "folder" in signature(source).parameters and "folder" not in spec
        return {"folder": self.folder} if self.folder is not None and takes_folder else {}

    def problem(self, cell: Cell, data: FederatedData, seed: int = 0, shapes: bool = False) -> Problem:
        """Build what a run's method is given; with `shared_init` the model is the same for all seeds.

        shapes: of the model only the shapes of its parameters. Raises `ConfigError` if a specification does not fit;
        the user's own model is checked once, by `check`.
        """
        if self.model is not None:
            return Problem(data, self.model)
        return problem_of(data, cell.model, 0 if cell.shared_init else seed, shapes)

    def simulation(self, cell: Cell, method: Method, problem: Problem) -> Simulation:
        """Build the simulation of one method. Raises `ConfigError` for settings that do not fit."""
        if cell.select == "best-validation" and problem.data.validation.count == 0:
            raise ConfigError(
                "select = 'best-validation', but the data have no validation split; set data.validation=0.15, say"
            )
        return problem.simulation(
            methods.build(method.spec),
            cohort=cell.cohort,
            sampling=cell.sampling,
            rounds=cell.rounds,
            debug=self.debug,
        )

    def program(self, cell: Cell, method: Method, problem: Problem) -> Program:
        """Build the program of a single run, evaluated on the cell's clients with its metrics."""
        simulation = self.simulation(cell, method, problem)
        return Program([simulation], clients=cell.eval_clients, metrics=metrics_of(cell, problem.data.task))

    def check(self, experiment: Experiment) -> list[RunRow]:
        """Validate an experiment before training; returns the store's rows of all its runs.

        Loads the data and traces the models' shapes; trains and writes nothing. Raises `ConfigError` naming the cell.
        """
        rows: list[RunRow] = []
        for cell in experiment.cells:
            require(
                cell.private == "memory" or (jax.process_count() == 1 and not self.debug),
                f"cell '{cell.id}': private = 'file' goes with one process, without --debug; leave it or them out",
            )
            data = self.load(cell, experiment.first_seed)
            require(
                data.held_out is None or (jax.process_count() == 1 and cell.private == "memory"),
                f"cell '{cell.id}': held_out goes with one process and private = 'memory'; leave it or them out",
            )
            require(
                data.test.count > 0,
                f"cell '{cell.id}': {data.name} has no test samples to compare methods on; set data.test=0.25",
            )
            model_names: set[str] = set()
            try:
                evaluated_clients(data.num_clients, cell.eval_clients)
                check_metrics(cell, data)
                if self.model is not None:
                    check_model(self.model, data.feature_shape, data.num_outputs)
                problem = self.problem(cell, data, shapes=True)
                for method in cell.methods:
                    offered = self.simulation(cell, method, problem).offered
                    model_names |= set(offered)
                    for value in method.published:
                        if value.model not in offered:
                            raise unknown(f"model of {method.name}", value.model, offered)
                for name in cell.draw:
                    if name not in model_names | methods.model_names():  # --only may have left out its method
                        raise unknown("model to draw", name, model_names)
            except ConfigError as error:
                raise ConfigError(f"cell '{cell.id}': {error}") from None
            rows += self._rows(cell, data, experiment.seed_list)
        return rows

    def _rows(self, cell: Cell, first: FederatedData, seeds: Sequence[int]) -> list[RunRow]:
        """The rows of a cell's runs. Raises `ConfigError` if new splits have other clients, or are all the same."""
        rows: list[RunRow] = []
        for seed in seeds:
            data = self.load(cell, seed) if cell.new_splits else first
            require(
                data.clients == first.clients,
                f"cell '{cell.id}': with seed {seed} the split has other clients than with seed {seeds[0]}, so they "
                "cannot be compared; leave new_splits out, or set data.minimum if the data have it",
            )
            rows += [self.row(cell, method, data, seed) for method in cell.methods]
        require(
            not cell.new_splits or len(seeds) == 1 or len({row.data_hash for row in rows}) > 1,
            f"cell '{cell.id}': new_splits, but split_seed changes nothing: these data are not divided at random",
        )
        return rows

    def _remarks(self, cell: Cell, method: Method, data: FederatedData, single: bool) -> list[str]:
        """What a reader must know of a method on these data with this model."""
        algorithm = methods.build(method.spec)
        problem = self.problem(cell, data, shapes=True)
        remarks = [*small_clients(algorithm, data), *remarks_of(algorithm, problem.params)]
        if single and jax.device_count() > 1:
            together = self.simulation(cell, method, problem).devices.together
            if together is not None:
                remarks.append(
                    f"{method.title}: {together.devices} devices computed the gradients of one client together. "
                    "One device gives the same results up to rounding."
                )
        return remarks

    def row(self, cell: Cell, method: Method, data: FederatedData, seed: int, single: bool = True) -> RunRow:
        """Build the store's row of a run that has not started. single: it has a program of its own."""
        left_out = {"methods", *Cell.PRESENTATION}
        config = {key: value for key, value in cell.recorded().items() if key not in left_out}
        config["method"] = {**methods.hyperparameters(methods.ALGORITHMS[method.name]), **method.spec}
        if self.model is not None:
            config["model"] = {"own": digest(str(self.model), bytes_of(self.model))}
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
                "notes": [*data.notes, *self._remarks(cell, method, data, single)],
                "clients": [data.clients[i] for i in evaluated_clients(data.num_clients, cell.eval_clients)],
                "task": data.task,
                "constant": constant_scores(data),
            },
            status="running",
            round=0,
            seconds=0.0,
            compile_seconds=0.0,
            message="",
        )


def _key(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True)


def check_new_splits(cell: Cell, data: FederatedData | None) -> None:
    """Raise `ConfigError` if each seed shall draw its own split of data that have no `split_seed`."""
    if not cell.new_splits:
        return
    source = sources.SOURCES.get(str(cell.data.get("name")))
    parameters = {} if source is None else signature(source).parameters
    passed_on = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())  # of image sets
    require(
        cell.data.get("name") != "encoded",
        f"cell '{cell.id}': each seed should have its own split, but the data of '{cell.data.get('path')}' were "
        "split when they were encoded; compare with --seeds, or encode the table once for each split, with "
        "--set data.split_seed=1 and so on",
    )
    require(
        data is None and (source is None or passed_on or "split_seed" in parameters),
        f"cell '{cell.id}': new_splits needs data with a split_seed; "
        f"{'data made in Python' if data is not None else repr(cell.data.get('name'))} have none",
    )


def _own_split(cell: Cell, seed: int) -> dict[str, int]:
    """The split_seed of a seed's own split; nothing if all seeds have the same split.

    The same clients are held out in all seeds.
    """
    if not cell.new_splits:
        return {}
    first = int(cell.data.get("split_seed", 0))
    holds_out = cell.data.get("held_out") is not None and cell.data.get("split") != "subjects"
    held_out = {"held_out_seed": int(cell.data.get("held_out_seed", first))} if holds_out else {}
    return {"split_seed": first + seed, **held_out}


def small_clients(algorithm: Algorithm, data: FederatedData) -> Sequence[str]:
    """A note if some clients have fewer training samples than `batch_size`."""
    batch_size = getattr(algorithm, "batch_size", None)
    sizes = algorithm.training_data(data).train.sizes
    if batch_size is None or not (sizes < batch_size).any():
        return ()
    count, smallest = int(np.sum(sizes < batch_size)), int(sizes.min())
    return (
        f"batch_size = {batch_size} is larger than the training data of {count} of {len(sizes)} clients (the "
        f"smallest has {smallest}): their mini-batches hold all the samples that they have",
    )


def bytes_of(model: eqx.Module) -> str:
    """sha256 over every array of a model."""
    sha = hashlib.sha256()
    for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array)):
        sha.update(jax.device_get(leaf).tobytes())
    return sha.hexdigest()
