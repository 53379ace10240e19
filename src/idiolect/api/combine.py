"""`combine`: let each client combine the models of several methods, or choose one of them."""

from os import PathLike
from pathlib import Path

from idiolect.core.errors import StoreError
from idiolect.data.federated import FederatedData
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.combine.combined import Combined, check_kind
from idiolect.study.combine.make import make_combined
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.store import DATABASE, Store


def combine(
    folder: str | PathLike[str],
    data: FederatedData | None = None,
    *,
    kind: str = "blend",
    cell: str = "",
    seed: int | None = None,
) -> Combined:
    """Let each client combine the models of a finished comparison, by weights that follow validation rows.

    Args:
        folder: Of `idiolect.compare(..., out=folder)` or `idiolect compare --out folder`.
        data: What was compared, if it was made in Python.
        kind: "blend": a weighted mean of all methods' predictions; "portfolio": one method per client.
        cell: If the folder has several.
        seed: By default the first that is finished.

    Raises:
        ConfigError: Without two methods or validation rows.
        StoreError: If no run is finished, its data have changed, or its models were not saved.
    """
    use_compilation_cache()
    place = Path(folder)
    if not (place / DATABASE).is_file():
        raise StoreError(f"'{folder}' holds no runs; make some with idiolect.compare(..., out=folder)")
    with Store(place, create=False) as store:
        return make_combined(store, Workbench(data=data), check_kind(kind), cell, seed).combined
