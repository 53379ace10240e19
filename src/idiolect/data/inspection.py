"""Inspect a table before training: its columns and clients, how they would be encoded, and what looks wrong."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Bool, Shaped

from idiolect.core.errors import DataError
from idiolect.data.audit import repeated_columns, telling_columns
from idiolect.data.encode.labels import FEW, lopsided
from idiolect.data.encode.rows import check_labels, client_names, is_given, rows_of_clients, split_of_rows
from idiolect.data.files.table import Table, check_column, column_name, column_of, read_table
from idiolect.data.schema.columns import LARGEST, Column, LeftOut, some
from idiolect.data.schema.fit import fit_column
from idiolect.data.schema.label import Label, fit_classes, fit_target
from idiolect.data.schema.schema import Schema, check_features, describe
from idiolect.data.schema.values import is_numeric
from idiolect.data.sets.pool import check_roles, codes_of, task_of

FEW_ROWS = 10


def suspicions_of(
    table: pd.DataFrame,
    features: list[str],
    label: str,
    owners: Shaped[np.ndarray, "n"],
    columns: Sequence[Column],
    telling: Sequence[str],
) -> list[str]:
    """Columns that give the label, repeat another or identify a row; rows that occur twice.

    owners: each row's client. columns: what the feature columns mean. telling: those that give every label.
    """
    found = [
        f"column '{name}' gives the label of every row by itself: is it the label under another name?"
        for name in telling
    ]
    found += [f"column '{name}' repeats '{other}'" for name, other in repeated_columns(table, features)]
    left_out = [column for column in columns if isinstance(column, LeftOut)]
    found += [f"column '{column.name}' is {column.why}" for column in left_out if "identifier" in column.why]
    return found + _copies(table.loc[:, [*features, label]], owners)


def of_clients(rows: Mapping[str, int]) -> list[str]:
    """Clients with few rows, and a federation of one. rows: of each client."""
    small = [name for name, count in rows.items() if count < FEW_ROWS]
    found = [f"{len(small)} of {len(rows)} clients have fewer than {FEW_ROWS} rows: {some(small)}"] if small else []
    return found + (["there is a single client: nothing to federate"] if len(rows) == 1 else [])


def of_classes(
    y: Shaped[np.ndarray, "n"], classes: tuple[str, ...], counts: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Classes of which nearly all labels are, at all clients or at some. counts: each client's rows of each class."""
    found: list[str] = []
    if (most := lopsided(y, classes)) is not None:
        name, share = most
        found.append(
            f"{share:.1%} of the labels are '{name}': accuracy says little, compare by balanced-accuracy or auroc"
        )
    single = [name for name, held in counts.items() if sum(count > 0 for count in held.values()) == 1]
    if single:
        found.append(f"{len(single)} of {len(counts)} clients have one class only: {some(single)}")
    return found


def _copies(table: pd.DataFrame, owners: Shaped[np.ndarray, "n"]) -> list[str]:
    """Rows with equal features and label at several clients, and more than once at one.

    Rows of few columns with few values repeat by chance, so this speaks only where most rows are distinct.
    """
    if len(table) == 0:
        return []
    rows = table.astype(str)
    number = rows.groupby(list(rows.columns), sort=False, dropna=False).ngroup().to_numpy()
    if len(np.unique(number)) < 0.9 * len(number):
        return []
    held = np.unique(np.stack([number, np.unique(owners, return_inverse=True)[1]]), axis=1)
    clients = np.bincount(held[0])
    shared, repeated = int((clients[number] > 1).sum()), len(number) - held.shape[1]
    found = [f"{shared} rows are held by more than one client"] if shared else []
    return found + ([f"{repeated} rows repeat another row of their client"] if repeated else [])


SPLIT = "split"
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class InspectedColumn:
    """One column: its share of missing values, its distinct values, and what would be done to it."""

    name: str
    missing: float
    distinct: int
    done: str


@dataclass(frozen=True)
class InspectedClient:
    """One client: its rows, their labels (each class's rows, or mean and deviation), and rows without a label."""

    name: str
    rows: int
    labels: Mapping[str, float]
    unlabelled: int = 0


