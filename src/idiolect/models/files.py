"""Models as safetensors files: named tensors that other tools read, and metadata that say what the model is.

The format is that of huggingface.co/docs/safetensors. A tensor is named by its place in the module
("layers.0.weight"); each value of the metadata is a text of JSON. A hash of metadata and tensors is among them, so
that a damaged or foreign file is recognised.

What a file says about itself is checked before anything is built from it (`header_of`).
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Gt, Le
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from idiolect.core.errors import ConfigError, IdiolectError, StoreError, first_of, reason_of
from idiolect.core.files import atomic_write, json_of, path_of
from idiolect.core.settings import MOST
from idiolect.data.federated import TaskKind
from idiolect.data.modalities import Modalities
from idiolect.data.schema.columns import some
from idiolect.data.schema.label import Classes, Target
from idiolect.data.schema.schema import Schema
from idiolect.models.forest import forest_in
from idiolect.models.registry import build, complete_spec
from idiolect.models.spec import Spec

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


FORMAT = "idiolect-model"
VERSION = 1
SUFFIX = ".safetensors"
_PathLike = str | os.PathLike[str]
_Tensors = dict[str, np.ndarray]


def save_model(
    path: _PathLike,
    model: eqx.Module,
    *,
    spec: Spec | str | None = None,
    feature_shape: Sequence[int],
    num_outputs: int,
    task: TaskKind,
    modalities: Modalities | None = None,
    schema: Schema | None = None,
    target: Target | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to one safetensors file, completely or not at all.

    A model that holds a part of the arrays, as the model of one modality does, is written and loaded as that part.

    Args:
        spec: How the zoo builds it, or None for a user's own module, which is then loaded with `like`.
        modalities: How the features are made of several modalities, if they are.
        schema: What the features mean, so that the file by itself predicts raw rows.
        target: How a regression's labels were scaled.
        extra: More metadata, anything JSON can hold (class names, client, method).

    Raises:
        ConfigError: If the model is not what `spec` builds, if safetensors cannot hold its arrays or JSON cannot hold
            `extra`.
        StoreError: If the file cannot be written.
    """
    complete = None if spec is None else complete_spec(spec)
    absent: list[str] = []
    if complete is not None:
        skeleton = _skeleton(complete, tuple(feature_shape), num_outputs, task, modalities)
        absent = sorted(set(_leaves(skeleton)) - set(_leaves(model)))
        if _layout(_without(skeleton, absent)) != _layout(model):
            raise ConfigError(
                f"this {type(model).__name__} is not what model {complete['name']} builds for features "
                f"{tuple(feature_shape)} and {num_outputs} outputs: other arrays, shapes or types"
            )
    header = {
        "format": FORMAT,
        "version": VERSION,
        "spec": complete,
        "feature_shape": [int(size) for size in feature_shape],
        "num_outputs": int(num_outputs),
        "task": task,
        "modalities": None if modalities is None else [list(modalities.names), list(modalities.shapes)],
        "absent": absent,
        "schema": None if schema is None else schema.to_dict(),
        "target": None if target is None else target.model_dump(mode="json"),
    }
    for key in (*header, "sha256"):
        if key in (extra or {}):
            raise ConfigError(f"'{key}' has its own meaning in a model file; give the extra metadata another name")
    try:
        metadata = {key: json.dumps(value) for key, value in {**header, **(extra or {})}.items()}
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the metadata of {path} cannot be written as JSON: {error}") from error
    tensors = tensors_of(model)
    metadata["sha256"] = json.dumps(_digest(metadata, tensors))
    try:
        content = _in_order(save(tensors, metadata))
    except SafetensorError as error:
        raise ConfigError(f"a model file cannot hold this {type(model).__name__}: {error}") from error
    with atomic_write(path) as file:
        file.write(content)


def read_model(path: _PathLike, like: eqx.Module | None = None) -> tuple[eqx.Module, dict[str, Any]]:
    """Read (module, header) of a model that `save_model` wrote; header: see `read_header`.

    like: a module of the same structure (values do not matter); needed for a user's own module only. Boosted trees
    are recognised by their arrays. Raises `StoreError` if the file is missing, truncated, damaged, no model file, or
    does not fit `like`.
    """
    return _module_of(*_read(path), path, like)


