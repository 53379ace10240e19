"""A combination: each client predicts by a weighted mean of several methods' models, or by one of them.

`blend`: the weights of the policy of the same name in an advice. `portfolio`: 1 for one method, 0 for the others.
Both follow validation rows only. A combination is one JSON file next to the models that it uses.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import pandas as pd
from annotated_types import Ge, Le
from jaxtyping import Float, Shaped
from pydantic import BaseModel, ConfigDict, ValidationError

from idiolect.core.errors import ConfigError, DataError, StoreError, first_of
from idiolect.core.files import json_of, write_text
from idiolect.data.schema.columns import some
from idiolect.models.client_model import ClientModel
from idiolect.study.combine.sources import Source, source_in

FILE, FORMAT, VERSION = "combined.json", "idiolect-combined", 1
Kind = Literal["blend", "portfolio"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_Share = Annotated[float, Ge(0), Le(1)]
_CLOSE = 1e-6  # weights are written in full, so they sum to 1 up to rounding


class _Used(BaseModel):
    """A method in the file: the folder of its run's models, relative to the file, and the named model."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    folder: str
    model: str


class Content(BaseModel):
    """What the file says. rows: validation rows that the weights follow; others: the weights of new clients."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal["idiolect-combined"] = FORMAT
    version: int = VERSION
    kind: Kind
    rows: int
    methods: dict[str, _Used]
    weights: dict[str, dict[str, _Share]]
    others: dict[str, _Share]


@dataclass(frozen=True)
class Combined:
    """Several methods' models with each client's weights of them. path: of its file."""

    path: Path
    content: Content

    def __repr__(self) -> str:
        """One line: kind, methods and clients."""
        methods = ", ".join(self.content.methods)
        return f"<Combined: {self.content.kind} of {methods} for {len(self.content.weights)} clients; see weights>"

    @property
    def weights(self) -> pd.DataFrame:
        """Each client's weights of the methods, which sum to 1: one row per client, one column per method."""
        return pd.DataFrame.from_dict(self.content.weights, orient="index", columns=list(self.content.methods))

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Each method's models. Raises `StoreError` if files are missing."""
        return {
            name: source_in(self.path.parent / used.folder, used.model) for name, used in self.content.methods.items()
        }

    @cached_property
    def first(self) -> ClientModel:
        """One of the models: all have the same schema and classes."""
        return next(iter(self.sources.values())).first

    def shares(self, client: str) -> Mapping[str, float]:
        """The weights of a client: its own, or for a new one those of the federation over shared models.

        Raises `DataError` for a new client where no method of the federation's weights has a shared model.
        """
        own = self.content.weights.get(client)
        if own is not None:
            return own
        open_to_all = {
            name: self.content.others[name] for name, one in self.sources.items() if one.shared is not None
        }
        total = sum(open_to_all.values())
        if total <= 0:
            raise DataError(
                f"no model of client {client!r}: no method of this combination has a model for new clients; "
                "'idiolect personalize' makes one"
            )
        return {name: weight / total for name, weight in open_to_all.items()}

    def outputs(
        self, x: Float[np.ndarray, "n ..."], owners: Shaped[np.ndarray, "n"]
    ) -> Float[np.ndarray, "n outputs"]:
        """sum_m w[i, m] p_m(x) for the rows of client i: logarithms of probabilities, or scaled numbers.

        x: encoded rows; owners: their clients.
        """
        code, names = pd.factorize(np.asarray(owners, dtype=object))
        table = np.zeros((len(names), len(self.sources)))
        for place, name in enumerate(names):
            shares = self.shares(str(name))
            table[place] = [shares.get(method, 0.0) for method in self.sources]
        classes = self.first.task == "classification"
        total = np.zeros((len(x), max(len(self.first.classes), 1)))
        for column, source in enumerate(self.sources.values()):
            weight = table[code, column]
            rows = np.flatnonzero(weight > 0)
            if len(rows):
                total[rows] += weight[rows, None] * source.predicted(x, owners, rows.tolist())
        return np.log(np.maximum(total, np.finfo(np.float64).tiny)) if classes else total


def write_combined(path: Path, content: Content) -> Combined:
    """Write a combination's file, whole or not at all. Raises `StoreError` if it cannot be written."""
    write_text(path, json.dumps(content.model_dump(mode="json"), indent=1, ensure_ascii=False), shared=True)
    return Combined(path, content)


def is_combined(path: Path) -> bool:
    """Whether a path is a combination's file, or its folder."""
    try:
        return path.name == FILE or (path / FILE).is_file()
    except (OSError, ValueError):
        return False


def read_combined(path: str | os.PathLike[str]) -> Combined:
    """Read a combination from its file or its folder.

    Raises `StoreError` if it is missing, damaged or of another version.
    """
    file = Path(path) / FILE if Path(path).is_dir() else Path(path)
    try:
        plain = json_of(file.read_bytes())
        version = plain.get("version") if isinstance(plain, dict) else None
        if isinstance(version, int) and version != VERSION:
            raise StoreError(f"{file} has format {version}, this version of idiolect reads {VERSION}")
        content = Content.model_validate(plain)
    except ValidationError as error:
        raise StoreError(f"{file} is damaged ({first_of(error)}); make it anew with: idiolect combine") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise StoreError(f"{file} cannot be read ({why}); make it anew with: idiolect combine") from None
    for client, shares in {**content.weights, "others": content.others}.items():
        if abs(sum(shares.values()) - 1) > _CLOSE or {*shares} != {*content.methods}:
            raise StoreError(f"{file} is damaged: the weights of {client!r} are not those of its methods")
    if not content.weights:
        raise StoreError(f"{file} is damaged: it has no client")
    outside = [used.folder for used in content.methods.values() if Path(used.folder).is_absolute()]
    if outside:
        raise StoreError(f"{file} is damaged: the folder {some(outside)} is not relative")
    return Combined(file, content)


def check_kind(kind: str) -> Kind:
    """The kind. Raises `ConfigError` for another word."""
    if kind not in KINDS:
        raise ConfigError(f"kind = '{kind}' must be one of {', '.join(KINDS)}")
    return kind
