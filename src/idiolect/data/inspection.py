"""What a table holds and what would be done to it, before anything is trained."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from idiolect.data.encode.labels import lopsided
from idiolect.data.encode.rows import rows_of_clients
from idiolect.data.files.table import column_name, column_of
from idiolect.data.schema.columns import LeftOut, some
from idiolect.data.schema.label import Target
from idiolect.data.schema.leaks import repeated_columns, telling_columns
from idiolect.data.schema.schema import Schema, describe
from idiolect.data.sets.table_pool import Pool, read_pool

FEW_ROWS = 10


@dataclass(frozen=True)
class InspectedColumn:
    """One column: its share of missing values, its distinct values, and what would be done to it."""

    name: str
    missing: float
    distinct: int
    done: str


@dataclass(frozen=True)
class InspectedClient:
    """One client: its rows, and their labels (each class's rows, or mean and deviation)."""

    name: str
    rows: int
    labels: Mapping[str, float]


@dataclass(frozen=True)
class Inspection:
    """What a table holds. suspicions: what a person should look at first; command: how to go on."""

    where: str
    rows: int
    task: str
    labels: Mapping[str, float]
    clients: tuple[InspectedClient, ...]
    columns: tuple[InspectedColumn, ...]
    notes: tuple[str, ...]
    suspicions: tuple[str, ...]
    command: str

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain values."""
        return asdict(self)


def inspect_table(
    path: str | Path | pd.DataFrame, client: str = "client", label: str = "label", *, task: str | None = None
) -> Inspection:
    """Look at a table. What columns mean is fitted on all rows here; training fits it on training rows.

    Raises `DataError` as `from_table` does for what cannot be used at all.
    """
    client, label = column_name(client, "client column"), column_name(label, "label column")
    pool = read_pool(path, client, label, "split", task, (), (), (), None)
    y, classes = pool.labels_of(np.arange(len(pool.table)))
    schema, notes = pool.fit(np.ones(len(y), dtype=bool), classes)
    encoded = schema.encode_labels(pool.table) if isinstance(schema.label, Target) else y
    telling = telling_columns(schema, schema.encode(pool.table), encoded)
    rows_of = rows_of_clients(pool.owners)
    clients = tuple(InspectedClient(name, len(rows), _labels(y[rows], classes)) for name, rows in rows_of.items())
    return Inspection(
        where=pool.where,
        rows=len(pool.table),
        task=pool.task,
        labels=_labels(y, classes),
        clients=clients,
        columns=tuple(_column(pool.table, name, done) for name, done in describe(schema.columns)),
        notes=(*pool.notes, *notes),
        suspicions=tuple(_suspicions(pool, schema, clients, y, classes, telling)),
        command=_command(path, pool, task, telling, clients),
    )


def _labels(y: np.ndarray, classes: tuple[str, ...]) -> dict[str, float]:
    if classes:
        return dict(zip(classes, np.bincount(y, minlength=len(classes)).tolist(), strict=True))
    return {"mean": float(np.mean(y, dtype=np.float64)), "std": float(np.std(y, dtype=np.float64))}


def _column(table: pd.DataFrame, name: str, done: str) -> InspectedColumn:
    column = column_of(table, name)
    return InspectedColumn(name, float(column.isna().mean()), int(column.nunique()), done)


def _suspicions(
    pool: Pool,
    schema: Schema,
    clients: tuple[InspectedClient, ...],
    y: np.ndarray,
    classes: tuple[str, ...],
    telling: tuple[str, ...],
) -> list[str]:
    found: list[str] = []
    for name in telling:
        found.append(f"column '{name}' alone tells the label of every row: is it the label under another name?")
    for name, other in repeated_columns(pool.table, pool.features):
        found.append(f"column '{name}' repeats '{other}'")
    found += _identifiers(schema)
    found += _copies(pool)
    small = [one.name for one in clients if one.rows < FEW_ROWS]
    if small:
        found.append(f"{len(small)} of {len(clients)} clients have fewer than {FEW_ROWS} rows: {some(small)}")
    if len(clients) == 1:
        found.append("there is a single client: nothing to federate")
    if classes:
        if (most := lopsided(y, classes)) is not None:
            name, share = most
            found.append(
                f"{share:.1%} of the labels are '{name}': accuracy says little, compare by balanced-accuracy or auroc"
            )
        single = [one.name for one in clients if sum(count > 0 for count in one.labels.values()) == 1]
        if single:
            found.append(f"{len(single)} of {len(clients)} clients have one class only: {some(single)}")
    return found


def _identifiers(schema: Schema) -> list[str]:
    left_out = [column for column in schema.columns if isinstance(column, LeftOut)]
    return [f"column '{column.name}' is {column.why}" for column in left_out if "identifier" in column.why]


def _copies(pool: Pool) -> list[str]:
    """Rows with equal features and label at several clients, and more than once at one.

    Rows of few columns with few values repeat by chance, so this speaks only where most rows are distinct.
    """
    rows = pool.table[[*pool.features, pool.label]].astype(str)
    number = rows.groupby(list(rows.columns), sort=False, dropna=False).ngroup().to_numpy()
    if len(np.unique(number)) < 0.9 * len(number):
        return []
    held = np.unique(np.stack([number, np.unique(pool.owners, return_inverse=True)[1]]), axis=1)
    clients = np.bincount(held[0])
    shared, repeated = int((clients[number] > 1).sum()), len(number) - held.shape[1]
    found = [f"{shared} rows stand at more than one client"] if shared else []
    return found + ([f"{repeated} rows repeat another row of their client"] if repeated else [])


def _command(
    path: str | Path | pd.DataFrame,
    pool: Pool,
    task: str | None,
    telling: tuple[str, ...],
    clients: tuple[InspectedClient, ...],
) -> str:
    """The command that compares methods on the table, with what the suspicions call for."""
    file = "TABLE.csv" if isinstance(path, pd.DataFrame) else str(path)
    words = ["idiolect", "compare", "--data", file, "--client", pool.client, "--label", pool.label]
    if task is not None:
        words += ["--set", f"data.task={task}"]
    if telling:
        words += ["--set", "data.ignore=[" + ", ".join(f'"{name}"' for name in telling) + "]"]
    if any(one.rows < 4 for one in clients):
        words += ["--set", "data.minimum=4"]
    return shlex.join(words)
