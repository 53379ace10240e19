"""Make the combination of a folder of runs: weights from validation rows, scores from test rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Int

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import ConfigError, StoreError, os_errors_as, require
from idiolect.core.rights import make_folder
from idiolect.data.federated import FederatedData, Split
from idiolect.study.advice.scored import Candidate, candidate
from idiolect.study.combine.combined import FILE, Combined, Content, Kind, write_combined
from idiolect.study.combine.sources import source_in
from idiolect.study.combine.weights import weights_of
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Cell, Method, run_id
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import RunRow, Store

Run = TypeVar("Run")


@dataclass(frozen=True)
class Made:
    """A combination made now. table: the test loss, and accuracy or RMSE, of each method and the combination."""

    combined: Combined
    table: pd.DataFrame


def make_combined(store: Store, bench: Workbench, kind: Kind, cell: str = "", seed: int | None = None) -> Made:
    """Weigh the first named model of every finished method of one cell and seed, and write the combination's file.

    Raises `ConfigError` if several cells are meant, or without two methods or validation rows; `StoreError` if no run
    is finished, its data have changed, or models were not saved.
    """
    the_cell, runs = _chosen(store, cell, seed)
    require(
        len(runs) >= 2,
        f"'{store.folder}' has only one finished method of cell '{the_cell.id}' with seed {runs[0][1].seed}; "
        "a combination needs two",
    )
    first = runs[0][1]
    if bench.data is None and "own" in first.config.get("data", {}):
        raise ConfigError(
            f"the data of run {first.id} were made in Python; give them: idiolect.combine(folder, data)"
        )
    data = bench.load(the_cell, first.seed)
    for method, row in runs:
        store.check(bench.row(the_cell, method, data, row.seed))
    require(
        data.validation.count > 0,
        f"{data.name}: no client has validation rows, which the weights follow; "
        "compare with --set data.validation=0.15, say",
    )
    sources = {
        method.title: (store.models_folder(row), ALGORITHMS[method.name].model_names[0]) for method, row in runs
    }
    return combination(kind, sources, data, store.models_folder(first).parents[1] / kind / f"seed{first.seed}")


def combination(kind: Kind, sources: Mapping[str, tuple[Path, str]], data: FederatedData, target: Path) -> Made:
    """Weigh the models of some methods by these data's validation rows, and write the combination into a folder.

    sources: of each method the folder of its models and the named model. Raises `ConfigError` for data of
    which models cannot be combined, `StoreError` if a client has no model or the file cannot be written.
    """
    _check(data)
    target = target / FILE
    candidates, owners = _candidates(sources, data)
    losses = np.stack([one.validation[0] for one in candidates])
    found, others = weights_of(kind, losses, owners, data.num_clients, data.task == "classification")
    methods = {
        name: {"folder": Path(relpath(folder, target.parent)).as_posix(), "model": model}
        for name, (folder, model) in sources.items()
    }
    content = Content.model_validate(
        {
            "kind": kind,
            "rows": len(owners),
            "methods": methods,
            "weights": {
                client: dict(zip(sources, row, strict=True))
                for client, row in zip(data.clients, found.tolist(), strict=True)
            },
            "others": dict(zip(sources, others.tolist(), strict=True)),
        }
    )
    with os_errors_as(f"cannot write to '{target.parent}'"):
        make_folder(target.parent)
    combined = write_combined(target, content)
    return Made(combined, _table(combined, candidates, data))


def _chosen(store: Store, cell: str, seed: int | None) -> tuple[Cell, list[tuple[Method, RunRow]]]:
    """The cell, and the finished runs of its methods with one seed."""
    experiment = stored_experiment(store)
    done = [
        (c.id, s, (m, row))
        for c in experiment.cells
        for s in experiment.seed_list
        for m in c.methods
        if (row := store.run(run_id(c.id, m.title, s))) is not None and row.status == "done"
    ]
    cells = [c.id for c in experiment.cells]
    name, runs = of_one_cell(done, cells, cell, seed, f"'{store.folder}' holds", "finished run")
    return next(c for c in experiment.cells if c.id == name), runs


def of_one_cell(
    runs: Sequence[tuple[str, int, Run]], cells: Sequence[str], cell: str, seed: int | None, holds: str, what: str
) -> tuple[str, list[Run]]:
    """(the cell, its runs with the first seed) among (cell, seed, run), as far as the user has named them.

    cells: all cells. cell, seed: "" and None where the user named none. holds, what: the words of the errors.
    Raises `StoreError` if there is no such run, `ConfigError` if several cells have some.
    """
    left = [one for one in runs if cell in ("", one[0]) and seed in (None, one[1])]
    if not left:
        asked = (f" of cell {cell}" if cell else "") + (f" with seed {seed}" if seed is not None else "")
        raise StoreError(f"{holds} no {what}{asked}; it has the cells {', '.join(cells)}")
    names = dict.fromkeys(name for name, _, _ in left)
    require(len(names) == 1, f"{holds} several cells ({', '.join(names)}); name one with --cell")
    (name, first, _) = left[0]
    return name, [run for _, its_seed, run in left if its_seed == first]


def _check(data: FederatedData) -> None:
    """Raise `ConfigError` for data whose models cannot be combined."""
    require(isinstance(data.train, Split), f"{data.name}: samples are generated; a combination needs stored rows")
    require(not data.own_labels, f"{data.name}: clients number their own classes; their predictions do not combine")
    require(data.modalities is None, f"{data.name}: a combination is for data of one modality")


def _candidates(
    sources: Mapping[str, tuple[Path, str]], data: FederatedData
) -> tuple[list[Candidate], Int[np.ndarray, "n"]]:
    """Each method's losses and predictions of validation and test rows, and the client of each validation row."""
    parts = [data.stored(name) for name in ("validation", "test")]
    names = np.asarray(data.clients, dtype=object)
    labels = [(parts[0].y, parts[1].y)]
    made: list[Candidate] = []
    for title, (folder, model) in sources.items():
        source = source_in(folder, model)
        missing = [client for client in data.clients if source.file_of(client) is None]
        if missing:
            raise StoreError(f"{folder} holds no model of client {missing[0]!r}")
        shares = [source.predicted(part.x, names[part.owners]) for part in parts]
        tiny = np.finfo(np.float64).tiny
        outputs = [np.log(np.maximum(one, tiny)) if data.task == "classification" else one for one in shares]
        if not all(np.isfinite(one).all() for one in outputs):
            raise StoreError(f"{title} predicts no finite number for some rows; leave it out of the comparison")
        made.append(candidate(title, "", [(outputs[0], outputs[1])], labels))
    return made, parts[0].owners


def _table(combined: Combined, candidates: list[Candidate], data: FederatedData) -> pd.DataFrame:
    """The means over all test rows."""
    test = data.stored("test")
    names = np.asarray(data.clients, dtype=object)
    outputs = combined.outputs(test.x, names[test.owners])
    own = candidate(combined.content.kind, "", [(outputs[:0], outputs)], [(test.y[:0], test.y)])
    rows = [*candidates, own]
    columns: dict[str, list[float] | list[str]] = {"model": [one.name for one in rows]}
    means = [float(one.test[0].mean()) if test.count else float("nan") for one in rows]
    if data.task == "classification":
        columns["test log-loss"] = means
        hits = [np.nan if one.right is None or not test.count else float(one.right[0].mean()) for one in rows]
        columns["accuracy, %"] = [100 * value for value in hits]
    else:
        columns["test RMSE"] = [data.label_scale * float(np.sqrt(value)) for value in means]
    return pd.DataFrame(columns)