@dataclass(frozen=True)
class Inspection:
    """What a table holds.

    faults: what must be corrected before training. suspicions: what a person should check first;
    command: the next command.
    """

    where: str
    rows: int
    task: str
    labels: Mapping[str, float]
    clients: tuple[InspectedClient, ...]
    columns: tuple[InspectedColumn, ...]
    notes: tuple[str, ...]
    suspicions: tuple[str, ...]
    command: str
    faults: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain values."""
        return asdict(self)


@dataclass
class _Look:
    """Collects the faults of a table by trying what training would do."""

    where: str
    faults: list[str] = field(default_factory=list[str])

    def tried(self, function: Callable[..., _Result], *arguments: Any, **options: Any) -> _Result | None:
        """The function's result; None if it raises `DataError`, which is a fault."""
        try:
            return function(*arguments, **options)
        except DataError as error:
            self.faults.append(str(error).removeprefix(self.where).lstrip(":, "))
            return None


@dataclass(frozen=True)
class _Labels:
    """The labels of the `usable` rows, y as numbers, and their classes. label: None if nothing can learn them."""

    usable: Bool[np.ndarray, "n"]
    task: str
    y: Shaped[np.ndarray, "m"]
    classes: tuple[str, ...]
    label: Label | None
    notes: Sequence[str] = ()


def inspect_table(
    path: str | Path | pd.DataFrame, client: str = "client", label: str = "label", *, task: str | None = None
) -> Inspection:
    """Look at a table, also at one that cannot be trained on: its `faults` say what to mend, and where.

    What columns mean is fitted on all rows here; training fits it on training rows. Raises `DataError` for what is
    not a table, and for one without the client or label column.
    """
    client, label = column_name(client, "client column"), column_name(label, "label column")
    check_roles(client, label, SPLIT)
    read = read_table(path, (client,))
    for column, role in ((client, "client"), (label, "label")):
        check_column(read.rows, column, f"{role} column", read.where)
    look, table = _Look(read.where), read.rows
    owned = is_given(column_of(table, client))
    look.tried(client_names, column_of(table, client), read.where)
    owners, notes = _owners(column_of(table, client).iloc[np.flatnonzero(owned)], read.where)
    labels = _labels(look, read, label, task, owned)
    if SPLIT in table.columns:
        look.tried(split_of_rows, column_of(table, SPLIT), read.where)
    features = [str(name) for name in table.columns if name not in (client, label, SPLIT)]
    fitted, fit_notes = _fitted(look, table, features, read.comma_likely)
    rows = table.iloc[np.flatnonzero(labels.usable)].reset_index(drop=True)
    telling = _telling(look, Schema.model_construct(columns=tuple(fitted.values())), fit_notes, rows, labels)
    clients = _clients(owners, labels, owned)
    if gaps := [f"{one.name} {one.unlabelled} of {one.rows}" for one in clients if one.unlabelled]:
        look.faults.append(f"rows without a usable label by client: {some(gaps, 20)}")
    done = dict(describe(tuple(fitted.values())))
    whole = [name for name in features if name in fitted]
    suspicions = suspicions_of(rows, whole, label, owners[labels.usable[owned]], tuple(fitted.values()), telling)
    if labels.label is not None and labels.classes:
        suspicions += of_classes(labels.y, labels.classes, {one.name: one.labels for one in clients})
    suspicions += of_clients({one.name: one.rows for one in clients})
    return Inspection(
        where=read.where,
        rows=len(table),
        task=labels.task,
        labels=_counts(labels.y, labels.classes),
        clients=clients,
        columns=tuple(_column(table, name, done.get(name, "cannot be used as it is")) for name in features),
        notes=(*read.notes, *notes, *labels.notes, *fit_notes),
        suspicions=tuple(suspicions),
        command=_command(path, client, label, task, telling, clients),
        faults=tuple(look.faults),
    )


def _owners(column: pd.Series, where: str) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
    """(the client of every row that has one, notes)."""
    return client_names(column, where) if len(column) else (np.zeros(0, str), ())


