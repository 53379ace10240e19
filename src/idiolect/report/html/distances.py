"""How far each client's model lies from the shared one, by the model files that a run has saved."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from idiolect.report.html.parts import Key
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell
from idiolect.study.store.model_files import INDEX

MOST_BYTES = 1_000_000_000
"""Files of a cell beyond which none is read: a page should not take minutes."""

Tensors = Mapping[str, np.ndarray]


def distances_of(results: Results, cell: Cell, shared: Key | None) -> dict[Key, list[float | None]] | None:
    """Each client's L2 distance over all parameters, by model; None where no run of the cell has saved both.

    shared: (method, model) of the plain shared model. All files are of the first seed that has any. A model of
    another form than the shared one is left out, and a client whose file cannot be read has None.
    """
    if shared is None:
        return None
    folders = {method.title: _folder(results, cell, method.title) for method in cell.methods}
    known = {title: folder for title, folder in folders.items() if folder is not None}
    if sum(path.stat().st_size for folder in known.values() for path in folder.rglob("*.safetensors")) > MOST_BYTES:
        return None
    own = _models(known[shared[0]]) if shared[0] in known else ()
    center = next((tensors for name, _, tensors in own if name == shared[1]), None)
    if center is None:
        return None
    clients, found = results.clients(cell), dict[Key, list[float | None]]()
    for title, folder in known.items():
        by_model: dict[str, dict[str, float | None]] = {}
        for name, owners, tensors in _models(folder):
            if owners is not None:
                by_model.setdefault(name, {}).update(dict.fromkeys(owners, _distance(tensors, center)))
        for name, by_client in by_model.items():
            values = [by_client.get(client) for client in clients]
            if any(value is not None for value in values):
                found[title, name] = values
    return found or None


def _folder(results: Results, cell: Cell, title: str) -> Path | None:
    """The folder of the models of the first seed's run that has one."""
    rows = results.finished(cell, cell.method(title))
    folders = (results.store.models_folder(row) for row in rows)
    return next((folder for folder in folders if (folder / INDEX).is_file()), None)


def _models(folder: Path) -> Iterator[tuple[str, list[str] | None, Tensors | None]]:
    """Yield each file's (model, its clients or None for all, its tensors or None if it cannot be read)."""
    try:
        lines: list[dict[str, Any]] = json.loads((folder / INDEX).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError):
        return
    for line in lines:
        own = [line["client"]] if "client" in line else line.get("clients", [])
        try:
            tensors = load_file(folder / line["file"])
        except (OSError, SafetensorError):
            tensors = None
        yield line["model"], None if own == "all" else own, tensors


def _distance(one: Tensors | None, other: Tensors) -> float | None:
    """L2 over all parameters; None for models of different forms."""
    if one is None or {name: a.shape for name, a in one.items()} != {name: a.shape for name, a in other.items()}:
        return None
    gaps = [one[name].astype(np.float64) - other[name].astype(np.float64) for name in one]
    return float(np.sqrt(sum(float((gap**2).sum()) for gap in gaps)))
