"""Save the clients' models as files that `load_model` reads."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from idiolect.client.objective import Objective
from idiolect.client.predictor import Shared, unshared
from idiolect.core import tree
from idiolect.core.errors import os_errors_as
from idiolect.core.files import file_name, file_names, write_text
from idiolect.core.rights import make_folder
from idiolect.data.federated import FederatedData
from idiolect.models.files import SUFFIX, save_model

INDEX = "index.json"


def save_client_models(
    folder: Path,
    name: str,
    models: PyTree,
    objective: Objective,
    *,
    data: FederatedData,
    clients: Sequence[str],
    spec: Mapping[str, Any] | None,
    extra: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Write every client's model to folder/name/<client>.safetensors.

    A model that all clients share is written once, as folder/name.safetensors; one that a group shares is written
    once, as folder/name/group-<number>.safetensors. File names keep the letters of any script; a client name that
    collides with another gets a hash in its file name. The metadata hold the names as they are, and so do the lines
    that are returned, one a file, for `write_index`.

    models: parameters or a `Predictor`, leaves (clients, ...), or either as `Shared`. clients: their names.
    objective: turns `models` into models of one sample. spec: how to build the run's module again, None for a user's
    own. extra: more metadata. A predictor that is not the run's module is loaded with `like`, the same client's model
    of another run. Raises `StoreError` if the folder cannot be written to.
    """
    written: list[dict[str, Any]] = []
    if data.schema is not None:
        data.schema.save(_created(folder) / "schema.json")
    number = {client: index for index, client in enumerate(data.clients)}
    for path, index, owners in _places(folder, file_name(name), models, clients):
        own = "client" in owners and data.own_labels
        classes = data.classes_of(number[owners["client"]]) if own else data.classes
        details = {**extra, "model": name, "classes": list(classes)}
        params = jax.tree.map(jax.numpy.asarray, tree.gather(jax.device_get(unshared(models)), index))
        model = objective.model(params)
        save_model(
            path,
            model,
            spec=spec if type(model) is type(objective.static) else None,
            feature_shape=data.feature_shape,
            num_outputs=data.num_outputs,
            task=data.task,
            modalities=data.modalities,
            schema=data.schema,
            target=data.target,
            extra={**details, **owners},
        )
        written.append({"file": path.relative_to(folder).as_posix(), "model": name, **(owners or {"clients": "all"})})
    return written


def write_index(folder: Path, cell: str, method: str, written: Sequence[Mapping[str, Any]]) -> None:
    """Write folder/index.json: of each model file, its model, its client or clients ("all": any), and the method."""
    index = {"cell": cell, "method": method, "files": [dict(line) for line in written]}
    write_text(_created(folder) / INDEX, json.dumps(index, indent=2, ensure_ascii=False))


Place = tuple[Path, int, dict[str, Any]]


def _places(folder: Path, name: str, models: PyTree, clients: Sequence[str]) -> list[Place]:
    """List for each file: its path, the row of a client that has the model, the metadata about its owners."""
    if not isinstance(models, Shared):
        target = _created(folder / name)
        files = file_names(clients)
        return [
            (target / f"{file}{SUFFIX}", i, {"client": client})
            for i, (client, file) in enumerate(zip(clients, files, strict=True))
        ]
    if models.group is None:
        return [(_created(folder) / f"{name}{SUFFIX}", 0, {})]
    groups, target = np.asarray(models.group), _created(folder / name)
    members: dict[int, list[int]] = {int(g): np.flatnonzero(groups == g).tolist() for g in np.unique(groups)}
    return [
        (target / f"group-{group}{SUFFIX}", rows[0], {"group": group, "clients": [clients[i] for i in rows]})
        for group, rows in members.items()
    ]


def _created(folder: Path) -> Path:
    with os_errors_as(f"cannot write to '{folder}'"):
        make_folder(folder)
    return folder
