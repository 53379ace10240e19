"""A site's own data: one client, from its table or a file of arrays; and the summary that it sends about them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from jaxtyping import Shaped
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from idiolect.core.errors import DataError, require
from idiolect.core.memory import aligned_empty
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.modalities import Modalities
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.data.sets.like import encode_rows
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message, Vectors, read_message, write_message
from idiolect.deploy.schema.describe import Described, describe
from idiolect.deploy.schema.summarise import rows_of_site, summarise
from idiolect.deploy.schema.summary import TableSummary
from idiolect.deploy.site.rows import digest_of_rows

FORMAT = "idiolect-arrays"


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class OwnData:
    """Where a site's data lie. name: the site's, which is its client's; either `table` or `arrays`.

    table: a file with one row per sample; arrays: a file that `save_arrays` wrote. schema: a schema's file, if it was
    not agreed on. label, split, client: the table's columns, by default those of the schema; client = "": all rows
    are the site's. test, validation, split_seed: how the site divides its rows if it has no column of splits.
    """

    name: str
    table: Path | None = None
    arrays: Path | None = None
    schema: Path | None = None
    label: str | None = None
    split: str | None = None
    client: str | None = None
    test: float = 0.25
    validation: float = 0.1
    split_seed: int = 0


def own_data(settings: OwnData, kind: Kind | None = None) -> FederatedData:
    """The site's data, a federation of one client; `kind`: what was agreed, whose schema encodes the table.

    The rows of a table are divided whoever else exists: by its column of splits, else by `split_seed` and the site's
    name. Raises `ConfigError` for settings that contradict each other, `DataError` for data of another kind.
    """
    both = (settings.table is None) == (settings.arrays is None)
    require(not both, f"site '{settings.name}': name its data, either as a table or as arrays")
    data = _from_arrays(settings) if settings.table is None else _from_table(settings, settings.table, kind)
    if kind is None:
        return data
    kind.check(data)
    return replace(data, name=kind.name)


def digest_of_training(salt: str, data: FederatedData) -> str:
    """The digest of the training rows with the site's salt, see `rows`."""
    train = data.stored("train")
    return digest_of_rows(salt, (train.x, train.y) if train.outputs is None else (train.x, train.y, train.outputs))


def save_arrays(path: str | Path, data: FederatedData, client: int) -> None:
    """Write one client's samples of all splits, and what kind of data they are, as a file for its site.

    Raises `DataError` if the samples are generated, not stored, `StoreError` if the file cannot be written.
    """
    require(0 <= client < data.num_clients, f"client = {client} must lie between 0 and {data.num_clients - 1}")
    one = data.select(lambda index: index == client)
    vectors: dict[str, Shaped[np.ndarray, ...]] = {}
    for name in SPLITS:
        split = one.stored(name)
        vectors |= {f"{name}.x": split.x, f"{name}.y": split.y}
        vectors |= {} if split.outputs is None else {f"{name}.outputs": split.outputs}
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "client": one.clients[0],
        "kind": Kind.of(data).to_dict(),
        "target": None if data.target is None else data.target.model_dump(mode="json"),
        "own_classes": list(one.own_classes[0]) if one.own_classes else None,
        "notes": list(data.notes),
    }
    write_message(Path(path), Message(header, vectors))


def _from_table(settings: OwnData, path: Path | pd.DataFrame, kind: Kind | None) -> FederatedData:
    schema = _schema(settings, kind)
    client = schema.client if settings.client is None else settings.client
    named = schema.named(client or schema.client, settings.label or schema.label.name, settings.split or schema.split)
    table, where = named.read_file(path)
    if settings.split is not None and settings.split not in table.columns:
        raise DataError(f"{where}: no split column '{settings.split}'; leave split out to divide the rows at random")
    rows = rows_of_site(table, client, settings.name, where, optional=schema.client)
    data = encode_rows(
        named,
        rows,
        where,
        np.full(len(rows), settings.name),
        test=settings.test,
        validation=settings.validation,
        split_seed=settings.split_seed,
    )
    target = schema.label if isinstance(schema.label, Target) else None
    return replace(data, schema=schema, target=target)


def _schema(settings: OwnData, kind: Kind | None) -> Schema:
    if kind is not None and kind.schema is not None:
        return Schema.from_dict(kind.schema, "the agreed schema")
    require(
        settings.schema is not None,
        f"site '{settings.name}': a table needs a schema; name its file (schema=), or agree on one first",
    )
    return Schema.load(cast(Path, settings.schema))


