"""Calls of the Python API with wrong arguments, each with how its error begins.

They run in a process of their own (`python -m tests.api.bad_calls`), where nothing checks types before idiolect does;
it prints one line of JSON per call: what was raised, or what was returned and warned of.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import networkx
import numpy as np
import optax
import pandas as pd
from scipy.sparse import coo_array

import idiolect
from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.api.predict import predict
from idiolect.core.errors import IdiolectError
from idiolect.data import Schema, from_arrays, from_table
from idiolect.data.inspection import inspect_table
from idiolect.graphs import (
    Graph,
    by_labels,
    by_size,
    complete,
    from_dense,
    from_edges,
    from_networkx,
    from_scipy,
    nearest,
    random,
    random_normal,
    ring,
    star,
)
from idiolect.graphs.registry import parse_graph

Bad = tuple[Callable[[], Any], str]

FRAME = pd.DataFrame({"client": list("aabb") * 5, "x": np.arange(20) ** 2 % 7, "label": [0, 1] * 10, 0: [1, 0] * 10})
X, Y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2


def changed(value: float) -> np.ndarray:
    """Features, one of which is this value."""
    x = X.copy()
    x[3, 1] = value
    return x


def of_tables() -> Iterator[Bad]:
    """What is not a table, a column, or a fraction of one."""
    for given, shown in ((None, "None"), (3, "an int"), ([], "a list"), ({}, "a dict"), (X, "a ndarray")):
        message = f"a table is the path of a file or a pandas DataFrame, not {shown}"
        yield lambda given=given: from_table(given), message
        yield lambda given=given: inspect_table(given), message
    yield lambda: from_table(FRAME, label=None), "the label column must be the name of a column, not None"
    yield lambda: from_table(FRAME, client=["a"]), "the client column must be the name of a column, not a list"
    yield lambda: from_table(FRAME, label=7), "table: no label column '7'; it has: client, x, label, 0"
    yield lambda: from_table(FRAME, keep=3), "table: no column '3'"
    yield lambda: from_table(FRAME, task=3), "unknown task '3'; known: classification, regression"
    yield lambda: from_table(FRAME, test="x"), "test fraction must be a number, it is 'x'"
    yield lambda: from_table(FRAME, validation=None), "validation fraction must be a number, it is None"
    yield lambda: from_table(FRAME, split_seed="x"), "seed must be a whole number, it is 'x'"
    yield lambda: from_table(FRAME, minimum="x"), "minimum = 'x' must be a whole number of at least 1 sample"


def of_arrays() -> Iterator[Bad]:
    """What is not a client's features and labels."""

    def both(x: Any, y: Any, **options: Any) -> Callable[[], Any]:
        return lambda: from_arrays({"a": (x, y), "b": (x, y)}, **options)

    for value, shown in ((np.inf, "inf"), (-np.inf, "-inf"), (1e300, "1e+300"), (1e31, "1e+31"), (np.nan, "nan")):
        yield both(changed(value), Y), f"arrays, client 'a': features[3, 1] is {shown} (1 such in all); numbers must"
        yield both(X, changed(value)[:, 1]), f"arrays, client 'a': labels[3] is {shown} (1 such in all); numbers must"
    yield both(X.astype(np.float16) * np.float16(np.inf), Y), "arrays, client 'a': features[0, 0] is "
    yield both(X, np.array([1e25, 2e25] * 6), task="classification"), "arrays: labels of 9007199254740992 or more are"
    yield both([[1], [1, 2]] * 6, Y), "arrays, client 'a': features must have one shape per sample"
    yield both(X, [[1], [1, 2]] * 6), "arrays, client 'a': labels must be one value per sample"
    yield both(X, [None, "a"] * 6), "arrays, client 'a': label 0 is missing (6 in all)"
    yield both(X, Y * 1j), "arrays, client 'a': a label is a class or a number, these are complex128"
    yield both(X, np.array([b"a", b"b"] * 6)), "arrays, client 'a': a label is a class or a number, these are |S1"
    yield both(X[:, :0], Y), "arrays, client 'a': features must have the shape (samples, ...), it is (12, 0)"
    yield both(X, Y, classes=3), "arrays: classes must be a list of names, not an int"
    yield both(X, Y, classes="ab"), "arrays: classes must be a list of names, not the text 'ab'"
    yield both(X, Y, classes=["a", "a"]), "arrays: classes has the same name more than once"
    yield lambda: from_arrays({1: (X, Y), "1": (X, Y)}), "arrays: two clients have the name '1' as text"
    yield lambda: from_arrays(None), "arrays: clients must be a mapping {name: (features, labels)}, not None"


