"""Federated data from one table: each row is a sample, with a column for its client and one for its label."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from idiolect.core.errors import DataError, require
from idiolect.data.encode.labels import lopsided
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.files.table import column_name, column_names
from idiolect.data.partition import Partition, apply_partition, check_pool, pool_hash
from idiolect.data.schema.columns import Filled, some
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.data.sets.table_pool import make_partition, read_pool


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
    """Your own table (CSV, Parquet, JSON, Excel, or a DataFrame) with a client and a label column.

    path: the file, or the DataFrame; a CSV file's separator and encoding are found out. client, label: the columns.
    task: classification or regression, by default guessed from the labels. title: the data's name in reports, by
    default the file's name.
    All other columns are features: numbers are standardised (unless standardise is false), also where they are text
    with a decimal comma or among words such as "unknown"; dates are days; text and the columns named in `categorical`
    are one-hot encoded, missing values are filled (by the training rows' median, or mean: `missing`) and marked.
    Columns that identify a row are left out unless named in `keep`, as are constant ones and those named in
    `ignore`. A regression's labels are scaled, too. All of this
    is fitted on training rows, told in the notes, and kept as the data's `schema`.
    split: a column with train, validation or test for each row; without such a column rows are divided at random.
    partition: a saved `table_partition` in place of both; `DataError` if it was made for another table.
    minimum: drop clients with fewer rows than this, and say so in the notes.
    schema: that of other data, or its file: rows are encoded as those were and nothing is fitted; it names client,
    label and split.
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
    source = read_pool(path, client, label, split, task, categorical, ignore, keep, known)
    notes = list(source.notes)
    if partition is None:
        division, told = make_partition(source, **split_options)
        notes += told
    else:
        defaults = {"minimum": None, "test": 0.25, "validation": 0.1, "split_seed": 0}
        changed = [key for key, value in split_options.items() if value != defaults[key]]
        require(not changed, f"the saved partition {partition} fixes everything: leave out {', '.join(changed)}")
        division = partition if isinstance(partition, Partition) else Partition.load(partition)
    used_rows = np.sort(np.concatenate([division.rows(name).index for name in SPLITS]))
    y, classes = source.labels_of(used_rows[used_rows < len(source.table)])
    pool = pool_hash(source.identity, y)
    try:
        check_pool(division, pool)
        if known is None:
            training = np.zeros(len(source.table), dtype=bool)
            training[division.train.index] = True
            options: dict[str, Any] = {"categorical": categorical, "keep": keep, "standardise": standardise}
            fitted, told = source.fit(training, classes, missing=missing, **options)
        else:
            fitted, told = known, ()
    except DataError as error:
        raise DataError(f"{source.where}: {error}") from error
    read_as = f"{len(classes)} classes" if classes else "numbers"
    notes.append(f"label '{label}' is read as {source.task} ({read_as})")
    if partition is None and source.splits is not None:
        notes.append(f"train, validation and test are those of the column '{split}'")
    used = source.table.iloc[used_rows]
    encoding = fitted.read(used, source.where)
    x = np.zeros((len(y), encoding.x.shape[1]), dtype=np.float32)
    x[used_rows] = encoding.x
    if source.task == "regression":
        y = np.zeros(len(y), np.float32)
        y[used_rows] = fitted.encode_labels(used, source.where)
    notes += _unknown_columns(source.table, known)
    notes += [*told, *encoding.notes, *_untrained(y, division, classes, label)]
    notes += _lopsided(y[division.train.index], classes, label)
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
    return apply_partition(
        division,
        x,
        y,
        name=title or source.where,
        task=source.task,
        classes=classes,
        pool=pool,
        notes=notes,
        provenance={
            "source": "table",
            "arguments": arguments,
            "normalisation": {"name": "standardised" if standardise else "none", "fitted_on": "train"},
            "features": list(fitted.features),
            "schema": fitted.to_dict(),
        },
        schema=fitted,
        target=fitted.label if isinstance(fitted.label, Target) else None,
    )


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
    """How `from_table` divides a table with these arguments, to be saved and used again."""
    source = read_pool(path, client, label, split, task, categorical, ignore, (), None)
    return make_partition(source, minimum=minimum, test=test, validation=validation, split_seed=split_seed)[0]


def _unknown_columns(table: pd.DataFrame, known: Schema | None) -> tuple[str, ...]:
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
