"""Federated data from one table: each row is a sample, with a column for its client and one for its label."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Shaped
from pandas.util import hash_pandas_object

from idiolect.core.errors import DataError, require
from idiolect.core.plugins import named
from idiolect.data.divide.division import divide, large_enough, of_splits
from idiolect.data.encode.labels import check_task, encode_labels, guess_task, lopsided, many_classes
from idiolect.data.encode.rows import check_labels, client_names, rows_of_clients, split_of_rows
from idiolect.data.federated import SPLITS, FederatedData, TaskKind
from idiolect.data.files.table import Table, check_column, column_name, column_names, column_of, read_table
from idiolect.data.partition import Indices, Partition, apply_partition, check_pool, pool_hash
from idiolect.data.schema.columns import Filled, some
from idiolect.data.schema.fit import fit_schema
from idiolect.data.schema.label import Classes, Target, fit_classes, fit_target
from idiolect.data.schema.schema import Schema
from idiolect.data.schema.values import ReadAs


@dataclass(frozen=True, eq=False)
class Pool:
    """A checked table. identity: a hash of every row, before anything is fitted. splits: of its own column.

    labels: as `read_labels` gives them, with how text was read. known: the schema of other data, if one is given.
    """

    table: pd.DataFrame
    where: str
    client: str
    label: str
    split: str | None
    owners: Shaped[np.ndarray, "n"]
    labels: Shaped[np.ndarray, "n"]
    read_as: ReadAs
    task: TaskKind
    features: list[str]
    identity: Shaped[np.ndarray, "n"]
    splits: list[str] | None
    notes: tuple[str, ...]
    comma_likely: bool
    known: Schema | None

    def labels_of(self, used_rows: Indices) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
        """The labels as numbers, 0 in rows that are not used, and the classes that occur in those that are."""
        where = f"{self.where}, column '{self.label}'"
        if self.known is not None and isinstance(self.known.label, Classes):
            codes, classes = (
                self.known.encode_labels(self.table.iloc[used_rows], self.where),
                self.known.label.classes,
            )
        else:
            codes, classes = codes_of(self.labels[used_rows], self.task, where)
        y = np.zeros(len(self.labels), dtype=codes.dtype)
        y[used_rows] = codes
        return y, tuple(classes)

    def fit(
        self, training: Bool[np.ndarray, "n"], classes: Sequence[str], **options: Any
    ) -> tuple[Schema, tuple[str, ...]]:
        """(the table's schema, notes), fitted on these rows. classes: of `labels_of`; options: of `fit_schema`."""
        if classes:
            boolean = pd.api.types.is_bool_dtype(column_of(self.table, self.label).dtype)
            label = fit_classes(self.label, self.labels, classes, boolean)
        else:
            label = fit_target(self.label, self.labels[training], self.read_as)
        columns: dict[str, Any] = {"client": self.client, "label": label, "split": self.split}
        columns |= {"features": self.features, "comma_likely": self.comma_likely}
        return fit_schema(self.table, training, **columns, **options)


def codes_of(
    labels: Shaped[np.ndarray, "n"], task: TaskKind, where: str
) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
    """(a table's labels as numbers, its classes). Raises `DataError` if no two rows have the same class."""
    codes, classes = encode_labels(labels, task, where)
    if len(classes) == len(codes) > 2:
        raise DataError(f"{where}: every row has a label of its own; name the column that is to be predicted")
    return codes, classes


def check_roles(client: str, label: str, split: str) -> None:
    """Raise `DataError` if a column is named for two of client, label and split."""
    if twice := [column for column in (client, label, split) if (client, label, split).count(column) > 1]:
        raise DataError(f"column '{twice[0]}' is named for two of client, label and split; give each its own column")


def task_of(labels: Shaped[np.ndarray, "n"], name: str, task: str | None) -> tuple[TaskKind, list[str]]:
    """(the task as given, else guessed from a table's labels, notes on the guess)."""
    kind = check_task(task) if task is not None else guess_task(labels, whole_floats=True)
    if task is None and kind == "classification" and np.issubdtype(labels.dtype, np.integer):
        return kind, many_classes(name, len(np.unique(labels)))
    return kind, []


def read_pool(
    path: str | Path | pd.DataFrame,
    client: str,
    label: str,
    split: str,
    task: str | None,
    categorical: Sequence[str],
    ignore: Sequence[str],
    keep: Sequence[str],
    known: Schema | None,
) -> Pool:
    """Read and check a table; arguments: see `from_table`. known: the schema of other data, or None."""
    check_roles(client, label, split)
    if isinstance(path, pd.DataFrame) or known is None:
        read = read_table(path, (client,))
    else:
        read = Table(*known.read_file(path))
    table, where = read.rows, read.where
    for column, role in ((client, "client"), (label, "label")):
        check_column(table, column, f"{role} column", where)
    for column in (*categorical, *ignore, *keep):
        check_column(table, column, "column", where)
    has_split = split != "split" or (split in table.columns and split not in ignore)
    if has_split and (known is None or known.split is None or split in table.columns):
        check_column(table, split, "split column", where)
    has_split = has_split and split in table.columns
    owners, notes = client_names(column_of(table, client), where)
    labels, read_as = check_labels(column_of(table, label), where, comma_likely=read.comma_likely)
    not_features = {client, label, *ignore, *((split,) if has_split else ())}
    features = [str(column) for column in table.columns if column not in not_features]
    if not features:
        raise DataError(f"{where}: no feature column apart from the client and label columns")
    try:
        identity = hash_pandas_object(table, index=False).to_numpy()  # pyright: ignore[reportCallIssue]
    except TypeError:
        identity = hash_pandas_object(table.astype(str), index=False).to_numpy()  # pyright: ignore[reportCallIssue]
    if known is not None:
        kind: TaskKind = "classification" if isinstance(known.label, Classes) else "regression"
    else:
        kind, task_notes = task_of(labels, label, task)
        notes = [*notes, *task_notes]
    splits = split_of_rows(column_of(table, split), where) if has_split else None
    return Pool(
        table,
        where,
        client,
        label,
        split if has_split else None,
        owners,
        labels,
        read_as,
        kind,
        features,
        identity,
        splits,
        (*read.notes, *notes),
        read.comma_likely,
        known,
    )


def make_partition(
    source: Pool, *, minimum: int | None, test: float, validation: float, split_seed: int
) -> tuple[Partition, list[str]]:
    """The table's partition by client into splits, and notes on it."""
    rows = rows_of_clients(source.owners)
    kept, notes = large_enough({name: len(client_rows) for name, client_rows in rows.items()}, minimum, source.where)
    rows = {name: rows[name] for name in kept}
    y, _ = source.labels_of(np.sort(np.concatenate(list(rows.values()))))
    try:
        if source.splits is not None:
            return _by_split_column(rows, source.splits, source.identity, y), notes
        options: dict[str, Any] = {"test": test, "validation": validation, "split_seed": split_seed}
        return divide(list(rows.values()), source.identity, y, name="by-client", clients=list(rows), **options), notes
    except DataError as error:
        raise DataError(f"{source.where}: {error}") from error


def _by_split_column(
    rows: Mapping[str, Indices],
    splits: Sequence[str],
    identity: Shaped[np.ndarray, "n"],
    y: Shaped[np.ndarray, "n"],
) -> Partition:
    """The partition given by the table's split column."""
    split_of_row = np.asarray(splits)
    divided = {
        name: [client_rows[split_of_row[client_rows] == name] for client_rows in rows.values()] for name in SPLITS
    }
    for name in ("train", "test"):
        for client, part in zip(rows, divided[name], strict=True):
            if len(part) == 0:
                raise DataError(
                    f"client '{client}' has no {name} rows in the split column; give it some or leave it out"
                )
    return of_splits(divided, identity, y, name="split-column", clients=list(rows))


_kept: ContextVar[dict[tuple[Any, ...], Pool] | None] = ContextVar("tables that are kept", default=None)


@contextmanager
def table_kept() -> Generator[None]:
    """Read a table's file once for all its divisions: inside the block the last one that was read stays in memory.

    A file that has changed since, by its size or time, is read again.
    """
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def free_kept_table() -> None:
    """Free the table that `table_kept` holds, as soon as all its divisions are made."""
    (_kept.get() or {}).clear()


def _pool(path: str | Path | pd.DataFrame, *arguments: Any) -> Pool:
    """`read_pool`, or what it has read before; see `table_kept`."""
    kept, known = _kept.get(), arguments[-1]
    if kept is None or known is not None or isinstance(path, pd.DataFrame):
        return read_pool(path, *arguments)
    try:
        status = Path(path).expanduser().stat()
    except (OSError, ValueError, TypeError):  # the reader says what is wrong
        return read_pool(path, *arguments)
    key = (str(path), status.st_ino, status.st_size, status.st_mtime_ns, repr(arguments))
    if key not in kept:
        kept.clear()  # free the old table before the new one is read
        kept[key] = read_pool(path, *arguments)
    return kept[key]


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
    source = _pool(path, client, label, split, task, categorical, ignore, keep, known)
    notes = list(source.notes)
    if partition is None:
        division, division_notes = make_partition(source, **split_options)
        notes += division_notes
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
            fitted, fit_notes = source.fit(training, classes, missing=missing, **options)
        else:
            fitted, fit_notes = known, ()
    except DataError as error:
        raise DataError(f"{source.where}: {error}") from error
    read_as = f"{len(classes)} classes" if classes else "numbers"
    notes.append(f"label '{label}' is read as {source.task} ({read_as})")
    if partition is None and source.splits is not None:
        notes.append(f"train, validation and test are those of the column '{split}'")
    everything = len(used_rows) == len(y) and bool((np.diff(used_rows) == 1).all())  # then nothing need be copied
    used = source.table if everything else source.table.iloc[used_rows]
    encoding = fitted.read(used, source.where)
    if everything:
        x = encoding.x
    else:
        x = np.zeros((len(y), encoding.x.shape[1]), dtype=np.float32)
        x[used_rows] = encoding.x
    if source.task == "regression":
        y = np.zeros(len(y), np.float32)
        y[used_rows] = fitted.encode_labels(used, source.where)
    notes += _unknown_columns(source.table, known)
    notes += [*fit_notes, *encoding.notes, *_untrained(y, division, classes, label)]
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
    """Return the partition that `from_table` makes with these arguments, to save and reuse it."""
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
