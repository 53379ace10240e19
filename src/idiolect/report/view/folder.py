"""Read what a report says from one folder or several: runs, sweeps, a report.json, or CSV files only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import StoreError, reason_of
from idiolect.core.files import json_of, plain_or_packed
from idiolect.metrics.base import Metric
from idiolect.report.sections.tables import settings_extra
from idiolect.report.view.as_json import REPORT, read_view
from idiolect.report.view.from_csv import scores_in, view_of_csv
from idiolect.report.view.from_store import view_of
from idiolect.report.view.parts import Entry, Part, View
from idiolect.report.view.tried import dimensions
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import stored_options
from idiolect.study.search.launch import SWEPT
from idiolect.study.search.space import L2
from idiolect.study.spec.experiment import Cell, Experiment, Method
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import DATABASE, Store

CHOSEN = (
    "Each method's setting was chosen by its score on VALIDATION data in the last round, mean over seeds; only then "
    "was the chosen one evaluated on test data."
)


def view_of_folder(folder: Path) -> View:
    """What one folder holds. Raises `StoreError` or `DataError` if it is no run, or cannot be read."""
    try:
        there, is_folder, runs = folder.exists(), folder.is_dir(), (folder / DATABASE).is_file()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read '{folder}': {reason_of(error)}") from error
    if not there:
        raise StoreError(f"no such folder: '{folder}'")
    if not is_folder:
        raise StoreError(f"'{folder}' is a file; name the folder of a run")
    if not runs and (report := plain_or_packed(folder / REPORT)) is not None:
        view = read_view(report)
        return replace(view, parts=scores_in(folder, view.parts))
    if not runs:
        return view_of_csv(folder)
    with Store(folder, create=False) as store:
        if (tried := store.fact(SWEPT)) is not None:
            return view_of_sweep(store, tried)
        return view_of(Results(store, stored_experiment(store)), str(stored_options(store)["command"]))


NEW_CLIENTS = "new clients"
"""The decision in a report.json of new clients, which has a headline of its own."""


def new_clients(folder: Path) -> dict[str, Any] | None:
    """The report.json of a folder of new clients; None for any other folder."""
    try:
        data = json_of((folder / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("decision") == NEW_CLIENTS else None


def view_of_folders(folders: Sequence[Path]) -> View:
    """What several folders hold, all comparisons in one list."""
    views = [view_of_folder(folder) for folder in dict.fromkeys(folders)]
    return views[0] if len(views) == 1 else joined(views)


def joined(views: Sequence[View]) -> View:
    """Several views as one. Each comparison's title begins with that of its own whole where they differ."""
    parts = [_under(view, part) for view in views for part in view.parts]
    commands = list(dict.fromkeys(view.command for view in views if view.command))
    made: dict[str, list[str]] = {}
    for label, words in dict.fromkeys(pair for view in views for pair in view.made_with):
        made.setdefault(label, []).append(words)

    def all_of(texts: list[str], mark: str) -> str:
        return mark.join(dict.fromkeys(text for text in texts if text))

    return View(
        title=all_of([view.title for view in views], "; "),
        parts=tuple(replace(part, id=f"{number}/{part.id}") for number, part in enumerate(parts)),
        source=all_of([view.source for view in views], "; "),
        description=all_of([view.description for view in views], " "),
        protocol=all_of([view.protocol for view in views], ", "),
        command="\n".join(commands),
        after_test=all_of([view.after_test for view in views], " "),
        made_with=tuple((label, ", ".join(texts)) for label, texts in made.items()),
        missing=tuple(line for view in views for line in view.missing),
        published=any(view.published for view in views),
        reading=tuple(dict.fromkeys(line for view in views for line in view.reading)),
    )


def _under(view: View, part: Part) -> Part:
    return part if view.title in part.title else replace(part, title=f"{view.title}: {part.title}")


def view_of_sweep(store: Store, tried: Sequence[Mapping[str, Any]]) -> View:
    """What a report says of a sweep's folder. tried: a record of each setting, as `Tried.to_dict` makes it."""
    experiment, command = stored_experiment(store), str(stored_options(store)["command"])
    chosen = [one for one in tried if one["chosen"]]
    results = Results(store, _of_chosen(experiment, chosen))
    view, missing = view_of(results, command), list[str]()
    if not tried:
        missing.append("The sweep is not finished: nothing is chosen yet, and no setting is shown.")
    elif not chosen:
        missing.append("Every setting diverged: nothing is chosen.")
    part = replace(
        view.parts[0],
        title=f"Chosen settings of {experiment.name}",
        chosen=CHOSEN,
        sweep=_sweep(tried, view.parts[0].metric),
        extras=(settings_extra(tried, view.parts[0].metric), *view.parts[0].extras) if tried else (),
    )
    failed = tuple(f"{failure}" for one in tried for failure in one["failures"])
    return replace(view, title=f"Sweep: {experiment.name}", parts=(_named(part, tried),), missing=(*missing, *failed))


def _of_chosen(experiment: Experiment, chosen: Sequence[Mapping[str, Any]]) -> Experiment:
    """The experiment of only the chosen settings, under the names that their runs have in the store."""
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
