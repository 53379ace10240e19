"""Every client's model, and what clients share, as files that `load_model` reads in one line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from idiolect.client.objective import Objective
from idiolect.client.predictor import Shared, unshared
from idiolect.core import tree
from idiolect.core.errors import StoreError
from idiolect.core.files import file_name, file_names
from idiolect.data.federated import FederatedData
from idiolect.models.files import SUFFIX, save_model


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
) -> None:
    """Write folder/name/<client>.safetensors for every client; a shared model once, as folder/name.safetensors.

    models: parameters or a `Predictor`, leaves (clients, ...), or either as `Shared`: what a group shares is written
    once, as folder/name/group-<number>.safetensors. clients: their names. objective: makes of them models to call on
    a sample. spec: how to build the run's module again, None for a user's own. A predictor that is no such module is
    loaded with `like`, the same client model of another run. A file has the name that it is for, with a hash where
    that is no safe file name or where two would make the same file; the metadata hold the names as they are. Raises
    `StoreError` if the folder cannot be written.
    """
    details = {**extra, "model": name, "classes": list(data.classes)}
    for path, index, told in _places(folder, file_name(name), models, clients):
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
            extra={**details, **told},
        )


Place = tuple[Path, int, dict[str, Any]]


def _places(folder: Path, name: str, models: PyTree, clients: Sequence[str]) -> list[Place]:
    """For each file: its path, the place of a client that has the model, and what is said of whose it is."""
    if not isinstance(models, Shared):
        target = _made(folder / name)
        files = file_names(clients)
        return [
            (target / f"{file}{SUFFIX}", i, {"client": client})
            for i, (client, file) in enumerate(zip(clients, files, strict=True))
        ]
    if models.group is None:
        return [(_made(folder) / f"{name}{SUFFIX}", 0, {})]
    groups, target = np.asarray(models.group), _made(folder / name)
    members: dict[int, list[int]] = {int(g): np.flatnonzero(groups == g).tolist() for g in np.unique(groups)}
    return [
        (target / f"group-{group}{SUFFIX}", of[0], {"group": group, "clients": [clients[i] for i in of]})
        for group, of in members.items()
    ]


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write to '{folder}': {error.strerror or error}") from error
    return folder