def model_in(content: bytes, where: object) -> tuple[eqx.Module, dict[str, Any]]:
    """As `read_model`, of a file's bytes. where: what the errors call it."""
    return _module_of(*_read_bytes(content, where), where, None)


def _module_of(
    header: dict[str, Any], tensors: _Tensors, path: object, like: eqx.Module | None
) -> tuple[eqx.Module, dict[str, Any]]:
    if like is None and header["spec"] is None:
        like = forest_in(tensors, header["task"], header["num_outputs"])
    if like is None:
        if header["spec"] is None:
            raise StoreError(
                f"{path} holds a user's own module; pass like=, a module of the same structure, to load it"
            )
        try:
            shape, modalities = tuple(header["feature_shape"]), header["modalities"]
            if modalities is not None:
                names, shapes = modalities
                modalities = Modalities(tuple(names), tuple(map(tuple, shapes)))
            like = _skeleton(header["spec"], shape, header["num_outputs"], header["task"], modalities)
            like = _without(like, header["absent"])
        except IdiolectError as error:
            raise StoreError(f"{path} describes a model this version cannot build: {error}") from error
    wanted = {name: leaf for name, leaf in _leaves(like).items() if _is_stored(leaf)}
    for name, leaf in wanted.items():
        if name not in tensors:
            raise StoreError(f"{path} does not fit the structure of {type(like).__name__}: it has no '{name}'")
        expected, got = _kind(leaf), _kind(tensors[name])
        if expected != got:
            difference = f"'{name}' is {got[1]} {got[0]}, not {expected[1]} {expected[0]}"
            raise StoreError(f"{path} does not fit the structure of {type(like).__name__}: {difference}")
    surplus = sorted(set(tensors) - set(wanted))
    if surplus:
        raise StoreError(f"{path} holds more arrays than {type(like).__name__} has: '{surplus[0]}'")
    _check_finite(tensors, path, own=header["spec"] is None)
    module = jax.tree_util.tree_map_with_path(
        lambda place, leaf: _restored(tensors[_name(place)], leaf) if _is_stored(leaf) else leaf, like
    )
    return module, header


def read_header(path: _PathLike) -> dict[str, Any]:
    """Read a model file's header: spec, feature_shape, num_outputs, task, modalities, and `extra`'s keys.

    Raises:
        StoreError: As `read_model` does.
    """
    return _read(path)[0]


def _read(path: _PathLike) -> tuple[dict[str, Any], _Tensors]:
    """The metadata and the verified tensors of a model file."""
    start, path = b"", path_of(path, "a model is the path of its file")
    try:
        with path.open("rb") as file:
            start = file.read(9)
        with safe_open(path, framework="np") as opened:
            metadata = dict(opened.metadata() or {})
            tensors: _Tensors = {name: np.array(opened.get_tensor(name)) for name in opened.keys()}  # noqa: SIM118
    except OSError as error:
        raise StoreError(f"cannot read {path}: {reason_of(error)}") from error
    except SafetensorError as error:
        if start[8:] != b"{":  # eight bytes of length, then JSON
            raise StoreError(f"{path} is not an idiolect model file") from error
        raise StoreError(f"{path} is truncated or damaged: {error}") from error
    return _verified(metadata, tensors, path), tensors


