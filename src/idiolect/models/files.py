"""Models as files: one line of JSON that says what the model is, then its arrays.

Equinox's recommended pattern (docs.kidger.site/equinox/examples/serialisation), with a length and a hash in
the header, so that a truncated, damaged or foreign file is recognised before any array is read from it.
"""

import hashlib
import io
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from idiolect.core.errors import ConfigError, IdiolectError, StoreError
from idiolect.core.files import atomic_write
from idiolect.data.federated import TaskKind
from idiolect.data.modalities import Modalities
from idiolect.models.registry import build, resolve
from idiolect.models.spec import Spec

FORMAT = "idiolect-model"
VERSION = 1
_LONGEST_HEADER = 1 << 24
_PathLike = str | os.PathLike[str]


def save_model(
    path: _PathLike,
    model: eqx.Module,
    *,
    spec: Spec | str | None = None,
    feature_shape: Sequence[int],
    num_outputs: int,
    task: TaskKind,
    modalities: Modalities | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to one file, completely or not at all.

    spec: how the zoo builds it, or None for a user's own module, which is then loaded with `like`.
    modalities: how the features are made of several, if they are. A model that holds a part of the arrays, as the
    model of one modality does, is written and loaded as that part.
    extra: anything JSON can hold that a reader should know (class names, client, method).
    Raises `ConfigError` if the model is not what `spec` builds or `extra` is not JSON, `StoreError` if the
    file cannot be written.
    """
    complete = None if spec is None else resolve(spec)
    absent: list[str] = []
    if complete is not None:
        skeleton = _skeleton(complete, tuple(feature_shape), num_outputs, task, modalities)
        absent = sorted(_paths(skeleton) - _paths(model))
        if _layout(_without(skeleton, absent)) != _layout(model):
            raise ConfigError(
                f"this {type(model).__name__} is not what model {complete['name']} builds for features "
                f"{tuple(feature_shape)} and {num_outputs} outputs: other arrays, shapes or types"
            )
    arrays = io.BytesIO()
    eqx.tree_serialise_leaves(arrays, model)
    payload = arrays.getvalue()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "spec": complete,
        "feature_shape": [int(size) for size in feature_shape],
        "num_outputs": int(num_outputs),
        "task": task,
        "modalities": None if modalities is None else [list(modalities.names), list(modalities.shapes)],
        "absent": absent,
        "extra": dict(extra or {}),
        "bytes": len(payload),
    }
    try:
        line = json.dumps({**header, "sha256": _digest(header, payload)})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the header of {path} cannot be written as JSON: {error}") from error
    with atomic_write(path) as file:
        file.write(line.encode() + b"\n")
        file.write(payload)


def load_model(path: _PathLike, like: eqx.Module | None = None) -> eqx.Module:
    """Read a model that `save_model` wrote.

    like: a module of the same structure (values do not matter); needed for a user's own module only.
    Raises `StoreError` if the file is missing, truncated, damaged, no model file, or does not fit `like`.
    """
    header, payload = _read(path)
    if like is None:
        if header["spec"] is None:
            raise StoreError(
                f"{path} holds a user's own module; pass like=, a module of the same structure, to load it"
            )
        try:
            shape, modalities = tuple(header["feature_shape"]), header.get("modalities")
            if modalities is not None:
                names, shapes = modalities
                modalities = Modalities(tuple(names), tuple(map(tuple, shapes)))
            like = _skeleton(header["spec"], shape, header["num_outputs"], header["task"], modalities)
            like = _without(like, header.get("absent", ()))
        except IdiolectError as error:
            raise StoreError(f"{path} describes a model this version cannot build: {error}") from error
    stream = io.BytesIO(payload)
    try:
        model = eqx.tree_deserialise_leaves(stream, like)
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StoreError(f"{path} does not fit the structure of {type(like).__name__}: {reason}") from error
    if stream.tell() != len(payload):
        raise StoreError(f"{path} holds more arrays than {type(like).__name__} has")
    return model


def read_header(path: _PathLike) -> dict[str, Any]:
    """What a model file says about itself: spec, feature_shape, num_outputs, task, extra.

    Raises `StoreError` as `load_model` does.
    """
    return _read(path)[0]


def _read(path: _PathLike) -> tuple[dict[str, Any], bytes]:
    """The header and the verified arrays of a model file."""
    try:
        with Path(path).open("rb") as file:
            line, payload = file.readline(_LONGEST_HEADER), file.read()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StoreError(f"{path} is not an idiolect model file")
    if header.get("version") != VERSION:
        raise StoreError(f"{path} has format version {header.get('version')}; this version reads {VERSION}")
    expected, digest = header.get("bytes"), header.pop("sha256", None)
    if isinstance(expected, int) and len(payload) < expected:
        raise StoreError(f"{path} is truncated: {len(payload)} of {expected} bytes of arrays are there")
    if _digest(header, payload) != digest:
        raise StoreError(f"{path} is damaged: its content does not match its hash")
    return header, payload


def _digest(header: Mapping[str, Any], payload: bytes) -> str:
    return hashlib.sha256(json.dumps(header).encode() + b"\n" + payload).hexdigest()


def _skeleton(
    spec: Spec, feature_shape: tuple[int, ...], num_outputs: int, task: TaskKind, modalities: Modalities | None
) -> eqx.Module:
    """The zoo's model with shapes in place of arrays; nothing is computed."""
    return eqx.filter_eval_shape(lambda: build(spec, feature_shape, num_outputs, task, jax.random.key(0), modalities))


def _paths(model: eqx.Module) -> set[str]:
    """Where the model's leaves lie."""
    return {jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(model)}


def _without(model: eqx.Module, absent: Collection[str]) -> eqx.Module:
    """The model with None in these places."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: None if jax.tree_util.keystr(path) in absent else leaf, model
    )


def _layout(model: eqx.Module) -> tuple[Any, list[tuple[tuple[int, ...], str]]]:
    """Structure, shapes and types: equal exactly when one model's file loads into the other."""
    leaves, structure = jax.tree.flatten(model)
    return structure, [
        (tuple(getattr(leaf, "shape", ())), str(getattr(leaf, "dtype", type(leaf)))) for leaf in leaves
    ]
