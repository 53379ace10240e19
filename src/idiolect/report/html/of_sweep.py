"""What a page shows of a sweep: every setting that was tried, and the chosen ones on test data as a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.metrics.base import Metric
from idiolect.report import text
from idiolect.report.extras import Extra
from idiolect.report.html.of_results import whole_of
from idiolect.report.html.parts import Entry, Part, Whole
from idiolect.report.html.sweeps import dimensions
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import stored_options
from idiolect.study.search.space import L2, shown
from idiolect.study.spec.experiment import Cell, Experiment, Method
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import Store
from idiolect.study.store.summary import OverSeeds

CHOSEN = (
    "Each method's setting was chosen by its score on VALIDATION data in the last round, mean over seeds; only then "
    "was the chosen one evaluated on test data."
)


def whole_of_sweep(store: Store, tried: Sequence[Mapping[str, Any]]) -> Whole:
    """The whole of a sweep's folder. tried: a record of each setting, as `Tried.to_dict` makes it."""
    experiment, command = stored_experiment(store), str(stored_options(store)["command"])
    chosen = [one for one in tried if one["chosen"]]
    results = Results(store, _of_chosen(experiment, chosen))
    whole, missing = whole_of(results, command), list[str]()
    if not tried:
        missing.append("The sweep is not finished: nothing is chosen yet, and no setting is shown.")
    elif not chosen:
        missing.append("Every setting diverged: nothing is chosen.")
    part = replace(
        whole.parts[0],
        title=f"Chosen settings of {experiment.name}",
        chosen=CHOSEN,
        sweep=_sweep(tried, whole.parts[0].metric),
        extras=(_table(tried, whole.parts[0].metric), *whole.parts[0].extras) if tried else (),
    )
    failed = tuple(f"{failure}" for one in tried for failure in one["failures"])
    return replace(
        whole, title=f"Sweep: {experiment.name}", parts=(_named(part, tried),), missing=(*missing, *failed)
    )


def _of_chosen(experiment: Experiment, chosen: Sequence[Mapping[str, Any]]) -> Experiment:
    """The experiment of the chosen settings alone, under the names that their runs have in the store."""
    cell = experiment.cells[0]
    methods = tuple(_method(cell, one) for one in chosen)
    if not methods:
        return experiment
    return experiment.model_copy(update={"cells": (cell.model_copy(update={"methods": methods}),)})


def _method(cell: Cell, one: Mapping[str, Any]) -> Method:
    base = next(method for method in cell.methods if method.name == one["method"])
    values = {key: value for key, value in one["values"].items() if key != L2}
    return Method.model_validate({**base.spec, **values, "label": one["label"]})


def _named(part: Part, tried: Sequence[Mapping[str, Any]]) -> Part:
    """The part with the methods' own names, and those that were tried and of which no setting was chosen."""
    name = {one["label"]: one["method"] for one in tried}
    methods = tuple(
        replace(entry, shown=ALGORITHMS[name[entry.title]].title) if entry.title in name else entry
        for entry in part.methods
    )
    there = {name.get(entry.title) for entry in methods}
    others = dict.fromkeys(one["method"] for one in tried if one["method"] not in there)
    return replace(part, methods=(*methods, *(Entry(other, ALGORITHMS[other].title, other) for other in others)))


def _sweep(tried: Sequence[Mapping[str, Any]], metric: Metric) -> dict[str, Any] | None:
    """The sweep of the page's data; runs name their method by a title of the part's entries."""
    label = {one["method"]: one["label"] for one in tried if one["chosen"]}
    runs = [
        {
            "method": label.get(one["method"], one["method"]),
            "values": one["values"],
            "score": None if one["validation"] is None else one["validation"][0],
            "chosen": one["chosen"],
        }
        for one in tried
    ]
    return dimensions(runs, f"validation {metric.column}")


def _table(tried: Sequence[Mapping[str, Any]], metric: Metric) -> Extra:
    """Every setting with its scores."""
    rows = tuple(
        (
            str(one["method"]),
            shown(one["values"]),
            _score(one["validation"], metric),
            str(one["rounds"]),
            _score(one["test"], metric),
            "chosen" if one["chosen"] else "diverged" if one["failures"] else "",
        )
        for one in tried
    )
    name = f"{metric.column}, %" if metric.percent else metric.column
    header = ("method", "setting", f"validation {name}", "rounds", f"test {name}", "")
    return Extra(f"Settings tried; ± {text.SPREAD}", header, rows)


def _score(of: Sequence[Any] | None, metric: Metric) -> str:
    return text.MISSING if of is None else text.score(OverSeeds(*of), metric)
