"""Every client's model as a file that `load_model` reads in one line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
from jaxtyping import PyTree

from idiolect.core import tree
from idiolect.core.errors import StoreError
from idiolect.core.files import file_names
from idiolect.data.federated import FederatedData
from idiolect.models.files import SUFFIX, save_model


def save_client_models(
    folder: Path,
    name: str,
    params: PyTree,
    model: eqx.Module,
    *,
    data: FederatedData,
    clients: Sequence[str],
    spec: Mapping[str, Any] | None,
    extra: Mapping[str, Any],
) -> None:
    """Write folder/name/<client>.safetensors for every client, or folder/global.safetensors for what all share.

    clients: their names; params: leaves (clients, ...). model: any model of the same structure. spec: its
    specification in the zoo, None for a user's own module. A client's file is named after it, with a hash if two
    names give the same file name; its metadata hold the exact name. Raises `StoreError` if the folder cannot be
    written.
    """
    static = eqx.filter(model, eqx.is_inexact_array, inverse=True)
    params = jax.device_get(params)
    shared = name == "global"
    target = folder if shared else folder / name
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write to '{target}': {error.strerror or error}") from error
    files = ["global"] if shared else file_names(clients)
    details = {**extra, "model": name, "classes": list(data.classes)}
    for index, (client, file) in enumerate(zip(clients, files, strict=not shared)):
        save_model(
            target / f"{file}{SUFFIX}",
            eqx.combine(jax.tree.map(jax.numpy.asarray, tree.gather(params, index)), static),
            spec=spec,
            feature_shape=data.feature_shape,
            num_outputs=data.num_outputs,
            task=data.task,
            modalities=data.modalities,
            extra=details if shared else {**details, "client": client},
        )
