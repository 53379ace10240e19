"""Facts about clients and methods that a run records once, so that a report needs neither the data nor the method."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from idiolect.algorithms.base import client_graph_of, relations_of
from idiolect.data.audit import audit_lines
from idiolect.data.federated import SPLITS, FederatedData, GeneratedSplit, Split
from idiolect.graphs import Graph
from idiolect.runtime.evaluate import evaluated_clients
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation
from idiolect.runtime.traffic import bytes_a_round
from idiolect.study.store.store import RunRow, Store

MOST_CLIENTS = 20_000
MOST_COUNTS = 2_000_000
MOST_EDGES = 20_000
MOST_VERTICES = 1_000


def clients_key(data_hash: str, eval_clients: int | None) -> str:
    """The name of the fact that holds the evaluated clients' samples."""
    return f"clients {data_hash}" if eval_clients is None else f"clients {data_hash} {eval_clients}"


def traffic_key(cell: str, title: str) -> str:
    """The name of the fact that holds a method's bytes (down, up) of one client's round."""
    return f"bytes {cell}/{title}"


def graph_key(cell: str, title: str) -> str:
    """The name of the fact that holds a method's graph of clients."""
    return f"graph {cell}/{title}"


def record_audit(store: Store, data: FederatedData) -> None:
    """Record the leakage audit of a data set, once."""
    key = f"audit {data.fingerprint}"
    if store.fact(key) is None:
        store.set_fact(key, audit_lines(data))


def record_clients(store: Store, data: FederatedData, eval_clients: int | None) -> None:
    """Record each evaluated client's samples, once for each data set; nothing for very many clients."""
    key, ids = clients_key(data.fingerprint, eval_clients), evaluated_clients(data.num_clients, eval_clients)
    if len(ids) <= MOST_CLIENTS and store.fact(key) is None:
        store.set_fact(key, census(data, ids))


def census(data: FederatedData, ids: Int[np.ndarray, "clients"]) -> dict[str, Any]:
    """The clients' names and numbers of samples, and what their training labels are.

    classes, counts: of each client's training samples; left out where each client numbers its own classes. quantiles:
    of a regression's training labels: minimum, quartiles, maximum, in the units of the data. Both are left out for
    generated samples.
    """
    found: dict[str, Any] = {"names": [data.clients[i] for i in ids]}
    found |= {name: data.split(name).sizes[ids].tolist() for name in SPLITS}
    if isinstance(data.train, GeneratedSplit) or data.own_labels:
        return found
    labels = [data.train.client(int(i))[1] for i in ids]
    if data.task == "classification" and len(ids) * len(data.classes) <= MOST_COUNTS:
        counts = [np.bincount(part, minlength=len(data.classes)).tolist() for part in labels]
        return {**found, "classes": list(data.classes), "counts": counts}
    if data.task == "regression":
        found["quantiles"] = [_quantiles(part * data.label_scale) for part in labels]
    return found


def _quantiles(labels: np.ndarray) -> list[float]:
    return [float(value) for value in np.quantile(labels, (0.0, 0.25, 0.5, 0.75, 1.0))]


def record_method(store: Store, run: RunRow, simulation: Simulation) -> None:
    """Record the data sent in a round, and the graph of clients if the method has one; once for each method.

    Of a method that trains on all samples in one place nothing travels that could be compared.
    """
    federated = simulation.training is simulation.data
    if federated and store.fact(traffic_key(run.cell, run.label)) is None:
        store.set_fact(traffic_key(run.cell, run.label), list(bytes_a_round(simulation)))
    key, graph = graph_key(run.cell, run.label), client_graph_of(simulation.algorithm, simulation.start)
    if graph is not None and store.fact(key) is None:
        store.set_fact(key, graph_of(graph))


def record_relations(store: Store, run: RunRow, simulation: Simulation, state: State) -> None:
    """Record how the method has learned that clients are related, if it learns that, of the first run that ends.

    Nothing in a distributed run, of which this is one process.
    """
    if jax.process_count() > 1:
        return
    key = graph_key(run.cell, run.label)
    matrix = relations_of(simulation.algorithm, state.shared)
    if matrix is not None and store.fact(key) is None:
        store.set_fact(key, related(np.asarray(matrix, np.float64)))


def graph_of(graph: Graph) -> dict[str, Any]:
    """A graph as JSON: edges [i, j, weight], the strongest if they are very many; their number; eigenvalues.

    clients: how many vertices are clients. eigenvalues: of the Laplacian, with the hub if there is one; left out for
    very many clients.
    """
    owners = np.repeat(np.arange(graph.num_clients), np.diff(graph.offsets))
    once = owners < graph.neighbours
    values = graph.eigenvalues() if graph.num_clients <= MOST_VERTICES else np.zeros(0)
    edges = _edges(owners[once], graph.neighbours[once], graph.weights[once])
    kind = {"clients": graph.num_clients, "learned": False, "hub": graph.hub is not None}
    return {**edges, **kind, "eigenvalues": values.tolist()}


def related(matrix: Float[np.ndarray, "clients clients"]) -> dict[str, Any]:
    """A learned matrix of relations in the same form; eigenvalues: its own."""
    ones, others = np.triu_indices(len(matrix), 1)
    values = np.linalg.eigvalsh(matrix) if len(matrix) <= MOST_VERTICES else np.zeros(0)
    edges = _edges(ones, others, matrix[ones, others])
    return {**edges, "clients": len(matrix), "learned": True, "hub": False, "eigenvalues": values.tolist()}


def _edges(
    ones: Int[np.ndarray, "edges"], others: Int[np.ndarray, "edges"], weights: Float[np.ndarray, "edges"]
) -> dict[str, Any]:
    kept = np.sort(np.argsort(-np.abs(weights), kind="stable")[:MOST_EDGES]).tolist()
    return {"edges": [[int(ones[k]), int(others[k]), float(weights[k])] for k in kept], "count": len(weights)}


def constant_scores(data: FederatedData) -> dict[str, float]:
    """Metric -> score of one answer for all training samples: the most common label, or the labels' mean.

    Empty where that has no meaning: samples that are made when they are used, clients that number their own labels.
    """
    train = data.train
    if not isinstance(train, Split) or train.count == 0 or data.own_labels:
        return {}
    if data.task == "regression":
        return {"mse": float(np.var(train.y, dtype=np.float64)) * data.label_scale**2}
    return {"accuracy": float(np.bincount(train.y).max() / train.count)}
