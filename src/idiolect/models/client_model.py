"""A client's model as its user meets it: raw rows in, predictions in the user's words and units out."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Shaped

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.federated import TaskKind
from idiolect.data.schema.label import Classes, Target
from idiolect.data.schema.schema import Schema
from idiolect.models.files import classes_in, read_model, schema_in, target_in

BATCH = 2**15
"""Rows whose outputs are computed at a time."""

Rows = pd.DataFrame | Shaped[np.ndarray, "n ..."]


class ClientModel(eqx.Module):
    """A model that maps one sample to its outputs, and all that is needed to predict raw rows.

    module: maps one encoded sample, `feature_shape` float32, to its outputs. classes: the words of the outputs; where
    the client numbers its own classes, those of this client, and outputs beyond them do not count. schema: encodes
    rows of a table; None for models of arrays. target: how a regression's labels were scaled. about:
    what else its file says (client, method, model, seed).
    """

    module: eqx.Module
    task: TaskKind = eqx.field(static=True)
    feature_shape: tuple[int, ...] = eqx.field(static=True)
    classes: tuple[str, ...] = eqx.field(static=True, default=())
    schema: Schema | None = eqx.field(static=True, default=None)
    target: Target | None = eqx.field(static=True, default=None)
    about: Mapping[str, Any] = eqx.field(static=True, default_factory=dict[str, Any])

    def __call__(self, x: Float[Array | np.ndarray, "..."]) -> Float[Array, "..."]:
        """The outputs of one encoded sample."""
        if not callable(self.module):
            raise ConfigError(f"{type(self.module).__name__} maps no sample to outputs")
        return self.module(jnp.asarray(x))

    def outputs(self, rows: Rows) -> Float[np.ndarray, "n outputs"]:
        """The outputs of raw rows: before a softmax, or scaled targets.

        rows: a table with the columns of the schema, or encoded samples (n, *feature_shape). Raises `DataError` for
        rows that do not fit.
        """
        x = self._encoded(rows)
        parts = [self._part(x[start : start + BATCH]) for start in range(0, len(x), BATCH)]
        outputs = np.concatenate(parts) if parts else np.zeros((0, max(len(self.classes), 1)), np.float32)
        _check_outputs(outputs, len(self.classes))
        return outputs[:, : len(self.classes)] if self.classes else outputs

    def predict(self, rows: Rows) -> Shaped[np.ndarray, "n"]:
        """Every row's class in the table's words, or its target in the table's units, in double precision."""
        return self.decoded(self.outputs(rows))

    def predict_proba(self, rows: Rows) -> Float[np.ndarray, "n classes"]:
        """Every row's probability of each class, softmax of the outputs, in the order of `labels`.

        Raises `ConfigError` for a regression.
        """
        if self.task == "regression":
            raise ConfigError("a regression has no probabilities; use predict")
        return self.probabilities(self.outputs(rows))

    def decoded(self, outputs: Float[np.ndarray, "n outputs"]) -> Shaped[np.ndarray, "n"]:
        """What outputs say: classes in the table's words, or targets in its units."""
        if self.task == "regression":
            scaled = outputs[:, 0]
            return scaled.astype(np.float64) if self.target is None else self.target.decode(scaled)
        return self.labels[outputs.argmax(axis=1)]

    def probabilities(self, outputs: Float[np.ndarray, "n outputs"]) -> Float[np.ndarray, "n classes"]:
        """Softmax of the outputs, in double precision."""
        wide = outputs.astype(np.float64)
        odds = np.exp(wide - wide.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    @property
    def labels(self) -> Shaped[np.ndarray, "classes"]:
        """The classes in the type of the table's labels."""
        label = self.schema.label if self.schema is not None else None
        if isinstance(label, Classes) and label.classes == self.classes:
            return label.values
        return np.array(self.classes, dtype=object)

    def _encoded(self, rows: Rows) -> Float[np.ndarray, "n ..."]:
        if isinstance(rows, pd.DataFrame):
            if self.schema is None:
                raise DataError(
                    "this model was trained on arrays and has no schema of a table; give an array of shape "
                    f"(rows, {', '.join(map(str, self.feature_shape))})"
                )
            return self.schema.encode(rows)
        x = np.asarray(rows)
        if x.shape[1:] != self.feature_shape or x.dtype.kind not in "fiub":
            given = f"numbers of shape {x.shape}" if x.dtype.kind in "fiub" else f"{x.dtype}, not numbers"
            raise DataError(
                f"these rows are {given}; give shape (rows, {', '.join(map(str, self.feature_shape))})"
                + ("" if self.schema is None else ", encoded, or a DataFrame with the table's columns")
            )
        return x.astype(np.float32)

    def _part(self, x: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n outputs"]:
        """Outputs of one batch, padded to few different lengths, so that little is compiled."""
        length = BATCH if len(x) > BATCH // 8 else max(1 << (len(x) - 1).bit_length(), 8)
        padded = np.concatenate([x, np.zeros((length - len(x), *x.shape[1:]), x.dtype)]) if len(x) < length else x
        outputs = np.asarray(_apply(self.module, jnp.asarray(padded)))[: len(x)]
        return outputs.reshape(len(x), -1)


def _check_outputs(outputs: Float[np.ndarray, "n outputs"], classes: int) -> None:
    """Raise `DataError` for outputs that say nothing: too few, not a number, or infinite (-inf rules a class out)."""
    if outputs.shape[1] < classes:
        raise DataError(f"the model has {outputs.shape[1]} outputs, but {classes} classes were given for it")
    wrong = np.isnan(outputs) | (np.isinf(outputs) if classes == 0 else outputs == np.inf)
    if wrong.any():
        rows = np.flatnonzero(wrong.any(axis=1))
        raise DataError(
            f"the model's output for row {rows[0] + 1} is NaN or infinite ({len(rows)} such rows in all); the values "
            "of this row or the model's weights are too large"
        )


@eqx.filter_jit
def _apply(module: Any, x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    return jax.vmap(module)(x)


def load_model(path: str | PathLike[str], like: eqx.Module | None = None) -> ClientModel:
    """Read a model file, which is self-contained: it predicts raw rows.

    Args:
        like: A module of the same structure (values do not matter); needed for a user's own module only.

    Raises:
        StoreError: If the file is missing, truncated, damaged, no model file, or does not fit `like`.
    """
    module, header = read_model(path, like)
    known, target = schema_in(header, path), target_in(header, path)
    inside = ("format", "version", "spec", "modalities", "absent", "num_outputs", "schema", "target")
    stated = ("feature_shape", "classes", "task")
    about = {key: value for key, value in header.items() if key not in (*inside, *stated)}
    return ClientModel(
        module, header["task"], tuple(header["feature_shape"]), classes_in(header, known), known, target, about
    )
