"""Agree on one schema from the summaries of all sites: how each column is read, and what the labels mean together."""

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.encode.labels import FEW, MANY, many_classes
from idiolect.data.schema.columns import Column
from idiolect.data.schema.fit import Fitted, Whole, category, empty_numbers, number, unfit_numbers
from idiolect.data.schema.label import Classes, Label, Target
from idiolect.data.schema.schema import Schema, check_features
from idiolect.data.schema.values import ReadAs
from idiolect.deploy.schema.summary import ColumnSummary, LabelSummary, Reading, TableSummary, pooled

NUMBERS = ("number", "decimal comma")
DATES = ("date", "date d.m.y", "date d/m/y", "date m/d/y")
ORDER = (*NUMBERS, *DATES, "duration", "words")
assert {*ORDER} == {*get_args(ReadAs), "words"}


def the_same(what: str, values: Mapping[str, str], setting: str) -> str:
    """The value that all sites have; `DataError` names two that differ."""
    first, value = next(iter(values.items()))
    for site, other in values.items():
        if other != value:
            raise DataError(
                f"the {what} is '{value}' at site '{first}' but '{other}' at site '{site}'; name it alike ({setting})"
            )
    return value


def choose(name: str, held: Mapping[str, ColumnSummary], commas: Mapping[str, bool]) -> ReadAs | None:
    """How all sites read the column; None if it holds categories. Raises `DataError` if there is no such way."""
    options = {site: possible(column) for site, column in held.items()}
    both = set[str](ORDER).intersection(*options.values())
    if "words" in both and both != {*ORDER} and _foreign_words(held):
        both.discard("words")
    if not both:
        raise _disagreement(name, options)
    if both == {*ORDER}:  # nobody has a value
        return None if any(column.stored == "text" for column in held.values()) else "number"
    found = _ordered(name, held, commas, both)
    return None if found == "words" else cast(ReadAs, found)


def possible(column: ColumnSummary) -> set[str]:
    """How a site can read its column: in any way if it has no values, or too few to report."""
    if column.words is not None:
        return {*ORDER} if column.count == 0 else {"words"}
    if not column.readings:
        return {*ORDER}
    own: dict[str, set[str]] = {
        "number": {*NUMBERS},
        "boolean": {*NUMBERS, "words"},
        "date": {*DATES},
        "duration": {"duration"},
    }
    return own.get(column.stored, {*column.readings})


def _ordered(name: str, held: Mapping[str, ColumnSummary], commas: Mapping[str, bool], both: set[str]) -> str:
    """The first reading that is left; where a comma may mean two things, what the files' separators say."""
    if not {*NUMBERS} <= both:
        return next(reading for reading in ORDER if reading in both)
    texts = {site: column for site, column in held.items() if column.stored == "text" and column.readings}
    matters = [site for site, c in texts.items() if c.readings[NUMBERS[0]] != c.readings[NUMBERS[1]]]
    if len({commas[site] for site in matters}) > 1:
        comma, point = (next(site for site in matters if commas[site] is likely) for likely in (True, False))
        raise DataError(
            f"column '{name}': 1,234 is 1.234 at site '{comma}' but 1234 at site '{point}', by their files' "
            "separators; write a decimal point at all sites"
        )
    return NUMBERS[1] if any(commas[site] for site in (matters or texts)) else NUMBERS[0]


def _foreign_words(held: Mapping[str, ColumnSummary]) -> bool:
    """Whether the column has truth values and other words."""
    words = [column.words for column in held.values() if column.words is not None]
    other = any({*one.named} - {"False", "True"} or one.withheld_words > 2 for one in words)
    return other and any(column.stored == "boolean" and column.readings for column in held.values())


def _apart(readings: Mapping[str, str]) -> tuple[str, str]:
    """The first two sites that read otherwise, or just the first two."""
    sites = list(readings)
    return sites[0], next((site for site in sites if readings[site] != readings[sites[0]]), sites[-1])


