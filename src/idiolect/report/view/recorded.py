"""What runs recorded with their scores: each client's samples and models, bytes of a round, graphs of clients."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.files import json_of
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.journal import Traffic as Moved
from idiolect.report.view.parts import Census, Key, Traffic
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell, run_id
from idiolect.study.store.model_files import INDEX
from idiolect.study.store.predicted import MOST_RESIDUALS, predicted_key
from idiolect.study.store.recorded import clients_key, graph_key, traffic_key


def method_names(cells: Iterable[Cell]) -> dict[str, str]:
    """Map every method's title in tables to its name in figures: the user's label, else the method's own title.

    Where two methods would be called alike, they keep what tables call them.
    """
    methods = {method.title: method for cell in cells for method in cell.methods}
    names = {title: method.label or ALGORITHMS[method.name].title for title, method in methods.items()}
    count = Counter(names.values())
    return {title: name if count[name] == 1 else title for title, name in names.items()}


def not_chosen(results: Results, cell: Cell) -> frozenset[str]:
    """The titles of the settings that validation data did not choose; none before any could be chosen.

    See `Results.best`.
    """
    best = {one.title for one in results.best(cell).values()}
    return frozenset(method.title for method in cell.methods if best and method.title not in best)


ZERO = 1e-9
"""Of the largest eigenvalue: what is below counts as 0, since rounding leaves a little."""
MOST_BYTES = 1_000_000_000
"""Files of a cell beyond which none is read: a page should not take minutes."""

Tensors = Mapping[str, np.ndarray]


def census_of(results: Results, cell: Cell) -> Census | None:
    """The clients of a cell's first finished run; without what it recorded, only the samples that were scored."""
    for method in cell.methods:
        for row in results.finished(cell, method):
            stored = results.store.fact(clients_key(row.data_hash, cell.eval_clients))
            return census_from(stored) if isinstance(stored, dict) else _scored(results, cell, row.id)
    return None


def census_from(stored: dict[str, Any]) -> Census:
    """The census that `study.recorded.census` wrote."""
    return Census(
        tuple(stored["names"]),
        tuple(stored["train"]),
        tuple(stored["test"]),
        tuple(stored.get("classes", ())),
        tuple(tuple(row) for row in stored.get("counts", ())),
        tuple(tuple(row) for row in stored.get("quantiles", ())),
    )


def aligned(census: Census | None, clients: Sequence[str]) -> Census:
    """The census in the order of the evaluated clients; unknown numbers where it does not know them."""
    unknown = (None,) * len(clients)
    if census is None:
        return Census(tuple(clients), unknown, unknown)
    place = {name: i for i, name in enumerate(census.names)}
    rows = [place.get(name) for name in clients]
    known = [row for row in rows if row is not None]

    def of(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if row is None else values[row] for row in rows)

    whole = len(known) == len(rows)
    return Census(
        tuple(clients),
        of(census.train),
        of(census.test),
        census.classes if whole else (),
        of(census.counts) if whole and census.counts else (),
        of(census.quantiles) if whole and census.quantiles else (),
    )


def _scored(results: Results, cell: Cell, run: str) -> Census:
    """Only the numbers of samples, from the scores; those of a split that was not evaluated are unknown."""
    names = results.clients(cell)
    sizes: dict[str, tuple[int | None, ...]] = dict.fromkeys(("train", "test"), (None,) * len(names))
    rounds, models = results.store.evaluated(run), results.store.models(run)
    for split in sizes:
        scores = results.store.scores(run, rounds[-1], models[0], split) if rounds and models else None
        if scores is not None and len(scores.count) == len(names):
            sizes[split] = tuple(scores.count.tolist())
    return Census(tuple(names), sizes["train"], sizes["test"])


def recorded_traffic(results: Results, cell: Cell) -> dict[str, Traffic]:
    """Method -> bytes of one client's round: counted where real sites have sent them, else as they were computed."""
    moved, found = Participation(results.store.folder).traffic(), dict[str, Traffic]()
    for method in cell.methods:
        runs = [run_id(cell.id, method.title, seed) for seed in results.experiment.seed_list]
        counted = sum((moved[run] for run in runs if run in moved), Moved()).of_a_client
        computed = results.store.fact(traffic_key(cell.id, method.title))
        if pair := counted or computed:
            found[method.title] = Traffic(int(pair[0]), int(pair[1]), counted is not None)
    return found


def recorded_predicted(results: Results, cell: Cell) -> tuple[dict[Key, Any], str]:
    """What the saved models of each line predict, a list over clients; and in words, of which runs."""
    found: dict[Key, Any] = {}
    seeds: list[int] = []
    for method in cell.methods:
        fact = results.store.fact(predicted_key(cell.id, method.title))
        if isinstance(fact, dict):
            seeds.append(int(fact["seed"]))
            found |= {(method.title, name): each for name, each in fact["models"].items()}
    whose = ", ".join(map(str, dict.fromkeys(seeds)))
    some = (
        f"; of more than {MOST_RESIDUALS} test samples, as many of them" if results.task(cell) == "regression" else ""
    )
    return found, f"Of the models that were saved, of seed {whose}{some}." if found else ""


def recorded_graphs(results: Results, cell: Cell) -> tuple[dict[str, Any], ...]:
    """The graphs of the cell's methods that have one, and the relations that a method has learned."""
    names = method_names([cell])
    facts = {method.title: results.store.fact(graph_key(cell.id, method.title)) for method in cell.methods}
    return tuple(
        {"method": title, **_graph(names[title], fact)} for title, fact in facts.items() if isinstance(fact, dict)
    )


def _graph(name: str, fact: dict[str, Any]) -> dict[str, Any]:
    shown, count, learned, hub = len(fact["edges"]), int(fact["count"]), bool(fact["learned"]), bool(fact["hub"])
    values = list(fact["eigenvalues"])
    ends = [vertex + 1 for i, j, _ in fact["edges"] for vertex in (i, j)]
    note = "correlations of the clients as the method learned them" if learned else "weights of the edges"
    note += f"; the {shown:,} strongest of {count:,} pairs are shown" if shown < count else ""
    return {
        "title": f"{name}: relations that were learned" if learned else f"{name}: graph of the clients",
        "clients": int(fact.get("clients") or max([len(values) - hub, *ends])),  # runs of older versions do not say
        "edges": [list(edge) for edge in fact["edges"]],
        "eigenvalues": values,
        "learned": learned,
        "hub": hub,
        "note": f"{note[0].upper()}{note[1:]}.",
        "spectrum": _spectrum(fact["eigenvalues"], learned, hub),
    }


def _spectrum(values: list[float], learned: bool, hub: bool) -> str:
    """What the eigenvalues are of; of a Laplacian as many are 0 as the graph has connected parts."""
    if not values:
        return ""
    if learned:
        return "Eigenvalues of the matrix of relations, in order."
    zeros = sum(value <= ZERO * max(values) for value in values)
    parts = "one is zero: it is connected" if zeros == 1 else f"{zeros} are zero: it has {zeros} connected parts"
    return f"Eigenvalues of the graph's Laplacian{', with the server as one more vertex' if hub else ''}; {parts}."


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
        lines: list[dict[str, Any]] = json_of((folder / INDEX).read_text(encoding="utf-8"))["files"]
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