def of_methods() -> Iterator[Bad]:
    """What is not a method, wherever one is taken."""
    data = from_arrays({"a": (X, Y), "b": (X, Y)})
    nameless = type("Nameless", (idiolect.FedAvg,), {})
    for given in (3, None, dict):
        message = (
            "a method is a name (pfedme, perfedavg, fedavg, ...), a specification such as {'name': 'pfedme', 'rate':"
        )
        yield lambda given=given: idiolect.run(data, "mlr", given), message
        yield lambda given=given: idiolect.compare(data, "mlr", [given]), message
        yield lambda given=given: idiolect.sweep(data, "mlr", given, space={}), message
        yield lambda given=given: idiolect.advise(data, methods=[given]), message
    wrong = "the class Nameless has the name 'fedavg' of FedAvg: set name: ClassVar[str] = 'my-method'"
    for given in (nameless, nameless()):
        yield lambda given=given: idiolect.compare(data, "mlr", [given]), wrong
        yield lambda given=given: idiolect.sweep(data, "mlr", given, space={"rate": [0.1]}), wrong
    yield (
        lambda: idiolect.advise(data, methods="fedavg"),
        "methods must be a list, such as ['fedavg', 'local'], not the",
    )


def of_optimizers() -> Iterator[Bad]:
    """What is not an optimiser, for every method that takes one."""
    for name, method in ALGORITHMS.items():
        for key in (key for key in hyperparameters(method) if "optimizer" in key):
            message = f"{name}: {key} must be a name (sgd, momentum, nesterov, adam, adagrad, yogi) or a function"
            for value in (3, optax.sgd(0.1), ["adam"]):
                yield lambda method=method, key=key, value=value: method(**{key: value}), message


def of_graphs() -> Iterator[Bad]:
    """What is not a graph, an edge, a weight or a number of clients."""
    path = networkx.path_graph(3)
    is_none = "is none; write (client, client, weight) with the clients' numbers, such as"
    for edge in (
        ("a", "b", 1.0),
        (0, 1),
        ("0", "1", 1.0),
        (0.5, 1, 1.0),
        (0, 2**70, 1.0),
        (0, 1e300, 1.0),
        (0, 1, None),
        (0, 1, 1j),
        3,
    ):
        yield lambda edge=edge: from_edges([edge], 3), f"graph: the edge {edge!r} {is_none}"
        yield lambda edge=edge: from_edges([(0, 2, 1.0), edge], 3), f"graph: the edge {edge!r} {is_none}"
    for edges, shown in (("abc", "the text 'abc'"), (None, "None"), (3, "an int")):
        yield lambda edges=edges: from_edges(edges, 3), f"graph: edges must be a list, not {shown}"
    for count in ("3", None, 2.5, 0, -1, True):
        wrong = f"graph: num_clients = {count!r} must be a whole number of at least 1"
        yield lambda count=count: from_edges([], count), wrong
        for kind in (star, ring, complete, random, random_normal):
            yield lambda kind=kind, count=count: kind(count), wrong
    for given, shown in (([(0, 1)], "a list"), (None, "None"), (np.ones((3, 3)), "a ndarray")):
        yield lambda given=given: from_networkx(given), f"graph: from_networkx takes a graph of networkx, not {shown}"
    for weight in ("x", None):
        odd = networkx.Graph([(0, 1, {"weight": weight})])
        yield (
            lambda odd=odd: from_networkx(odd),
            f"graph: the edge (0, 1) has weight = {weight!r}, which is not a num",
        )
    yield lambda: from_networkx(path, clients=3), "graph: clients must be a list of the graph's nodes, not 3"
    yield lambda: from_networkx(path, clients=[[0], [1], [2]]), "graph: clients must be a list of the graph's nodes"
    yield lambda: from_networkx(path, clients=[0, 1, 2, 2]), "graph: clients names a node more than once"
    for matrix in ([["a", "b"], ["c", "d"]], [[1, 2], [3]], None, np.eye(2) * 1j):
        yield lambda matrix=matrix: from_dense(matrix), "graph: the matrix must be of numbers, not "
    yield lambda: from_scipy(coo_array(np.eye(2) * 1j)), "graph: the weights must be numbers, they are complex128"
    for hub in (["a", "b"], 1.0, np.ones((2, 2))):
        yield lambda hub=hub: from_edges([(0, 1, 1.0)], 2, hub=hub), "graph: the weights to the hub must be a number"
    yield lambda: Graph([0, 1, 2], ["a", "b"], [1.0, 1.0]), "graph: neighbours must be a list of whole numbers"
    yield lambda: Graph([0, 1, 2], [1, 0], [[1.0], [1.0, 2.0]]), "graph: weights must be a list of numbers"
    yield lambda: Graph([], [], []), "graph: it has no clients"
    yield lambda: random(4, density="x"), "graph random: density = 'x' must be a number"
    yield lambda: random(4, seed="x"), "graph random: seed = 'x' must be a whole number"
    yield lambda: complete(4, weight="x"), "graph: weight = 'x' must be a finite number > 0"
    yield lambda: random_normal(4, threshold=None), "graph random_normal: threshold = None must be a number"
    for values in (None, ["a"], [[1, 2], [3]], 3):
        yield lambda values=values: by_size(values), "graph: sizes must be the number of training samples"
        yield lambda values=values: by_labels(values), "graph: counts must be a table of numbers (clients, classes)"
        yield lambda values=values: nearest(values), "graph: points must be a table of numbers (clients, dimensions)"
    deep = "random(density=" + "-" * 5000 + "1)"
    for text in (deep, "random(density={[]:1})", "ring(weight=1e999)", "random(seed=" + "1" * 5000 + ")", "\0"):
        yield lambda text=text: parse_graph(text), "graph"