def _labels(look: _Look, read: Table, name: str, task: str | None, owned: Bool[np.ndarray, "n"]) -> _Labels:
    """The labels of the rows that have a client and a usable label; why others have none is a fault."""
    column, where = column_of(read.rows, name), read.where
    usable = is_given(column)
    if not usable.all():
        look.tried(check_labels, column, where)
    if is_numeric(column) and not pd.api.types.is_bool_dtype(column.dtype):
        given, values = usable, column.to_numpy(dtype=np.float64, na_value=np.nan)
        usable = given & (np.abs(values) <= LARGEST)
        if (given & ~usable).any():
            look.tried(check_labels, column.iloc[np.flatnonzero(given)], where)
    usable = usable & owned
    nothing = _Labels(usable & False, task or "classification", np.zeros(0, np.int32), (), None)
    if not usable.any():
        return nothing
    checked = look.tried(check_labels, column.iloc[np.flatnonzero(usable)], where, comma_likely=read.comma_likely)
    if checked is None:
        return nothing
    values, read_as = checked
    kind, notes = task_of(values, name, task)
    coded = look.tried(codes_of, values, kind, f"{where}, column '{name}'")
    if coded is None:
        words, codes = np.unique(values.astype(str), return_inverse=True)
        if kind == "classification" and len(words) <= FEW:
            return _Labels(usable, kind, codes, tuple(words.tolist()), None)
        return _Labels(usable, kind, nothing.y, (), None)
    y, classes = coded
    is_boolean = pd.api.types.is_bool_dtype(column.dtype)
    label = fit_classes(name, values, classes, is_boolean) if classes else fit_target(name, values, read_as)
    return _Labels(usable, kind, y, classes, label, notes)


def _fitted(
    look: _Look, table: pd.DataFrame, names: Sequence[str], comma_likely: bool
) -> tuple[dict[str, Column], list[str]]:
    """(the kind of each feature column that can be used, notes)."""
    fitted: dict[str, Column] = {}
    notes: list[str] = []
    for name in names:
        found = look.tried(fit_column, column_of(table, name), comma_likely=comma_likely)
        if found is not None:
            fitted[name] = found[0]
            notes += found[1]
    return fitted, notes


def _telling(
    look: _Look, schema: Schema, notes: Sequence[str], rows: pd.DataFrame, labels: _Labels
) -> tuple[str, ...]:
    """The columns that give the label of every row. A table without a feature is a fault."""
    look.tried(check_features, schema, notes)
    if labels.label is None or not schema.features:
        return ()
    named = schema.model_copy(update={"label": labels.label})
    return telling_columns(named, [schema.encode(rows)], labels.y)


def _clients(
    owners: Shaped[np.ndarray, "owned"], labels: _Labels, owned: Bool[np.ndarray, "n"]
) -> tuple[InspectedClient, ...]:
    usable = labels.usable[owned]
    place = np.cumsum(usable) - 1  # of a row's label among the usable ones
    return tuple(
        InspectedClient(
            name,
            len(rows),
            _counts(labels.y[place[rows[usable[rows]]]] if len(labels.y) else labels.y, labels.classes),
            int((~usable[rows]).sum()),
        )
        for name, rows in rows_of_clients(owners).items()
    )


def _counts(y: Shaped[np.ndarray, "m"], classes: tuple[str, ...]) -> dict[str, float]:
    """Each class's rows, or the targets' mean and deviation; nothing of no rows without classes."""
    if classes:
        return dict(zip(classes, np.bincount(y, minlength=len(classes)).tolist(), strict=True))
    if len(y) == 0:
        return {}
    return {"mean": float(np.mean(y, dtype=np.float64)), "std": float(np.std(y, dtype=np.float64))}


def _column(table: pd.DataFrame, name: str, done: str) -> InspectedColumn:
    column = column_of(table, name)
    try:
        distinct = int(column.nunique())
    except TypeError:  # lists
        distinct = int(column.astype(str).nunique())
    return InspectedColumn(name, float(column.isna().mean()), distinct, done)


def _command(
    path: str | Path | pd.DataFrame,
    client: str,
    label: str,
    task: str | None,
    telling: tuple[str, ...],
    clients: tuple[InspectedClient, ...],
) -> str:
    """The command that compares methods on the table, with what the suspicions call for."""
    file = "TABLE.csv" if isinstance(path, pd.DataFrame) else str(path)
    words = ["idiolect", "compare", file, "--client", client, "--label", label]
    if task is not None:
        words += ["--set", f"data.task={task}"]
    if telling:
        words += ["--set", "data.ignore=[" + ", ".join(f'"{name}"' for name in telling) + "]"]
    if any(one.rows < 4 for one in clients):
        words += ["--set", "data.minimum=4"]
    return shlex.join(words)
