"""The command export: a model file for other programs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.cli.options import Json, file_path
from idiolect.cli.outputs import check_output
from idiolect.cli.terminal import print_told
from idiolect.models.client_model import load_model
from idiolect.models.export import export_model, exported_files
from idiolect.study.store.model_files import INDEX


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    format_: Annotated[str, typer.Option("--format", help="safetensors, numpy or onnx.")] = "safetensors",
    out: Annotated[
        Path | None,
        typer.Option("--out", parser=file_path, metavar="FILE", help="Without its suffix (default: ./MODEL's name)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model as plain arrays or as ONNX, beside a JSON with its schema, classes and shapes.

    idiolect export models/penguins/ditto/seed0/personal-torgersen.safetensors --format onnx --out torgersen
    """
    kind: Any = format_
    target = out or Path(f"{model.stem}-exported")
    for file in exported_files(target, kind):
        check_output(file, model, model.parent / INDEX)
    files = [str(file) for file in export_model(load_model(model), target, kind)]
    print_told({"files": files}, files, as_json)