def _from_arrays(settings: OwnData) -> FederatedData:
    path = cast(Path, settings.arrays)
    message = read_message(path)
    if message is None:
        raise DataError(f"{path}: no such file")
    header = message.header
    if header.get("format") != FORMAT or header.get("version") != 1 or not isinstance(header.get("kind"), dict):
        raise DataError(f"{path}: is no file of a client's arrays; write one with save_arrays")
    kind = Kind.from_dict(header["kind"], str(path))
    held = kind.modalities
    try:
        train, validation, test = (_split(message.vectors, name) for name in SPLITS)
        data = FederatedData(
            name=kind.name,
            clients=(settings.name,),
            task=kind.task,
            classes=kind.classes,
            notes=tuple(header.get("notes") or ()),
            provenance={"source": "arrays", "arguments": {"path": str(path)}},
            modalities=None
            if held is None
            else Modalities(tuple(m.name for m in held), tuple(m.shape for m in held)),
            schema=None if kind.schema is None else Schema.from_dict(kind.schema, str(path)),
            own_classes=(tuple(header["own_classes"]),) if header.get("own_classes") else (),
            target=None if header.get("target") is None else Target.model_validate(header["target"]),
            train=train,
            validation=validation,
            test=test,
        )
    except (KeyError, ValueError, IndexError) as error:
        raise DataError(f"{path}: its arrays do not fit together ({str(error)[:100]}); write it again") from None
    kind.check(data)
    return data


def _split(vectors: Vectors, name: str) -> Split:
    stored, y = vectors[f"{name}.x"], vectors[f"{name}.y"]
    if stored.ndim == 0 or y.ndim != 1 or len(stored) != len(y):
        raise ValueError(f"{name}.x {stored.shape}, {name}.y {y.shape}")
    x = aligned_empty(stored.shape, stored.dtype)
    x[...] = stored
    return Split(x, y, np.array([0, len(y)], dtype=np.int64), vectors.get(f"{name}.outputs"))


_LISTS = ("categorical", "ignore", "keep")


def own_summary(settings: OwnData, asked: Mapping[str, Any], rarest: int) -> TableSummary:
    """The summary of a site's table. asked: how the hub reads all tables (client, label, split, categorical, ignore,
    keep, task); the site's own names of columns are replaced by the hub's. rarest: see `Floors.count`.

    Raises `DataError` for a table that cannot be read so, or for requests that are none.
    """
    given, label, names = _read_as(settings, asked)
    summary = summarise(cast(Path, settings.table), site=settings.name, minimum=rarest, **given)
    named = summary.label.model_copy(update={"name": label})
    split = names["split"] if summary.split is not None else None
    return summary.model_copy(update={"client": names["client"], "label": named, "split": split})


def own_description(settings: OwnData, asked: Mapping[str, Any], rarest: int) -> Described:
    """The description of a site's table, see `schema.describe`; arguments and errors as of `own_summary`."""
    given, label, names = _read_as(settings, asked)
    for key in ("keep", "task"):
        given.pop(key)
    made = describe(cast(Path, settings.table), site=settings.name, minimum=rarest, **given)
    # The hub's names of columns replace the site's own.
    columns = tuple(
        column.model_copy(update={"name": label}) if column.name == given["label"] else column
        for column in made.summary.columns
    )
    split = names["split"] if made.summary.split is not None else None
    named = made.summary.label.model_copy(update={"name": label})
    update = {"columns": columns, "client": names["client"], "label": named, "split": split}
    values = {label if name == given["label"] else name: numbers for name, numbers in made.values.items()}
    return Described(made.summary.model_copy(update=update), values)


def _read_as(settings: OwnData, asked: Mapping[str, Any]) -> tuple[dict[str, Any], str, dict[str, str]]:
    """(how the site's table is read, the hub's name of the label, the hub's names of clients and splits)."""
    for key, value in asked.items():
        good = all(isinstance(one, str) for one in cast("list[Any]", value)) if isinstance(value, list) else False
        if not (good if key in _LISTS else value is None or isinstance(value, str)):
            raise DataError(f"the hub asks for a summary with {key} = {value!r}; that is none of a table's settings")
    if settings.table is None:
        raise DataError("the site's data are no table, so no schema can be agreed on")
    client, label = str(asked.get("client") or "client"), str(asked.get("label") or "label")
    split = str(asked.get("split") or "split")
    given = {
        "client": client if settings.client is None else settings.client,
        "label": settings.label or label,
        "split": settings.split or split,
        "categorical": tuple(asked.get("categorical") or ()),
        "ignore": tuple(asked.get("ignore") or ()),
        "keep": tuple(asked.get("keep") or ()),
        "task": asked.get("task"),
        "test": settings.test,
        "validation": settings.validation,
        "split_seed": settings.split_seed,
    }
    return given, label, {"client": client, "split": split}


def own_names(settings: OwnData) -> dict[str, str]:
    """The site's own name of the label, for a summary that its administrator reads before a hub has asked."""
    return {} if settings.label is None else {"label": settings.label}


def described(settings: OwnData, rarest: int) -> str:
    """What a site's data are, for its administrator: rows of each split, and classes. Raises as `own_data`.

    A table without a schema's file is read as for a summary: the schema is to be agreed on.
    """
    if settings.table is not None and settings.schema is None:
        summary = own_summary(settings, own_names(settings), rarest)
        classes = f", classes {', '.join(summary.label.classes)}" if summary.label.classes else ""
        columns = f"{len(summary.columns)} columns in addition to the label '{summary.label.name}'{classes}"
        return f"{summary.rows} training rows, {columns}; the schema is to be agreed on"
    data = own_data(settings)
    counts = [f"{data.split(name).count} {name}" for name in SPLITS]
    classes = f"classes {', '.join(data.classes)}" if data.classes else "a number as label"
    return f"rows: {', '.join(counts)}; {classes}"
