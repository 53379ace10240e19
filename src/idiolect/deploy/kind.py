"""What a hub and its sites agree the data are: shapes, classes, schema; no row of anybody.

This module needs no JAX, so that the process which talks to the network can compare digests.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from idiolect.core.errors import DataError, first_of
from idiolect.deploy.messages import digest_of_values

if TYPE_CHECKING:
    from idiolect.data.federated import FederatedData
    from idiolect.data.schema.schema import Schema

_FIELDS = {
    "task": "task",
    "classes": "classes",
    "feature_shape": "shape of a sample",
    "modalities": "modalities",
    "schema": "schema",
    "target": "mean and scale of the labels",
}


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Modality:
    """The name of a modality, and the shape of it in one sample."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Kind:
    """What all clients' data have in common.

    name: the data's. classes: of a classification, else empty. feature_shape: of one sample. schema: a table's, as
    plain values. target: (mean, scale) of a regression's labels; None if they are in their own units.
    """

    name: str
    task: Literal["classification", "regression"]
    classes: tuple[str, ...]
    feature_shape: tuple[int, ...]
    modalities: tuple[Modality, ...] | None = None
    schema: dict[str, Any] | None = None
    target: tuple[float, float] | None = None

    @classmethod
    def of(cls, data: "FederatedData") -> "Kind":
        """The kind of some data."""
        held = data.modalities
        pairs = None if held is None else zip(held.names, held.shapes, strict=True)
        return cls(
            name=data.name,
            task=data.task,
            classes=data.classes,
            feature_shape=data.feature_shape,
            modalities=None if pairs is None else tuple(Modality(name, tuple(shape)) for name, shape in pairs),
            schema=None if data.schema is None else data.schema.to_dict(),
            target=None if data.target is None else (data.target.mean, data.target.scale),
        )

    @classmethod
    def of_schema(cls, schema: "Schema", name: str = "table") -> "Kind":
        """The kind of data that a schema encodes."""
        label = schema.label
        is_class = label.kind == "classes"
        return cls(
            name=name,
            task="classification" if is_class else "regression",
            classes=label.classes if label.kind == "classes" else (),
            feature_shape=(len(schema.features),),
            schema=schema.to_dict(),
            target=(label.mean, label.scale) if label.kind == "target" else None,
        )

    @property
    def digest(self) -> str:
        """A sha256 of all of it: equal exactly when two kinds are."""
        return digest_of_values(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The kind as plain values."""
        return _ADAPTER.dump_python(self, mode="json")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the kind of the data") -> "Kind":
        """The kind of plain values. Raises `DataError`, one line, if they are none."""
        try:
            return _ADAPTER.validate_json(json.dumps(values))
        except ValidationError as error:
            raise DataError(f"{where} is of no kind that this version knows: {first_of(error)}") from None
        except (TypeError, ValueError) as error:
            raise DataError(f"{where} is of no kind: {error}") from None

    def check(self, data: "FederatedData") -> None:
        """Raise `DataError` that names what differs if the data are of another kind; their name may differ."""
        own, wanted = Kind.of(data).to_dict(), self.to_dict()
        for field, meaning in _FIELDS.items():
            if own[field] != wanted[field]:
                detail = _difference(own[field], wanted[field])
                raise DataError(
                    f"{data.name}: the {meaning} differs from the federation's: {detail}; encode these data by the "
                    "federation's schema, or as its other sites do"
                )


_ADAPTER = TypeAdapter(Kind)


def _difference(own: Any, wanted: Any) -> str:
    """The first place where two plain values differ, in a few words."""
    if isinstance(own, dict) and isinstance(wanted, dict):
        for key in [*own, *(key for key in wanted if key not in own)]:
            if own.get(key) != wanted.get(key):
                return f"{key}: {_difference(own.get(key), wanted.get(key))}"
    if isinstance(own, list) and isinstance(wanted, list) and len(own) == len(wanted):
        for place, (mine, theirs) in enumerate(zip(own, wanted, strict=True)):
            if mine != theirs:
                named = isinstance(mine, dict) and "name" in mine
                return f"{mine['name'] if named else place}: {_difference(mine, theirs)}"
    return f"{_short(own)} here, {_short(wanted)} there"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
