"""Calls of the Python API with wrong arguments, each with how its error begins.

They run in a process of their own (`python -m tests.api.bad_calls`), where nothing checks types before idiolect does;
it prints one line of JSON per call: what was raised, or what was returned and warned of.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optax
import pandas as pd

import idiolect
from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.core.errors import IdiolectError
from idiolect.data import from_arrays, from_table
from idiolect.data.inspection import inspect_table

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


CALLS: list[Bad] = [*of_tables(), *of_arrays(), *of_methods(), *of_optimizers()]


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
    assert from_table(FRAME, label=0).classes == ("0", "1")
    assert from_table(FRAME, ignore="x").num_clients == from_table(FRAME, ignore=[0]).num_clients == 2
    assert inspect_table(FRAME, label=0).task == "classification"
    assert idiolect.__name__ == "idiolect"
