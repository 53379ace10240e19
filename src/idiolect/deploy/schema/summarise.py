"""Summarise a site's own rows of a table: what `agree` needs, and nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped

from idiolect.core.errors import DataError, require
from idiolect.data.encode.labels import FEW, MANY, check_task
from idiolect.data.encode.rows import check_labels, client_names, split_of_rows
from idiolect.data.files.table import check_column, column_of, read_table
from idiolect.data.schema.columns import check_range, some
from idiolect.data.schema.fit import suspect_words, whole_of
from idiolect.data.schema.values import ReadAs, is_numeric, numbered, numbers_of, possible_readings, words_of
from idiolect.data.sets.like import divide_alone
from idiolect.deploy.schema.summary import (
    ColumnSummary,
    LabelSummary,
    Moments,
    Reading,
    Stored,
    TableSummary,
    WholeNumbers,
    WordCounts,
)


def rows_of_site(
    table: pd.DataFrame, client: str, site: str, where: str, *, optional: str = "client"
) -> pd.DataFrame:
    """The rows of the site, their index as in the table.

    client: the client column; "" for a table that is the site's own as a whole, as is one without the column
    `optional`. Raises `DataError` if the site has no row.
    """
    if not client or (client == optional and client not in table.columns):
        return table
    check_column(table, client, "client column", where)
    owners, _ = client_names(column_of(table, client), where)
    own = np.flatnonzero(owners == site)
    if len(own) == 0:
        held = some(sorted(set(owners.tolist())))
        raise DataError(
            f"{where}: no row of column '{client}' has the client '{site}', it has {held}; name the site so, or give "
            "client = '' if all rows are the site's"
        )
    return table.iloc[own]


class OpenedTable(NamedTuple):
    """A site's own rows of a table. train: the places of the training rows among them.

    features: all columns but those of clients, splits and labels, and those to be ignored. split: the column of
    splits, if there is one.
    """

    rows: pd.DataFrame
    train: Int[np.ndarray, "rows"]
    features: tuple[str, ...]
    split: str | None
    where: str
    comma_likely: bool

    @property
    def training(self) -> pd.DataFrame:
        """The training rows."""
        return self.rows.iloc[self.train]


def opened(
    table: str | Path | pd.DataFrame,
    *,
    site: str,
    client: str,
    label: str,
    split: str,
    named: Sequence[str] = (),
    ignore: Sequence[str] = (),
    **fractions: Any,
) -> OpenedTable:
    """Read a site's own rows of a table; arguments: see `summarise`. named: columns that must exist.

    Raises `DataError` as `from_table` does.
    """
    read = read_table(table, (client,))
    rows, where = rows_of_site(read.rows, client, site, read.where), read.where
    check_column(rows, label, "label column", where)
    for column in named:
        check_column(rows, column, "column", where)
    has_split = split != "split" or (split in rows.columns and split not in ignore)
    if has_split:
        check_column(rows, split, "split column", where)
    splits = split_of_rows(column_of(rows, split), where) if has_split else None
    train = divide_alone(site, np.arange(len(rows)), splits, where, **fractions)[0]
    not_features = {client, label, *ignore, *((split,) if has_split else ())}
    features = tuple(name for name in map(str, rows.columns) if name not in not_features)
    return OpenedTable(rows, train, features, split if has_split else None, where, read.comma_likely)


def summarise(
    table: str | Path | pd.DataFrame,
    *,
    site: str,
    client: str = "client",
    label: str = "label",
    split: str = "split",
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    minimum: int = 5,
    task: str | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
) -> TableSummary:
    """Summarise this site's training rows so that a schema can be agreed on; arguments: see `from_table`.

    site: its name. If the table has the client column, only rows of this client are the site's. The rows are divided
    as `own_data` divides them. Words, and numbers of columns, that fewer than `minimum` training rows have are not
    in it; the names of all classes are, also those of test rows. Raises `DataError` as `from_table` does, and if the
    labels look like names of rows.
    """
    require(minimum >= 1, f"minimum = {minimum} must be at least 1 row")
    read = opened(
        table,
        site=site,
        client=client,
        label=label,
        split=split,
        named=(*categorical, *ignore, *keep),
        ignore=ignore,
        test=test,
        validation=validation,
        split_seed=split_seed,
    )
    rows, train, where = read.rows, read.train, read.where
    named = check_task(task) if task is not None else None
    label_summary = _label(column_of(rows, label), train, where, named, minimum, comma_likely=read.comma_likely)
    try:
        columns = tuple(
            _column(column_of(read.training, name), minimum, categorical=name in categorical, keep=name in keep)
            for name in read.features
        )
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return TableSummary(
        site=site,
        client=client,
        split=read.split,
        rows=len(train),
        minimum=minimum,
        comma_likely=read.comma_likely,
        label=label_summary,
        columns=columns,
    )


def _column(column: pd.Series, minimum: int, *, categorical: bool, keep: bool) -> ColumnSummary:
    """One column's training rows."""
    name, stored = str(column.name), stored_as(column)
    readings = [] if categorical else list(possible_readings(column))
    if not readings:
        words = words_of(column)
        count = numbered(words.code, len(words.distinct))
        present = int(count.sum())
        word_counts = _words(words.distinct, count, minimum)
        return ColumnSummary(
            name=name,
            stored=stored,
            count=present,
            missing=len(column) - present,
            keep=keep or categorical,
            words=word_counts,
        )
    read = {reading: numbers_of(column, reading).values for reading in readings}
    for values in read.values():
        check_range(values, column)
    missing = int(np.isnan(read[readings[0]]).sum())
    enough = len(column) - missing >= minimum
    return ColumnSummary(
        name=name,
        stored=stored,
        count=len(column) - missing,
        missing=missing,
        keep=keep,
        readings={reading: reading_of(values[~np.isnan(values)]) for reading, values in read.items()}
        if enough
        else {},
    )