def _disagreement(name: str, options: Mapping[str, set[str]]) -> DataError:
    """Names two sites that read the column differently."""
    readings = {site: next((one for one in ORDER if one in possible), "words") for site, possible in options.items()}
    pairs = [(a, b) for a in options for b in options if a < b and not options[a] & options[b]]
    a, b = pairs[0] if pairs else _apart(readings)
    kinds = {readings[a], readings[b]}
    if kinds <= {*DATES}:
        remedy = "write dates as YYYY-MM-DD at all sites"
    elif "words" in kinds:
        remedy = f"write numbers at all sites, or name it at all: categorical=['{name}'] or ignore=['{name}']"
    else:
        remedy = f"write it alike at all sites, or leave it out: ignore=['{name}']"
    return DataError(
        f"column '{name}' is read as {readings[a]} at site '{a}' but as {readings[b]} at site '{b}'; {remedy}"
    )


_NUMBERS = ("integer", "float")


def agree_label(summaries: Mapping[str, TableSummary]) -> tuple[Label, list[str]]:
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
            f"label '{name}': a site reports classes that are no whole numbers; make its summary again"
        ) from None
    if len(ordered) < 2:
        raise DataError(f"label '{name}': all labels of all sites are {ordered}; classification needs two classes")
    for site, one in labels.items():
        if lacking := [cls for cls in ordered if not (one.classes or {}).get(cls)]:
            notes.append(f"label '{name}': site '{site}' has no training row of {', '.join(map(repr, lacking[:5]))}")
    kind: Any = "integer" if integer else ("boolean" if kinds == {"boolean"} else "text")
    return Classes(name=name, classes=tuple(ordered), type=kind), notes


def _target(name: str, summaries: Mapping[str, TableSummary]) -> tuple[Target, list[str]]:
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
        f"label '{name}': site '{site}' has too few rows and is not used" for site in held if not held[site].readings
    ]
    if not parts:
        raise DataError(f"label '{name}': no site has enough training rows to report its mean; lower minimum=")
    moments = pooled(parts)
    deviation = (moments.m2 / moments.count) ** 0.5
    scale = deviation if deviation > 0 else 1.0
    return Target(name=name, mean=moments.mean, scale=scale, read_as=cast(Any, reading)), notes


Of = dict[str, ColumnSummary]
"""One column, by site."""


def agree(summaries: Mapping[str, TableSummary], *, standardise: bool = True) -> tuple[Schema, tuple[str, ...]]:
    """(the schema that `from_table(missing="mean")` fits on all sites' training rows together, notes).

    Means and deviations are pooled exactly (`pooled`); missing numbers are the mean of the present ones. Columns and
    categories stand as in the pooled fit, the first site's order of columns first. Where sums cannot say what a
    pooled fit sees, the rule is: words that no site has named (see `summarise`) have no feature; distinct words and
    numbers are at most the sites' sum (and, of whole numbers, the width of their range), and this bound decides what
    is an identifier; for the 200 most frequent categories only rows that sites have reported count; each site by
    itself may have three words without digit among numbers; truth values count as numbers among numbers. If no site
    names the task, a label that one site by itself would not take for classes is a number.

    Raises `DataError`, one line with site, column and remedy, where sites disagree: a column that is missing, read as
    something else, another label.
    """
    if not summaries:
        raise ConfigError("no site has sent a summary, so there is nothing to agree on")
    client = the_same("client column", {site: one.client for site, one in summaries.items()}, "client=")
    splits = {site: one.split for site, one in summaries.items() if one.split is not None}
    split = the_same("split column", splits, "split=") if splits else None
    label, notes = agree_label(summaries)
    columns: list[Column] = []
    for name in _names(summaries, label.name):
        held = {site: column for site, one in summaries.items() for column in one.columns if column.name == name}
        commas = {site: summaries[site].comma_likely for site in held}
        fitted, column_notes = _agreed(name, held, commas, standardise)
        columns.append(fitted)
        notes += column_notes
    schema = Schema(client=client, split=split, label=label, columns=tuple(columns))
    check_features(schema, notes)
    return schema, tuple(notes)


