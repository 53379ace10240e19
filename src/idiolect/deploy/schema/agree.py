"""Agree on one schema from the summaries of all sites."""

from collections.abc import Mapping, Sequence

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.schema.columns import Column
from idiolect.data.schema.fit import Fitted, Whole, category, empty_numbers, number, unfit_numbers
from idiolect.data.schema.schema import Schema, check_features
from idiolect.deploy.schema.agree_label import agree_label
from idiolect.deploy.schema.moments import pooled
from idiolect.deploy.schema.readings import choose, the_same
from idiolect.deploy.schema.summary import ColumnSummary, Reading, Summary

Of = dict[str, ColumnSummary]
"""One column, by site."""


def agree(summaries: Mapping[str, Summary], *, standardise: bool = True) -> tuple[Schema, tuple[str, ...]]:
    """(the schema that `from_table(missing="mean")` fits on all sites' training rows together, notes).

    Means and deviations are pooled exactly (`pooled`); missing numbers are the mean of the present ones. Columns and
    categories stand as in the pooled fit, the first site's order of columns first. Where sums cannot say what a
    pooled fit sees, the rule is: words that no site has named (see `summarise`) have no feature; distinct words and
    numbers are at most the sites' sum (and, of whole numbers, the width of their range), and this bound decides what
    is an identifier; for the 200 most frequent categories only rows that sites have told count; each site by itself
    may have three words without digit among numbers; truth values count as numbers beside numbers. If no site names
    the task, a label that one site alone would not take for classes is a number.

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
        fitted, told = _agreed(name, held, commas, standardise)
        columns.append(fitted)
        notes += told
    schema = Schema(client=client, split=split, label=label, columns=tuple(columns))
    check_features(schema, notes)
    return schema, tuple(notes)


def _names(summaries: Mapping[str, Summary], label: str) -> list[str]:
    """The columns in the order of the first site; raises `DataError` if a site lacks one, has it twice, or it is the
    label."""
    names = list(dict.fromkeys(column.name for one in summaries.values() for column in one.columns))
    for site, one in summaries.items():
        own = [column.name for column in one.columns]
        if len(own) != len({*own}) or label in own:
            raise DataError(f"site '{site}': its summary names a column twice; make it anew")
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
    notes = tuple(f"column '{name}': site '{site}' has too few values and counts for nothing" for site in few)
    if not parts:
        fitted, told = empty_numbers(name)
        return fitted, (*notes, *told)
    whole = moments_whole(parts)
    moments = pooled([part.moments for part in parts])
    missing = sum(column.missing for column in held.values())
    unfit = unfit_numbers(name, reading, whole, keep=keep, one_value=moments.constant and not missing)
    if unfit is not None:
        return unfit[0], (*notes, *unfit[1])
    fitted, told = number(
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
    return fitted, (*notes, *told)


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
    fitted, told = category(
        name, ordered, others=others, distinct=distinct, missing=missing > 0, numbers=numbers, keep=keep
    )
    if others:
        told = (*told, f"column '{name}': {others} rows have words too rare to be told; such words have no feature")
    return fitted, told


def _is_numeric(column: ColumnSummary) -> bool:
    return column.stored in ("number", "boolean")