def stored_as(column: pd.Series) -> Stored:
    """What the table holds in a column."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return "boolean"
    if is_numeric(column):
        return "number"
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else ""
    if kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype):
        return "date"
    return "duration" if kind == "m" else "text"


def _words(distinct: Shaped[np.ndarray, "words"], count: Int[np.ndarray, "words"], minimum: int) -> WordCounts:
    """The words of at least `minimum` rows, and the number of others."""
    held = {str(word): int(rows) for word, rows in zip(distinct, count, strict=True) if rows > 0}
    named = {word: rows for word, rows in held.items() if rows >= minimum}
    rare = sum(held.values()) - sum(named.values())
    return WordCounts(named=named, withheld_words=len(held) - len(named), withheld_rows=rare)


def reading_of(values: Float[np.ndarray, "n"]) -> Reading:
    """The moments of some numbers, in double precision and two passes, and what identifies an identifier."""
    if np.ptp(values) == 0:
        moments = Moments(count=len(values), mean=float(values[0]), m2=0.0, constant=True)
    else:
        mean = float(values.mean())
        moments = Moments(count=len(values), mean=mean, m2=float(((values - mean) ** 2).sum()))
    whole = whole_of(values)
    if whole is None:
        return Reading(moments=moments)
    ends = (float(values.min()), float(values.max())) if whole.distinct >= 0.9 * whole.present else (None, None)
    whole_numbers = WholeNumbers(distinct=whole.distinct, long=whole.long, smallest=ends[0], largest=ends[1])
    return Reading(moments=moments, whole=whole_numbers)


def _label(
    column: pd.Series,
    train: Int[np.ndarray, "rows"],
    where: str,
    task: str | None,
    minimum: int,
    *,
    comma_likely: bool,
) -> LabelSummary:
    """The label: its classes if it can have some, its moments if it can be a number."""
    labels, _ = check_labels(column, where, comma_likely=comma_likely)
    name, kind = str(column.name), labels.dtype.kind
    values, code = np.unique(labels, return_inverse=True)
    stored = {"i": "integer", "u": "integer", "f": "float"}.get(kind, "text")
    stored = "boolean" if pd.api.types.is_bool_dtype(column.dtype) else stored
    whole = stored in ("integer", "float") and bool((labels == np.round(labels)).all())
    if task == "regression" and stored in ("text", "boolean"):
        raise DataError(f"{where}: column '{name}': regression needs numbers as labels, they are {stored}")
    if task == "classification" and stored == "float" and not whole:
        raise DataError(f"{where}: column '{name}': labels with fractions cannot be classes; use task='regression'")
    few = len(values) <= (FEW if stored == "float" else MANY)
    can_be = stored in ("text", "boolean") or task == "classification" or (whole and few)
    classes: dict[str, int] | None = None
    own = suspect_words(len(labels), len(values)) != ""
    if own and whole and task is None:
        can_be = False  # so many distinct numbers are no classes
    if can_be and task != "regression":
        if own:
            raise DataError(
                f"{where}: column '{name}': nearly every row has a label of its own; name the column to be predicted"
            )
        count = np.bincount(code.reshape(-1)[train], minlength=len(values))
        texts = [str(int(value)) if whole else str(value) for value in values]
        classes = dict(zip(texts, map(int, count), strict=True))
    readings: dict[str, Reading] = {}
    if stored in ("integer", "float") and task != "classification" and len(train) >= minimum:
        possible: list[ReadAs] = [
            one for one in possible_readings(column) if one == "number" or one == "decimal comma"
        ]
        read = {one: numbers_of(column, one).values[train] for one in possible}
        readings = {one: reading_of(values).model_copy(update={"whole": None}) for one, values in read.items()}
    return LabelSummary.model_validate(
        {"name": name, "stored": stored, "task": task, "classes": classes, "readings": readings}
    )