def _names(summaries: Mapping[str, TableSummary], label: str) -> list[str]:
    """The columns in the order of the first site; raises `DataError` if a site lacks one, has it twice, or it is the
    label."""
    names = list(dict.fromkeys(column.name for one in summaries.values() for column in one.columns))
    for site, one in summaries.items():
        own = [column.name for column in one.columns]
        if len(own) != len({*own}) or label in own:
            raise DataError(f"site '{site}': its summary names a column twice; make it again")
        if lacking := [name for name in names if name not in own]:
            others = next(s for s, other in summaries.items() if lacking[0] in [c.name for c in other.columns])
            raise DataError(
                f"site '{site}' has no column '{lacking[0]}', which site '{others}' has; add it there (cells may be "
                f"empty), or leave it out at all sites: ignore=['{lacking[0]}']"
            )
    return names


def _agreed(name: str, held: Of, commas: Mapping[str, bool], standardise: bool) -> Fitted:
    reading = choose(name, held, commas)
    keep = any(column.keep for column in held.values())
    if reading is None:
        return _category(name, held, keep)
    few = [site for site, column in held.items() if column.count and not _parts(column, reading)]
    parts = [part for column in held.values() if (part := _parts(column, reading)) is not None]
    notes = tuple(f"column '{name}': site '{site}' has too few values and is not used" for site in few)
    if not parts:
        fitted, column_notes = empty_numbers(name)
        return fitted, (*notes, *column_notes)
    whole = moments_whole(parts)
    moments = pooled([part.moments for part in parts])
    missing = sum(column.missing for column in held.values())
    unfit = unfit_numbers(name, reading, whole, keep=keep, one_value=moments.constant and not missing)
    if unfit is not None:
        return unfit[0], (*notes, *unfit[1])
    fitted, column_notes = number(
        name,
        reading,
        fill=moments.mean,
        filled="mean",
        mean=moments.mean,
        deviation=(moments.m2 / (moments.count + missing)) ** 0.5,
        missing=missing > 0,
        constant=moments.constant,
        standardise=standardise,
        plain=reading == "number" and all(_is_numeric(column) for column in held.values()),
    )
    return fitted, (*notes, *column_notes)


def moments_whole(parts: Sequence[Reading]) -> Whole | None:
    """What is known of all sites' whole numbers; None if some are not whole. distinct: at most so many."""
    whole = [part.whole for part in parts if part.whole is not None]
    if len(whole) < len(parts):
        return None
    spread, distinct = float("inf"), sum(part.distinct for part in whole)
    low = [part.smallest for part in whole if part.smallest is not None]
    high = [part.largest for part in whole if part.largest is not None]
    if len(low) == len(high) == len(whole):
        spread = max(high) - min(low)
        distinct = int(min(distinct, spread + 1))
    one_value = pooled([part.moments for part in parts]).constant
    count = sum(part.moments.count for part in parts)
    return Whole(count, 1 if one_value else distinct, all(part.long for part in whole), spread)


def _parts(column: ColumnSummary, reading: str) -> Reading | None:
    """A column's numbers as they are read; those that are stored as numbers or dates need no reading."""
    if column.stored == "text":
        return column.readings.get(reading)
    return next(iter(column.readings.values()), None)


def _category(name: str, held: Of, keep: bool) -> Fitted:
    count: dict[str, int] = {}
    others = rare = missing = 0
    for column in held.values():
        missing += column.missing
        if column.words is not None:
            named = column.words.named
            others += column.words.withheld_rows
            rare += column.words.withheld_words
        elif column.stored == "boolean" and column.readings:
            moments = next(iter(column.readings.values())).moments
            true = round(moments.count * moments.mean)
            named = {"False": moments.count - true, "True": true}
        else:
            if column.count:
                others += column.count
                rare += column.count
            continue
        for word, rows in named.items():
            if rows > 0:
                count[word] = count.get(word, 0) + rows
    numbers = all(_is_numeric(column) for column in held.values())
    ordered = {word: count[word] for word in sorted(count)}
    distinct = len(ordered) + rare
    fitted, column_notes = category(
        name, ordered, others=others, distinct=distinct, missing=missing > 0, numbers=numbers, keep=keep
    )
    if others:
        column_notes = (
            *column_notes,
            f"column '{name}': {others} rows have words too rare to report; such words have no feature",
        )
    return fitted, column_notes


def _is_numeric(column: ColumnSummary) -> bool:
    return column.stored in ("number", "boolean")
