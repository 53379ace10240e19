"""Federated data from one table: each row is a sample, with a column for its client and one for its label."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from idiolect.core.errors import DataError, require
from idiolect.core.plugins import named
from idiolect.data.encode.labels import lopsided
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.files.table import Columns, column_name, column_names, column_of
from idiolect.data.partition import Indices, Partition, apply_partition, as_float32, check_pool, pool_hash
from idiolect.data.schema.columns import Filled, some
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.data.sets.pool import Pool, make_partition, pool_of, read_pool


@named("table")
def from_table(
    path: str | Path | pd.DataFrame,
    client: str = "client",
    label: str = "label",
    *,
    split: str = "split",
    partition: str | Path | Partition | None = None,
    task: str | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    standardise: bool = True,
    missing: Filled = "median",
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    title: str | None = None,
    schema: Schema | str | Path | None = None,
) -> FederatedData:
    """Make federated data from your own table (CSV, Parquet, JSON, Excel, DataFrame) with client and label columns.

    All other columns are features: numbers are standardised (unless standardise is false), also where they are text
    with a decimal comma or among words such as "unknown"; dates are days; text and the columns named in `categorical`
    are one-hot encoded, missing values are filled (by the training rows' median, or mean: `missing`) and marked.

    Columns that identify a row are left out unless named in `keep`, as are constant ones and those named in `ignore`.
    A regression's labels are scaled, too. All of this is fitted on training rows, reported in the notes, and kept as
    the data's `schema`.

    Args:
        path: The file, or the DataFrame; a CSV file's separator and encoding are detected.
        client: The name of the client column.
        label: The name of the label column.
        task: Classification or regression, by default guessed from the labels.
        title: The data's name in reports, by default the file's name.
        split: A column with train, validation or test for each row; without such a column rows are divided at random.
        partition: A saved `table_partition` in place of both; `DataError` if it was made for another table.
        minimum: Drop clients with fewer rows than this, and say so in the notes.
        schema: That of other data, or its file: rows are encoded as those were and nothing is fitted; it names
            client, label and split.
    """
    return table_data(
        in_memory,
        path,
        client,
        label,
        split=split,
        partition=partition,
        task=task,
        categorical=categorical,
        ignore=ignore,
        keep=keep,
        standardise=standardise,
        missing=missing,
        minimum=minimum,
        test=test,
        validation=validation,
        split_seed=split_seed,
        title=title,
        schema=schema,
    )


def table_data(
    encode: "Encode",
    path: str | Path | pd.DataFrame,
    client: str,
    label: str,
    *,
    split: str,
    partition: str | Path | Partition | None,
    task: str | None,
    categorical: Sequence[str],
    ignore: Sequence[str],
    keep: Sequence[str],
    standardise: bool,
    missing: Filled,
    minimum: int | None,
    test: float,
    validation: float,
    split_seed: int,
    title: str | None,
    schema: Schema | str | Path | None,
    by_column: bool = False,
) -> FederatedData:
    """Make federated data from a table. encode: makes the features. The other arguments: see `from_table`.

    by_column: see `read_pool`.
    """
    split_options: dict[str, Any] = {
        "minimum": minimum,
        "test": test,
        "validation": validation,
        "split_seed": split_seed,
    }
    client, label = column_name(client, "client column"), column_name(label, "label column")
    split = column_name(split, "split column")
    categorical, keep = column_names(categorical, "columns of categorical"), column_names(keep, "columns of keep")
    ignore = column_names(ignore, "columns of ignore")
    known = schema if schema is None or isinstance(schema, Schema) else Schema.load(schema)
    if known is not None:
        given = {"task": task, "categorical": categorical, "ignore": ignore, "keep": keep}
        fixed = [key for key, value in given.items() if value] + ([] if standardise else ["standardise"])
        fixed += [] if missing == "median" else ["missing"]
        require(not fixed, f"the schema fixes what columns mean: leave out {', '.join(fixed)}")
        client, label, split = known.client, known.label.name, known.split or split
    source = pool_of(path, client, label, split, task, categorical, ignore, keep, by_column, known)
    if partition is not None:
        defaults = {"minimum": None, "test": 0.25, "validation": 0.1, "split_seed": 0}
        changed = [key for key, value in split_options.items() if value != defaults[key]]
        require(not changed, f"the saved partition {partition} fixes everything: leave out {', '.join(changed)}")
        division = partition if isinstance(partition, Partition) else Partition.load(partition)
        division_notes = list[str]()
    else:
        division, division_notes = make_partition(source, **split_options)
    fitted = fit_table(source, division, categorical=categorical, keep=keep, standardise=standardise, missing=missing)
    x, encoder, encoding_notes = encode(fitted)
    by_split = [f"train, validation and test are those of the column '{split}'"]
    notes = [
        *(*source.notes, *division_notes, fitted.label_note),
        *(by_split if partition is None and source.splits is not None else []),
        *(*_unknown_columns(source.table, known), *fitted.notes, *encoding_notes, *fitted.label_notes),
    ]
    arguments = {
        "path": source.where,
        "client": client,
        "label": label,
        "split": split,
        "partition": partition.name if isinstance(partition, Partition) else partition and str(partition),
        "task": source.task,
        "categorical": list(categorical),
        "ignore": list(ignore),
        "keep": list(keep),
        "standardise": standardise,
        **({} if missing == "median" else {"missing": missing}),
        **split_options,
        "title": title,
        "schema": "given" if known is not None else None,
    }
    return fitted.federated(x, encoder, notes, arguments)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A table with its rows divided, and the schema of its training rows. pool: the hash of rows and labels.

    used_rows: of all splits, in the table's order. y: all rows' labels, 0 in those that are not used. notes: on the
    schema.
    """

    source: Pool
    division: Partition
    used_rows: Indices
    y: Shaped[np.ndarray, "n"]
    classes: tuple[str, ...]
    pool: str
    schema: Schema
    notes: tuple[str, ...]

    @property
    def label_note(self) -> str:
        """How the label is read."""
        read_as = f"{len(self.classes)} classes" if self.classes else "numbers"
        return f"label '{self.source.label}' is read as {self.source.task} ({read_as})"

    @property
    def label_notes(self) -> tuple[str, ...]:
        """What a reader should know of the classes."""
        trained, label = self.y[self.division.train.index], self.source.label
        return (*_untrained(self.y, self.division, self.classes, label), *_lopsided(trained, self.classes, label))

    def federated(
        self,
        x: Shaped[np.ndarray, "n ..."],
        encode: "Encoder",
        notes: Sequence[str],
        arguments: Mapping[str, Any],
    ) -> FederatedData:
        """The federated data; x, encode: see `apply_partition`. arguments: of `from_table`, for the provenance."""
        schema = self.schema
        scaling = {"name": "standardised" if arguments["standardise"] else "none", "fitted_on": "train"}
        return apply_partition(
            self.division,
            x,
            self.y,
            name=arguments["title"] or self.source.where,
            task=self.source.task,
            classes=self.classes,
            encode=encode,
            pool=self.pool,
            notes=notes,
            provenance={
                "source": "table",
                "arguments": arguments,
                "normalisation": scaling,
                "features": list(schema.features),
                "schema": schema.to_dict(),
            },
            schema=schema,
            target=schema.label if isinstance(schema.label, Target) else None,
        )


def fit_table(source: Pool, division: Partition, **options: Any) -> Fitted:
    """Fit the table's schema on the division's training rows, unless it is known. options: see `fit_schema`."""
    used = np.sort(np.concatenate([division.rows(name).index for name in SPLITS]))
    count = len(source.table)
    y, classes = source.labels_of(used[used < count])
    pool = pool_hash(source.identity, y)
    try:
        check_pool(division, pool)
        if source.known is None:
            training = np.zeros(count, dtype=bool)
            training[division.train.index] = True
            schema, notes = source.fit(training, classes, **options)
        else:
            schema, notes = source.known, ()
    except DataError as error:
        raise DataError(f"{source.where}: {error}") from error
    if source.task == "regression":
        labels = column_of(source.table, source.label).iloc[used].to_frame()
        y = np.zeros(count, np.float32)
        y[used] = schema.encode_labels(labels, source.where)
    return Fitted(source, division, used, y, classes, pool, schema, tuple(notes))


Encoder = Callable[[Shaped[np.ndarray, "m ..."]], Float[np.ndarray, "m ..."]]
"""From some rows of an array to the features of these rows."""
Encode = Callable[[Fitted], tuple[Shaped[np.ndarray, "n ..."], Encoder, tuple[str, ...]]]
"""From a table to (an array of all its rows, what makes features of them, notes)."""


def in_memory(fitted: Fitted) -> tuple[Shaped[np.ndarray, "n ..."], Encoder, tuple[str, ...]]:
    """Encode all used rows at once."""
    table, rows = fitted.source.table, fitted.used_rows
    assert isinstance(table, pd.DataFrame)
    everything = len(rows) == len(table) and bool((np.diff(rows) == 1).all())  # then nothing need be copied
    encoding = fitted.schema.read(table if everything else table.iloc[rows], fitted.source.where)
    if everything:
        return encoding.x, as_float32, encoding.notes
    x = np.zeros((len(table), encoding.x.shape[1]), dtype=np.float32)
    x[rows] = encoding.x
    return x, as_float32, encoding.notes


def table_partition(
    path: str | Path | pd.DataFrame,
    client: str = "client",
    label: str = "label",
    *,
    split: str = "split",
    task: str | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
) -> Partition:
    """Return the partition that `from_table` makes with these arguments, to save and reuse it."""
    source = read_pool(path, client, label, split, task, categorical, ignore, (), False, None)
    return make_partition(source, minimum=minimum, test=test, validation=validation, split_seed=split_seed)[0]


def _unknown_columns(table: Columns, known: Schema | None) -> tuple[str, ...]:
    """A note on columns of which the schema of other data does not say what they mean."""
    if known is None:
        return ()
    named = {known.client, known.label.name, known.split, *(column.name for column in known.columns)}
    strange = [str(name) for name in table.columns if name not in named]
    return (f"columns that the schema does not have are not used: {some(strange)}",) if strange else ()


def _untrained(
    y: Shaped[np.ndarray, "n"], division: Partition, classes: Sequence[str], label: str
) -> tuple[str, ...]:
    """A note on classes that no client has in training: nothing can be learnt about them."""
    if not classes:
        return ()
    trained = set(np.unique(y[division.train.index]).tolist())
    tested = np.concatenate([division.test.index, division.validation.index])
    without = [name for code, name in enumerate(classes) if code not in trained and code in y[tested]]
    if not without:
        return ()
    rows = int(np.isin(y[tested], [classes.index(name) for name in without]).sum())
    return (
        f"label '{label}': no training row has {some(without)}, which {rows} others have: a model cannot know it",
    )


def _lopsided(trained: Shaped[np.ndarray, "n"], classes: Sequence[str], label: str) -> tuple[str, ...]:
    """A note if nearly all training rows have one class: accuracy then says little."""
    if not classes:
        return ()
    found = lopsided(trained, classes)
    if found is None:
        return ()
    most, share = found
    return (
        f"label '{label}': {share:.1%} of the training rows are '{most}', so accuracy says little: compare by "
        "--metric balanced-accuracy, weight the classes with --set model.class_weights=balanced",
    )
