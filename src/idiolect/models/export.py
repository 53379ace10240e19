"""Export a client's model for other programs: safetensors, NumPy or ONNX, each with a JSON file that describes it."""

import json
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import numpy as np
from safetensors.numpy import save

from idiolect.core.errors import ConfigError, unknown
from idiolect.core.files import atomic_write, write_text
from idiolect.models.client_model import ClientModel
from idiolect.models.files import tensors_of

Format = Literal["safetensors", "numpy", "onnx"]
_SUFFIX: dict[str, str] = {"safetensors": ".safetensors", "numpy": ".npz", "onnx": ".onnx"}


def exported_files(path: str | PathLike[str], format: Format) -> tuple[Path, Path]:
    """The two files that `export_model` writes. Raises `ConfigError` for an unknown format."""
    if format not in get_args(Format):
        raise unknown("format", format, get_args(Format))
    target = Path(path)
    target = target.with_suffix("") if target.suffix in _SUFFIX.values() else target
    file, beside = (target.with_name(target.name + suffix) for suffix in (_SUFFIX[format], ".json"))
    return file, beside


def export_model(model: ClientModel, path: str | PathLike[str], format: Format) -> tuple[Path, Path]:
    """Write the model as `path` with the format's suffix, and `path`.json; returns both paths.

    safetensors, numpy: the arrays by their names, such as "linear.weight" (outputs, features). onnx: a graph from
    `x`, (rows, *feature_shape) float32, to `outputs`, (rows, outputs). The JSON has the task, the classes, the shape
    of a sample, the client, and the schema that turns a table's rows into samples. Raises `ConfigError` for an
    unknown format, a model that ONNX cannot hold, or if the converter is missing.
    """
    file, beside = exported_files(path, format)
    content = _CONTENT[format](model)
    about = {
        "task": model.task,
        "classes": list(model.classes),
        "feature_shape": list(model.feature_shape),
        "about": dict(model.about),
        "schema": None if model.schema is None else model.schema.to_dict(),
    }
    with atomic_write(file) as out:
        out.write(content)
    write_text(beside, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return file, beside


def _safetensors(model: ClientModel) -> bytes:
    return save(tensors_of(model.module))


def _numpy(model: ClientModel) -> bytes:
    buffer = BytesIO()
    arrays: dict[str, Any] = tensors_of(model.module)
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _onnx(model: ClientModel) -> bytes:
    try:
        from jax2onnx import to_onnx  # an extra
    except ImportError as error:
        raise ConfigError("ONNX needs jax2onnx; pip install 'idiolect[onnx]'") from error

    def apply(x: Any) -> Any:
        return jax.vmap(model.module)(x).reshape(x.shape[0], -1)  # pyright: ignore[reportArgumentType]

    try:
        made: Any = to_onnx(apply, [("rows", *model.feature_shape)])
    except Exception as error:  # whatever the converter meets in a user's own module
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"this {type(model.module).__name__} cannot be written as ONNX: {reason}") from error
    made.graph.doc_string = ""
    return made.SerializeToString()


_CONTENT = {"safetensors": _safetensors, "numpy": _numpy, "onnx": _onnx}
