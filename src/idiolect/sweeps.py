"""`sweep`: a grid, random search, Optuna, successive halving or cross-validation, from Python or the command line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import pandas as pd
from rich.console import Console

from idiolect.chunks import default_memory
from idiolect.comparing import comparison_of, own_or_named
from idiolect.config import Cell, Experiment
from idiolect.data.federated import FederatedData
from idiolect.errors import require, unknown
from idiolect.experiment import claim
from idiolect.files import alone, clear_scratch
from idiolect.folds import Folds
from idiolect.parallel import use_compilation_cache
from idiolect.report.sweeps import frame, rich_sweep
from idiolect.selection import Swept, Tried, all_of, check_choosable, settings_of, tune
from idiolect.store import Store
from idiolect.sweeper import Sweeper
from idiolect.trials import BATCH, Trials, check_installed
from idiolect.workbench import Workbench

Search = Literal["grid", "random", "halving", "cv", "optuna"]


@dataclass(frozen=True)
class SweepResult:
    """A finished sweep. swept: every setting with its scores, in the order in which they were tried."""

    swept: Swept
    folder: Path | None

    @property
    def best(self) -> Tried:
        """The setting that validation data chose; with several methods the best of theirs, see `swept.chosen`."""
        require(len(self.swept.chosen) > 0, "every setting diverged; lower the learning rates")
        return self.swept.best

    def table(self) -> pd.DataFrame:
        """One row a setting: hyper-parameters, validation mean and std over seeds, rounds, whether chosen, test."""
        return frame(self.swept)

    def show(self) -> None:
        """Print the table."""
        Console().print(rich_sweep(self.swept))


def sweep(
    data: FederatedData,
    model: eqx.Module | Mapping[str, Any] | str,
    method: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]],
    *,
    space: Mapping[str, Any],
    seeds: int = 1,
    rounds: int = 100,
    cohort: float | None = None,
    sampling: Literal["fixed", "binomial"] = "fixed",
    eval_every: int = 10,
    search: Search = "grid",
    budget: int | None = None,
    eta: int = 3,
    folds: int = 5,
    batch: int | None = None,
    search_seed: int = 0,
    memory: int | None = None,
    block: int | None = None,
    show_test: bool = False,
    out: str | Path | None = None,
) -> SweepResult:
    """Try settings of one or several methods on the same seeds; choose each method's best on validation data.

    method: name(s), or specification(s) with fixed hyper-parameters. space: hyper-parameter (or "model.l2") ->
    values, or a text as on the command line ("log(0.001,1,7)"); for a list of methods {method: space}. search:
    "grid"; "random": `budget` settings of each method; "halving": rungs of rounds, 1/eta of the settings kept at
    each; "cv": `folds` folds of each client's training samples; "optuna": `budget` settings of each method, proposed
    `batch` (8) at a time from what those before scored. memory: bytes for the runs at work at once, by default
    IDIOLECT_MEMORY (GB) or a share of what the machine has. block: runs vmapped together. out: a folder that a killed
    sweep goes on from.
    Raises `ConfigError` before anything runs for what is unknown or out of range.
    """
    several = not isinstance(method, str | Mapping)
    methods = [method] if isinstance(method, str | Mapping) else list(method)
    names = [m if isinstance(m, str) else str(m.get("name")) for m in methods]
    own, spec = own_or_named(model)
    experiment = comparison_of(
        data.name,
        {"name": "own"},
        spec,
        methods,
        select="last",
        seeds=seeds,
        rounds=rounds,
        cohort=cohort,
        sampling=sampling,
        eval_every=eval_every,
    )
    options: dict[str, Any] = {"search": search, "budget": budget, "eta": eta, "folds": folds, "batch": batch}
    options |= {"search_seed": search_seed, "memory": memory, "block": block, "show_test": show_test}
    spaces: Mapping[str, Any] = space if several else {names[0]: space}
    bench = Workbench(data=data, model=own)
    if out is not None:
        return SweepResult(launch_sweep(experiment, spaces, bench, out, **options), Path(out))
    with TemporaryDirectory() as scratch:
        return SweepResult(launch_sweep(experiment, spaces, bench, scratch, **options), None)


def launch_sweep(
    experiment: Experiment,
    spaces: Mapping[str, Mapping[str, Any]],
    bench: Workbench,
    out: str | Path,
    *,
    search: str = "grid",
    budget: int | None = None,
    eta: int = 3,
    folds: int = 5,
    batch: int | None = None,
    search_seed: int = 0,
    memory: int | None = None,
    block: int | None = None,
    show_test: bool = False,
    on_progress: Callable[[str, float], None] = lambda *_: None,
) -> Swept:
    """Check everything, then run what the folder does not have yet; see `sweep`."""
    if search not in get_args(Search):
        raise unknown("search", search, get_args(Search))
    _check_options(experiment.cells[0], search, budget, memory)
    cell = experiment.cells[0]
    settings = [] if search == "optuna" else settings_of(experiment, spaces, budget=budget, seed=search_seed)
    data = bench.load(cell)
    check_choosable(data, search == "cv")
    propose = all_of(settings)
    if search == "optuna" and budget is not None:
        propose = Trials(cell, spaces, data.task, budget, BATCH if batch is None else batch, search_seed)
        settings = propose.ends()
    require(
        bench.model is None or all("model.l2" not in setting.values for setting in settings),
        "model.l2 can be swept with a model of the zoo only",
    )
    for setting in settings:
        bench.check(experiment.model_copy(update={"cells": (setting.cell,), "seeds": 1}))
    made = Folds(data, folds, search_seed) if search == "cv" else None
    use_compilation_cache()
    out = Path(out)
    store = Store(out)
    with alone(out / ".lock", f"another idiolect process works in '{out}'; wait for it, or use another --out"):
        clear_scratch(out)
        claim(store, experiment, [])
        sweeper = Sweeper(store, bench, data, made, memory or default_memory(), block, on_progress)
        return tune(sweeper, experiment, propose, eta=eta if search == "halving" else None, show_test=show_test)


def _check_options(cell: Cell, search: str, budget: int | None, memory: int | None) -> None:
    """Refuse what a sweep cannot do, before any data are read."""
    require(
        jax.process_count() == 1,
        "a sweep runs in one process, whose devices divide its runs; start it without launch and --distributed, "
        "or give each machine some of the methods and its own --out",
    )
    require(cell.private == "memory", "a sweep holds private states in memory; leave private = 'file' out")
    require(cell.select == "last", f"a sweep compares last rounds; leave select = '{cell.select}' out")
    if search == "optuna":
        check_installed()
    drawn = search in ("random", "optuna")
    require(not drawn or budget is not None, f"search = '{search}' needs a budget, the number of settings")
    require(memory is None or memory > 0, f"memory = {memory} must be greater than 0 bytes")
    default_memory()
