"""What a model file says about itself, checked before anything is built from it."""

from collections.abc import Mapping
from math import prod
from typing import Annotated, Any

from annotated_types import Gt, Le
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from idiolect.core.errors import StoreError, first_of
from idiolect.core.reading import json_of
from idiolect.core.settings import MOST
from idiolect.data.federated import TaskKind
from idiolect.data.schema.columns import some
from idiolect.data.schema.label import Classes, Target
from idiolect.data.schema.schema import Schema

_Size = Annotated[int, Gt(0), Le(MOST)]
_Name = str | int


class _Header(BaseModel):
    """The entries that every file has, and those that idiolect's own files have; a user's own may be anything."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)
    spec: dict[str, Any] | None
    feature_shape: list[_Size]
    num_outputs: _Size
    task: TaskKind
    modalities: Annotated[list[list[Any]], Field(min_length=2, max_length=2)] | None = None
    absent: list[str] = Field(default_factory=list[str])
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    target: dict[str, Any] | None = None
    classes: list[_Name] | None = None
    client: _Name | None = None
    clients: list[_Name] | None = None


class _Layout(BaseModel):
    """The modalities' names and shapes."""

    model_config = ConfigDict(strict=True)
    names: list[str]
    shapes: list[list[_Size]]


def header_of(metadata: Mapping[str, str], path: object) -> dict[str, Any]:
    """Parse the metadata of a model file, each value a text of JSON.

    Raises `StoreError` for a value that is not JSON, a needed entry that is absent or of another kind, and more
    classes than outputs.
    """
    header: dict[str, Any] = {}
    for key, text in metadata.items():
        try:
            header[key] = json_of(text)
        except ValueError as error:
            raise StoreError(f"{path} is damaged: its metadata '{key}' is not JSON ({error})") from None
    try:
        checked = _Header.model_validate(header)
        if checked.modalities is not None:
            _Layout.model_validate(dict(zip(("names", "shapes"), checked.modalities, strict=True)))
    except ValidationError as error:
        raise StoreError(f"{path} does not say what the model is: its metadata {first_of(error)}") from None
    names = [str(name) for name in checked.classes or ()]
    most = checked.num_outputs if checked.task == "classification" else 0
    if len({*names}) < len(names) or len(names) > most:
        raise StoreError(
            f"{path} contradicts itself: it names {len(names)} classes; they must differ, and as a {checked.task} "
            f"with {checked.num_outputs} outputs it can have {most}"
        )
    return {"modalities": None, "absent": [], **header}


def classes_in(header: Mapping[str, Any], schema: Schema | None) -> tuple[str, ...]:
    """The names of the outputs that count: those that the header names, else the schema's, else numbers from 0."""
    if header["task"] == "regression":
        return ()
    if header.get("classes"):
        return tuple(map(str, header["classes"]))
    if schema is not None and isinstance(schema.label, Classes):
        return schema.label.classes
    return tuple(map(str, range(header["num_outputs"])))


def schema_in(header: Mapping[str, Any], path: object) -> Schema | None:
    """The schema in a header, None if there is none. Raises `StoreError` if it is wrong or does not fit the model."""
    if header.get("schema") is None:
        return None
    schema = Schema.from_dict(header["schema"], str(path))
    width, shape = len(schema.features), header["feature_shape"]
    if len(shape) != 1 or width != prod(shape):
        taken = " x ".join(map(str, shape))
        raise StoreError(f"{path} contradicts itself: its schema has {width} features, its model takes {taken}")
    label = schema.label
    if isinstance(label, Classes) != (header["task"] == "classification"):
        raise StoreError(f"{path} contradicts itself: it is a {header['task']}, its schema's label is not")
    if isinstance(label, Classes):
        strange = {str(name) for name in header.get("classes") or ()} - {*label.classes}
        if len(label.classes) != header["num_outputs"] or strange:
            raise StoreError(
                f"{path} contradicts itself: its schema's label has the classes {some(label.classes)}, its model "
                f"{header['num_outputs']} outputs and the classes {some(header.get('classes') or ())}"
            )
    return schema


def target_in(header: Mapping[str, Any], path: object) -> Target | None:
    """How a regression's labels were scaled; None if the header does not say. Raises `StoreError` if it is wrong."""
    if header.get("target") is None:
        return None
    try:
        return Target.model_validate(header["target"])
    except ValidationError as error:
        raise StoreError(f"{path} does not say how labels were scaled: target {first_of(error)}") from None
