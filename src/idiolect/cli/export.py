"""The command export: a model file for other programs."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.cli.options import file_path
from idiolect.models.client_model import load_model
from idiolect.models.export import export_model


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    format_: Annotated[str, typer.Option("--format", help="safetensors, numpy or onnx.")] = "safetensors",
    out: Annotated[
        Path | None,
        typer.Option("--out", parser=file_path, metavar="FILE", help="Without its suffix (default: ./MODEL's name)."),
    ] = None,
) -> None:
    """Write a model as plain arrays or as ONNX, beside a JSON with its schema, classes and shapes."""
    kind: Any = format_
    for file in export_model(load_model(model), out or Path(f"{model.stem}-exported"), kind):
        print(file, file=sys.stdout)
