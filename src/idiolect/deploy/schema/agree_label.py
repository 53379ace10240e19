"""What the labels of all sites mean together."""

from collections.abc import Mapping
from typing import Any, cast

from idiolect.core.errors import DataError
from idiolect.data.encode.labels import FEW, MANY, many_classes
from idiolect.data.schema.label import Classes, Label, Target
from idiolect.deploy.schema.moments import pooled
from idiolect.deploy.schema.readings import choose, the_same
from idiolect.deploy.schema.summary import ColumnSummary, LabelSummary, Summary

_NUMBERS = ("integer", "float")


def agree_label(summaries: Mapping[str, Summary]) -> tuple[Label, list[str]]:
    """(the label that the pooled rows have, notes): the sites' classes together, in the pooled order, or the pooled
    mean and deviation. Raises `DataError` where sites disagree."""
    labels = {site: one.label for site, one in summaries.items()}
    name = the_same("label column", {site: one.name for site, one in labels.items()}, "label=")
    kinds = {site: "numbers" if one.stored in _NUMBERS else "words" for site, one in labels.items()}
    the_same(f"kind of label '{name}'", kinds, "write it alike at all sites")
    named = {site: one.task for site, one in labels.items() if one.task is not None}
    task = the_same("task", named, "task=") if named else _task(labels)
    if task == "classification":
        classes, notes = _classes(name, labels)
        if not named and classes.type == "integer":
            notes += many_classes(name, len(classes.classes))
        return classes, notes
    return _target(name, summaries)


def _task(labels: Mapping[str, LabelSummary]) -> str:
    """As `guess_task` of all labels together."""
    if any(one.classes is None for one in labels.values()):
        return "regression"
    kinds = {one.stored for one in labels.values()}
    if not kinds & {*_NUMBERS}:
        return "classification"
    distinct = {name for one in labels.values() for name in one.classes or ()}
    return "classification" if len(distinct) <= (FEW if "float" in kinds else MANY) else "regression"


def _classes(name: str, labels: Mapping[str, LabelSummary]) -> tuple[Classes, list[str]]:
    kinds, notes = {one.stored for one in labels.values()}, list[str]()
    for site, one in labels.items():
        if one.classes is None:
            raise DataError(f"site '{site}': its labels cannot be classes; name the task alike at all sites (task=)")
    integer = bool(kinds & {*_NUMBERS})
    names = {cls for one in labels.values() for cls in one.classes or ()}
    try:
        ordered = sorted(names, key=int) if integer else sorted(names)
    except ValueError:
        raise DataError(
            f"label '{name}': a site tells classes that are no whole numbers; make its summary anew"
        ) from None
    if len(ordered) < 2:
        raise DataError(f"label '{name}': all labels of all sites are {ordered}; classification needs two classes")
    for site, one in labels.items():
        if lacking := [cls for cls in ordered if not (one.classes or {}).get(cls)]:
            notes.append(f"label '{name}': site '{site}' has no training row of {', '.join(map(repr, lacking[:5]))}")
    kind: Any = "integer" if integer else ("boolean" if kinds == {"boolean"} else "text")
    return Classes(name=name, classes=tuple(ordered), type=kind), notes


def _target(name: str, summaries: Mapping[str, Summary]) -> tuple[Target, list[str]]:
    held: dict[str, ColumnSummary] = {}
    for site, one in summaries.items():
        stored = "text" if len(one.label.readings) > 1 or "number" not in one.label.readings else "number"
        readings, count = one.label.readings, one.rows
        held[site] = ColumnSummary(name=name, stored=stored, count=count, missing=0, readings=readings)
    reading = choose(name, held, {site: one.comma_likely for site, one in summaries.items()}) or "number"
    parts = [
        (column.readings.get(reading) or next(iter(column.readings.values()))).moments
        for column in held.values()
        if column.readings
    ]
    notes = [
        f"label '{name}': site '{site}' has too few rows and counts for nothing"
        for site in held
        if not held[site].readings
    ]
    if not parts:
        raise DataError(f"label '{name}': no site has enough training rows to tell its mean; lower minimum=")
    moments = pooled(parts)
    deviation = (moments.m2 / moments.count) ** 0.5
    scale = deviation if deviation > 0 else 1.0
    return Target(name=name, mean=moments.mean, scale=scale, read_as=cast(Any, reading)), notes