def _read_bytes(content: bytes, where: object) -> tuple[dict[str, Any], _Tensors]:
    """The metadata and the verified tensors of a model file's bytes."""
    if content[8:9] != b"{":  # eight bytes of length, then JSON
        raise StoreError(f"{where} is not an idiolect model file")
    try:
        tensors = {name: np.array(values) for name, values in load(content).items()}
        written = json_of(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__")
        metadata = {str(key): str(text) for key, text in (written or {}).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{where} is truncated or damaged: {error}") from error
    return _verified(metadata, tensors, where), tensors


def _verified(metadata: dict[str, str], tensors: _Tensors, path: object) -> dict[str, Any]:
    """The header of a file, after its format and its hash have been compared."""
    if metadata.get("format") != json.dumps(FORMAT):
        raise StoreError(f"{path} is not an idiolect model file")
    if metadata.get("version") != json.dumps(VERSION):
        raise StoreError(f"{path} has format version {metadata.get('version')}; this version reads {VERSION}")
    digest = metadata.pop("sha256", None)
    if json.dumps(_digest(metadata, tensors)) != digest:
        raise StoreError(f"{path} is damaged: its content does not match its hash")
    return header_of(metadata, path)


def _check_finite(tensors: _Tensors, path: object, *, own: bool) -> None:
    """Raise `StoreError` for a weight that is no number, or, but in a user's own module, infinite."""
    for name, values in tensors.items():
        if jnp.issubdtype(values.dtype, jnp.inexact):
            wrong = int((np.isnan(values) if own else ~np.isfinite(values)).sum())
            if wrong:
                raise StoreError(
                    f"{path} cannot predict: {wrong} of {values.size} numbers in '{name}' are NaN or infinite; the "
                    "training diverged or the file was changed"
                )


def _in_order(content: bytes) -> bytes:
    """The same file with the keys of its header sorted: safetensors writes metadata in an order of chance."""
    length = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)  # tensors stay aligned
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def _digest(metadata: Mapping[str, str], tensors: _Tensors) -> str:
    """A hash of everything in a file but the hash itself."""
    total = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, values in sorted(tensors.items()):
        total.update(json.dumps([name, str(values.dtype), values.shape]).encode())
        total.update(values.tobytes())
    return total.hexdigest()


def tensors_of(model: eqx.Module) -> _Tensors:
    """The model's arrays and numbers by name, in C order."""
    stored = {name: leaf for name, leaf in _leaves(model).items() if _is_stored(leaf)}
    try:
        return {name: np.array(leaf, order="C") for name, leaf in jax.device_get(stored).items()}
    except TypeError as error:  # a random key
        raise ConfigError(f"a model file cannot hold this {type(model).__name__}: {error}") from error


def _is_stored(leaf: Any) -> bool:
    """Whether a leaf is data; functions and the like are part of the structure."""
    return eqx.is_array_like(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _restored(values: np.ndarray, leaf: Any) -> Any:
    """A tensor as the kind of leaf that it was: an array of JAX or numpy, or a number."""
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
        return jnp.array(values)
    return values if isinstance(leaf, np.ndarray | np.generic) else type(leaf)(values.item())


def _kind(leaf: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type."""
    array = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    return tuple(array.shape), str(array.dtype)


def _skeleton(
    spec: Spec, feature_shape: tuple[int, ...], num_outputs: int, task: TaskKind, modalities: Modalities | None
) -> eqx.Module:
    """The zoo's model with shapes in place of arrays; nothing is computed."""
    return eqx.filter_eval_shape(lambda: build(spec, feature_shape, num_outputs, task, jax.random.key(0), modalities))


def _name(place: Any) -> str:
    """A leaf's name: its place in the module."""
    return jax.tree_util.keystr(place, simple=True, separator=".")


def _leaves(model: eqx.Module) -> dict[str, Any]:
    """The model's leaves by name."""
    named = [(_name(place), leaf) for place, leaf in jax.tree_util.tree_leaves_with_path(model)]
    leaves = dict(named)
    if len(leaves) < len(named):
        raise ConfigError(
            f"two leaves of this {type(model).__name__} have one name; leave '.' out of dictionary keys"
        )
    return leaves


def _without(model: eqx.Module, absent: Collection[str]) -> eqx.Module:
    """The model with None in these places."""
    return jax.tree_util.tree_map_with_path(lambda place, leaf: None if _name(place) in absent else leaf, model)


def _layout(model: eqx.Module) -> tuple[Any, list[Any]]:
    """Structure, shapes and types: equal exactly when one model's file loads into the other."""
    leaves, structure = jax.tree.flatten(model)
    return structure, [_kind(leaf) if _is_stored(leaf) else str(type(leaf)) for leaf in leaves]
