"""The saved models of one method's run: which one predicts a client's rows, loaded when it is needed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from idiolect.core.errors import StoreError
from idiolect.core.files import json_of
from idiolect.models.client_model import ClientModel, load_model
from idiolect.study.store.model_files import INDEX


@dataclass(frozen=True)
class Source:
    """One method's models. own: client -> its file; shared: the file that all clients have, or None."""

    own: Mapping[str, Path]
    shared: Path | None
    _loaded: dict[Path, ClientModel] = field(default_factory=dict[Path, ClientModel], repr=False)

    def file_of(self, client: str) -> Path | None:
        """The model file of a client; of one that took no part it is the shared one. None: there is none."""
        return self.own.get(client, self.shared)

    @property
    def first(self) -> ClientModel:
        """One of the models: all have the same schema and classes."""
        file = next(iter(self.own.values()), self.shared)
        assert file is not None
        return self._of_file(file)

    def model_of(self, client: str) -> ClientModel:
        """The model of a client that has one."""
        file = self.file_of(client)
        assert file is not None
        return self._of_file(file)

    def _of_file(self, file: Path) -> ClientModel:
        if file not in self._loaded:
            self._loaded[file] = load_model(file)
        return self._loaded[file]

    def predicted(
        self, x: Float[np.ndarray, "n ..."], owners: Shaped[np.ndarray, "n"], rows: Sequence[int] | None = None
    ) -> Float[np.ndarray, "m outputs"]:
        """Probabilities of the classes, or numbers (m, 1), of some encoded rows, each by its client's model.

        owners: each row's client; all must have a model. rows: places of the rows (default: all).
        """
        places = np.arange(len(x)) if rows is None else np.asarray(rows, int)
        files = np.asarray([str(self.file_of(str(name))) for name in owners[places]], dtype=object)
        found: np.ndarray | None = None
        for file in dict.fromkeys(files.tolist()):
            chosen = np.flatnonzero(files == file)
            model = self.model_of(str(owners[places[chosen[0]]]))
            outputs = model.outputs(x[places[chosen]])
            values = model.probabilities(outputs) if model.task == "classification" else outputs.astype(np.float64)
            if found is None:
                found = np.zeros((len(places), values.shape[1]))
            found[chosen] = values
        return np.zeros((0, 1)) if found is None else found


def source_in(folder: Path, model: str) -> Source:
    """The files of one named model in the folder of a run's models, which has an index.

    Raises `StoreError` if the index is missing or damaged, or if a file is missing.
    """
    path = folder / INDEX
    try:
        lines: list[Mapping[str, Any]] = json_of(path.read_bytes())["files"]
        mine = [line for line in lines if line["model"] == model]
        shared = [folder / str(line["file"]) for line in mine if line.get("clients") == "all"]
        own = {
            str(client): folder / str(line["file"])
            for line in mine
            if line.get("clients") != "all"
            for client in ([line["client"]] if "client" in line else line["clients"])
        }
    except FileNotFoundError:
        raise StoreError(f"{path} is missing: the run's models were not saved, or have been moved") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({type(error).__name__}): run 'idiolect compare' anew") from None
    if not mine:
        raise StoreError(f"{folder} holds no files of the model '{model}'")
    missing = next((file for file in (*shared, *own.values()) if not file.is_file()), None)
    if missing is not None:
        raise StoreError(f"the model file {missing} is missing")
    return Source(own, shared[0] if shared else None)
