"""Fit a table's schema on its training rows."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from idiolect.data.files.table import column_of
from idiolect.data.schema.columns import Column, Filled
from idiolect.data.schema.fit import fit_column
from idiolect.data.schema.label import Label
from idiolect.data.schema.schema import Schema, check_features


def fit_schema(
    table: pd.DataFrame,
    train: Bool[np.ndarray, "n"],
    *,
    client: str,
    label: Label,
    split: str | None,
    features: Sequence[str],
    categorical: Sequence[str] = (),
    keep: Sequence[str] = (),
    standardise: bool = True,
    missing: Filled = "median",
    comma_likely: bool = False,
) -> tuple[Schema, tuple[str, ...]]:
    """(the schema, notes for the reader) of a table's columns `features`; other arguments: see `fit_column`.

    Raises `DataError` if no column tells anything.
    """
    columns: list[Column] = []
    notes: list[str] = []
    for name in features:
        fitted, told = fit_column(
            column_of(table, name),
            train,
            categorical=name in categorical,
            keep=name in keep,
            standardise=standardise,
            missing=missing,
            comma_likely=comma_likely,
        )
        columns.append(fitted)
        notes += told
    schema = Schema(client=client, split=split, label=label, columns=tuple(columns))
    check_features(schema, notes)
    return schema, tuple(notes)
