"""Launch a sweep: grid, random search, Optuna, successive halving or cross-validation, recorded in a folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import jax

from idiolect.core.errors import require, unknown
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.memory import default_memory
from idiolect.study.run.launch import mastered
from idiolect.study.run.resolve import Workbench
from idiolect.study.search.choose import Swept, all_of, check_choosable, settings_of, tune
from idiolect.study.search.engine import Sweeper
from idiolect.study.search.folds import Folds
from idiolect.study.search.optuna import BATCH, Trials, check_installed
from idiolect.study.spec.experiment import Cell, Experiment, check_metrics, metrics_of
from idiolect.study.store.claim import claim
from idiolect.study.store.recorded import record_audit, record_clients

SWEPT = "swept"
"""The fact that holds what a sweep tried, a record a setting; empty before its end. Only sweeps have it."""
Search = Literal["grid", "random", "halving", "cv", "optuna"]


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
    """Validate everything, then run what the folder does not have yet; `api.sweep` explains the arguments."""
    if search not in get_args(Search):
        raise unknown("search", search, get_args(Search))
    _check_options(experiment.cells[0], search, budget, memory)
    require(eta >= 2, f"eta = {eta} must be at least 2: halving keeps 1/eta of the settings")
    cell = experiment.cells[0]
    settings = [] if search == "optuna" else settings_of(experiment, spaces, budget=budget, seed=search_seed)
    require(
        not cell.new_splits, "new_splits goes with compare, run and reproduce: all settings of a sweep see one split"
    )
    data = bench.load(cell)
    check_metrics(cell, data)
    metrics = metrics_of(cell, data.task)
    check_choosable(data, search == "cv")
    propose = all_of(settings)
    if search == "optuna" and budget is not None:
        propose = Trials(cell, spaces, metrics[0], budget, BATCH if batch is None else batch, search_seed)
        settings = propose.ends()
    require(
        bench.model is None or all("model.l2" not in setting.values for setting in settings),
        "model.l2 can be swept with a model of the zoo only",
    )
    for setting in settings:
        bench.check(experiment.model_copy(update={"cells": (setting.cell,), "seeds": 1}))
    cv_folds = Folds(data, folds, search_seed) if search == "cv" else None
    use_compilation_cache()
    with mastered(Path(out)) as store:
        claim(store, experiment, [])
        store.set_fact(SWEPT, store.fact(SWEPT) or [])
        record_clients(store, data, None)
        record_audit(store, data)
        sweeper = Sweeper(store, bench, data, cv_folds, memory or default_memory(), metrics, block, on_progress)
        swept = tune(sweeper, experiment, propose, eta=eta if search == "halving" else None, show_test=show_test)
        store.set_fact(SWEPT, [one.to_dict() for one in swept.tried])
        return swept


def _check_options(cell: Cell, search: str, budget: int | None, memory: int | None) -> None:
    """Raise `ConfigError` for options that a sweep does not support, before any data are read."""
    require(
        jax.process_count() == 1,
        "a sweep runs in one process, whose devices divide its runs; start it without launch and --distributed, "
        "or give each machine some of the methods and its own --out",
    )
    require(cell.private == "memory", "a sweep holds private states in memory; leave private = 'file' out")
    require(cell.select == "last", f"a sweep compares last rounds; leave select = '{cell.select}' out")
    if search == "optuna":
        check_installed()
    needs_budget = search in ("random", "optuna")
    require(not needs_budget or budget is not None, f"search = '{search}' needs a budget, the number of settings")
    require(memory is None or memory > 0, f"memory = {memory} must be greater than 0 bytes")
    default_memory()