def of_files() -> Iterator[Bad]:
    """What is not the path of a model, a schema or a partition."""
    for given, shown in ((None, "None"), (3, "an int"), (b"x", "a bytes")):
        yield lambda given=given: idiolect.load_model(given), f"a model is the path of its file, not {shown}"
        message = f"a model is a ClientModel, or the path of its file or folder, not {shown}"
        yield lambda given=given: predict(given, FRAME), message
        yield lambda given=given: Schema.load(given), f"a schema is a Schema or the path of its file, not {shown}"
    yield lambda: from_table(FRAME, schema={}), "a schema is a Schema or the path of its file, not a dict"
    yield lambda: from_table(FRAME, partition=3), "a partition is a Partition or the path of its file, not an int"


CALLS: list[Bad] = [*of_files(), *of_graphs(), *of_tables(), *of_arrays(), *of_methods(), *of_optimizers()]


def outcome(call: Callable[[], Any]) -> str:
    """What became of a call: the error's message, or what is wrong with how it ended."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            shown = f"returned {call()!r}"
        except IdiolectError as error:
            shown = str(error)
        except Exception as error:
            shown = f"raised {type(error).__name__}: {error}"
    return f"warned: {warned[0].message}; {shown}" if warned else shown


if __name__ == "__main__":
    for call, _ in CALLS:
        print(json.dumps(outcome(call)))
    # What looks wrong and is right.
    assert from_edges([(0.0, 1.0, 2), (1, np.int64(2), np.float32(1))], 3).num_edges == 2
    assert from_edges(np.array([[0, 1, 0.5]]), np.int64(2)).weights.tolist() == [0.5, 0.5]
    assert from_edges(iter([]), 1).num_edges == 0
    assert Graph([0, 1, 2], [1, 0], [1.0, 1.0]).num_edges == 1
    assert from_dense(pd.DataFrame([[0, 1], [1, 0]])).num_edges == 1
    assert from_networkx(networkx.Graph([("a", "b")]), clients="ab").num_edges == 1
    assert from_table(FRAME, label=0).classes == ("0", "1")
    assert from_table(FRAME, ignore="x").num_clients == from_table(FRAME, ignore=[0]).num_clients == 2
    assert inspect_table(FRAME, label=0).task == "classification"
    assert idiolect.__name__ == "idiolect"
