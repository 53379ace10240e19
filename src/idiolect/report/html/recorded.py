"""What runs recorded beside their scores: each client's samples, the bytes of a round, the graphs of clients."""

from typing import Any

from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.journal import Traffic as Moved
from idiolect.report.html.numbers import number, numbers
from idiolect.report.html.parts import Census, Key, Traffic
from idiolect.report.names import method_names
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell, run_id
from idiolect.study.store.predicted import MOST_RESIDUALS, predicted_key
from idiolect.study.store.recorded import clients_key, graph_key, traffic_key

ZERO = 1e-9
"""Of the largest eigenvalue: what is below counts as 0, since rounding leaves a little."""


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


def _scored(results: Results, cell: Cell, run: str) -> Census:
    """The numbers of samples alone, from the scores; those of a split that was not evaluated are unknown."""
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
    facts = {names[method.title]: results.store.fact(graph_key(cell.id, method.title)) for method in cell.methods}
    return tuple(_graph(name, fact) for name, fact in facts.items() if isinstance(fact, dict))


def _graph(name: str, fact: dict[str, Any]) -> dict[str, Any]:
    shown, count, learned, hub = len(fact["edges"]), int(fact["count"]), bool(fact["learned"]), bool(fact["hub"])
    values = numbers(fact["eigenvalues"])
    ends = [vertex + 1 for i, j, _ in fact["edges"] for vertex in (i, j)]
    note = "correlations of the clients as the method learned them" if learned else "weights of the edges"
    note += f"; the {shown:,} strongest of {count:,} pairs are shown" if shown < count else ""
    return {
        "title": f"{name}: relations that were learned" if learned else f"{name}: graph of the clients",
        "clients": int(fact.get("clients") or max([len(values) - hub, *ends])),  # runs of older versions do not say
        "edges": [[i, j, number(weight)] for i, j, weight in fact["edges"]],
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
