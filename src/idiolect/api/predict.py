"""Predict the rows of a table by one model file, or each row by its client's model."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int, Shaped

from idiolect.core.errors import DataError, StoreError
from idiolect.core.files import path_of
from idiolect.data.federated import TaskKind
from idiolect.data.files.table import column_of
from idiolect.data.schema.columns import some
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.metrics.base import measure_rows
from idiolect.metrics.registry import measured
from idiolect.models.client_model import ClientModel, load_model
from idiolect.models.files import SUFFIX
from idiolect.study.combine.combined import Combined, is_combined, read_combined

ROW, CLIENT, PREDICTION = "row", "client", "prediction"


@dataclass(frozen=True)
class Predictions:
    """What models say of a table's rows.

    frame: row (from 1), client where the table has one, prediction, and each class's probability. notes: what a
    reader should know of the rows. scores: metrics over all rows, if the table has their labels.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]
    scores: Mapping[str, float]


def predict(
    model: str | PathLike[str] | ClientModel | Combined,
    table: str | PathLike[str] | pd.DataFrame,
    *,
    with_input: bool = False,
) -> Predictions:
    """Predict every row of a table.

    model: a model, its file, or a folder with a file for each client, by which each row is predicted by the model of
    its client; or a combination, its file or its folder. table: raw rows, encoded by the schema in the model's file.
    with_input: the frame has the table's columns, too. Raises `DataError` for rows that do not fit and for a client
    without a model, `StoreError` for files that are no models.
    """
    combined: Combined | None = None
    if isinstance(model, ClientModel):
        models, everybody = {}, model
    elif isinstance(model, Combined) or is_combined(Path(str(model))):
        combined = (
            model
            if isinstance(model, Combined)
            else read_combined(path_of(model, "a combination is its file or folder"))
        )
        models, everybody = {}, combined.first
    elif (path := path_of(model, "a model is a ClientModel, or the path of its file or folder")).is_dir():
        models, everybody = models_in(path), None
    else:
        models, everybody = {}, load_model(path)
    first = everybody if everybody is not None else next(iter(models.values()))
    if first.schema is None:
        raise StoreError(
            f"{model} was trained on arrays, not on a table: it has no schema. In Python, "
            "idiolect.load_model(file).predict(array) predicts encoded samples"
        )
    schema = first.schema
    rows, where = schema.read_file(table)
    owners = schema.clients(rows)
    if everybody is not None:
        of_model: list[tuple[ClientModel, Int[np.ndarray, "m"]]] = [(everybody, np.arange(len(rows)))]
    else:
        of_model = _by_client(models, owners, where, schema.client)
    if combined is not None and owners is None:
        raise DataError(f"{where}: no client column '{schema.client}', and the weights of a row are its client's")
    outputs = np.zeros((len(rows), max(len(one.classes) for one, _ in of_model) or 1), np.float32)
    outputs.fill(-np.inf if first.task == "classification" else 0)
    encoding = schema.read(rows, where)
    said: Shaped[np.ndarray, "n"] = np.empty(len(rows), dtype=object if first.task == "classification" else float)
    columns: dict[str, Shaped[np.ndarray, "n"]] = {}
    for one, places in of_model:
        x = encoding.x if len(places) == len(rows) else encoding.x[places]
        found = (
            one.outputs(x) if combined is None or owners is None else combined.outputs(x, np.asarray(owners, object))
        )
        outputs[places[:, None], np.arange(found.shape[1])] = found
        said[places] = one.decoded(found)
        if first.task == "classification":
            for name, share in zip(one.classes, one.probabilities(found).T, strict=True):
                columns.setdefault(f"P({name})", np.zeros(len(rows)))[places] = share
    frame = pd.DataFrame({ROW: np.arange(1, len(rows) + 1)})
    if owners is not None:
        frame[CLIENT] = owners
    frame[PREDICTION] = said if first.task == "regression" else pd.Series(said).infer_objects()
    frame = frame.assign(**columns)
    if with_input:
        frame = pd.concat([frame, rows[[name for name in rows.columns if name not in frame.columns]]], axis=1)
    return Predictions(frame, encoding.notes, _scores(schema, first.task, rows, outputs, where, len(models)))


def models_in(folder: Path) -> dict[str, ClientModel]:
    """The models of a folder by client. Raises `StoreError` if it holds none, naming the folders below that do."""
    models: dict[str, ClientModel] = {}
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        model = load_model(file)
        owners = [model.about["client"]] if "client" in model.about else model.about.get("clients", [])
        models |= dict.fromkeys(map(str, owners), model)
    if not models:
        below = sorted({str(file.parent) for file in folder.rglob(f"*{SUFFIX}")} - {str(folder)})
        whole = sorted(str(file) for file in folder.glob(f"*{SUFFIX}"))
        hint = f"name one of {some(below + whole, 8)}" if below or whole else "it holds no model file"
        raise StoreError(f"{folder} is no folder of clients' models: {hint}")
    return models


def _by_client(
    models: Mapping[str, ClientModel], owners: Shaped[np.ndarray, "n"] | None, where: str, column: str
) -> list[tuple[ClientModel, Int[np.ndarray, "m"]]]:
    """Each model with the rows that it predicts."""
    if owners is None:
        raise DataError(f"{where}: no client column '{column}', so the client of a row, and its model, are unknown")
    code, names = pd.factorize(owners, use_na_sentinel=False)
    unknown = sorted({str(name) for name in names if name not in models})
    if unknown:
        raise DataError(
            f"{where}: no model of client {some([repr(name) for name in unknown])}; 'idiolect personalize' makes "
            "one, or predict by the file of a shared model"
        )
    files = {id(models[name]): models[name] for name in names}
    owner_file = np.array([id(models[name]) for name in names], dtype=np.int64)[code]
    return [(model, np.flatnonzero(owner_file == key)) for key, model in files.items() if (owner_file == key).any()]


def _scores(
    schema: Schema, task: TaskKind, rows: pd.DataFrame, outputs: Shaped[np.ndarray, "n k"], where: str, models: int
) -> dict[str, float]:
    """The metrics that every evaluation measures, where the table has labels that are all known."""
    if schema.label.name not in rows.columns or bool(column_of(rows, schema.label.name).isna().to_numpy().any()):
        return {}
    try:
        labels = schema.encode_labels(rows, where)
    except DataError:
        return {}
    classes = len(schema.label.classes) if not isinstance(schema.label, Target) else 1
    if models and outputs.shape[1] != classes:  # each client numbers its own classes
        return {}
    scale = schema.label.scale if isinstance(schema.label, Target) else 1.0
    return measure_rows(measured(task), outputs, labels, scale)
