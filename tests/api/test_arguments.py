"""What a stranger gives to `run`, `compare` and `sweep`: each mistake is one clear line."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pandas as pd
import pytest

import idiolect
from idiolect.api.arguments import (
    automatic,
    check_data,
    check_model_argument,
    method_of,
    methods_named,
    names_of,
    seed_of,
    specification_of,
    splits_of,
    whole,
)
from idiolect.core.errors import ConfigError, IdiolectError

SCRIPT = """
import numpy as np, idiolect
rng = np.random.default_rng(0)
data = idiolect.data.from_arrays({i: (rng.normal(size=(12, 2)), np.arange(12) % 2) for i in range(3)})
for call in (
    lambda: idiolect.run("good.csv", "mlr", idiolect.FedAvg()),
    lambda: idiolect.run(data, lambda x: x, idiolect.FedAvg()),
    lambda: idiolect.run(data, "mlr", idiolect.FedAvg(), rounds="3"),
    lambda: idiolect.run(data, "mlr", idiolect.FedAvg(), seed=-1),
    lambda: idiolect.run(data, "mlr", idiolect.FedAvg(), seed=2**80),
    lambda: idiolect.run(data, "mlr", idiolect.FedAvg(), cohort="2"),
    lambda: idiolect.run(data, "mlr", idiolect.FedAvg(), splits=["tset"]),
    lambda: idiolect.run(data, "mlr", lambda: 0),
    lambda: idiolect.compare("good.csv", "mlr", ["fedavg"]),
    lambda: idiolect.compare(data, lambda x: x, ["fedavg"]),
    lambda: idiolect.compare(data, "mlr", "fedavg"),
    lambda: idiolect.sweep("good.csv", "mlr", "fedavg", space={"rate": [0.1]}),
    lambda: idiolect.sweep(data, "mlr", 3, space={"rate": [0.1]}),
    lambda: idiolect.FedAvg(lr=0.1),
    lambda: idiolect.FedU(graph=np.ones((3, 3))),
    lambda: idiolect.data.from_arrays([(np.ones((3, 2)), [0, 1, 0])]),
    lambda: idiolect.data.from_arrays({"a": np.ones((3, 2))}),
):
    try:
        call()
        print("nothing was raised")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
print(data, idiolect.run(data, "mlr", idiolect.FedAvg, rounds=np.int64(1), seed=np.int32(2)), sep="\\n")
"""
SAID = """
DataError: data must be FederatedData, not the text 'good.csv'; make them by idiolect.data.from_tabl
ConfigError: a model must be an equinox.Module, or a name or specification such as 'mlr', not a func
ConfigError: rounds = '3' must be a whole number of at least 1
ConfigError: seed = -1 must be a whole number from 0 to 2147483647
ConfigError: seed = 1208925819614629174706176 must be a whole number from 0 to 2147483647
ConfigError: cohort = '2' must be a number or null
ConfigError: unknown split 'tset'; did you mean 'test'?
ConfigError: a method is a name (pfedme, perfedavg, fedavg, ...), a specification such as {'name': '
DataError: data must be FederatedData, not the text 'good.csv'
ConfigError: a model must be an equinox.Module
ConfigError: methods must be a list, such as ['fedavg', 'local'], not the text 'fedavg'
DataError: data must be FederatedData, not the text 'good.csv'
ConfigError: a method is a name
ConfigError: unknown setting of fedavg 'lr'; did you mean 'rate'?
ConfigError: fedu: graph must be a name ('complete') or a Graph, not ndarray; idiolect.graphs.from_d
DataError: arrays: clients must be a mapping {name: (features, labels)}, not a list; for a list of p
DataError: arrays, client 'a': a client has a pair (features, labels), not a ndarray
<FederatedData arrays: 3 clients, 24 train, 3 validation, 9 test samples; 2 features, 2 classes>
<Run: fedavg on arrays, 1 rounds, test accuracy global
"""


def test_a_strangers_mistakes_are_one_line_each():
    """In a process of its own: here every function is type-checked, which is a user's luck only in tests."""
    shown = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    lines, said = shown.splitlines(), SAID.strip().splitlines()
    assert len(lines) == len(said)
    for line, start in zip(lines, said, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_data("mnist"), r"make them by idiolect.data.load\('mnist'\)$"),
        (
            lambda: check_data(Path("a") / "t.csv"),
            r"not a PosixPath; .*from_table\('a/t.csv', client=..., ",
        ),
        (lambda: check_data("nist"), "or one of the data sets .*mnist"),
        (lambda: check_data(pd.DataFrame()), r"make them by idiolect.data.from_table\(frame, client"),
        (lambda: check_data({"a": 1}), r"from_arrays\(\{client: \(features, labels\), ...\}\)"),
        (lambda: check_data(None), "not None; make them by idiolect.data.from_table, from_arrays or load"),
        (lambda: check_model_argument(idiolect.FedAvg()), "must be an equinox.Module, or a name .* not a FedAvg"),
        (lambda: check_model_argument(None), "not a NoneType"),
        (lambda: method_of("fedavgg"), "did you mean 'fedavg'"),
        (lambda: method_of({"name": "fedavg", "learning_rate": 0.1}), "did you mean 'rate'"),
        (lambda: method_of(eqx.nn.MLP), "not the class MLP"),
        (lambda: methods_named(3), "methods must be a list"),
        (lambda: methods_named([3]), "a method is a name .* not an int"),
        (lambda: methods_named([eqx.nn.MLP]), "not the class MLP"),
        (lambda: whole("rounds", True, least=1), "rounds = True must be a whole number of at least 1"),
        (lambda: whole("rounds", 2.5, least=1), "rounds = 2.5"),
        (lambda: whole("rounds", 0, least=1), "rounds = 0 must be a whole number of at least 1"),
        (lambda: seed_of(2**31), "seed = 2147483648"),
    ],
)
def test_what_was_expected_is_said(call, message):
    with pytest.raises(IdiolectError, match=message):
        call()


def test_methods_are_taken_in_every_form():
    assert method_of(idiolect.FedAvg) == method_of("fedavg") == idiolect.FedAvg()
    assert method_of({"name": "fedavg", "rate": 0.5}) == method_of(idiolect.FedAvg(rate=0.5))
    assert methods_named([idiolect.FedAvg, "local", {"name": "fedu"}]) == ["fedavg", "local", {"name": "fedu"}]
    assert methods_named([idiolect.FedAvg(rate=0.1)]) == [{"name": "fedavg", "rate": 0.1}]
    assert methods_named([idiolect.FedAvg(rate=0.1), "fedavg"]) == [
        {"name": "fedavg", "rate": 0.1, "label": "fedavg rate=0.1"},
        "fedavg",
    ]
    assert names_of([idiolect.FedAvg, "local", idiolect.Ditto(), {"name": "fedu"}]) == [
        "fedavg",
        "local",
        "ditto",
        "fedu",
    ]
    with pytest.raises(ConfigError, match="advise tries settings of fedavg itself; leave rate out, or use compare"):
        names_of([idiolect.FedAvg(rate=0.1)])


def test_plain_values_are_taken_as_they_are_meant():
    assert (whole("n", np.int64(3)), whole("n", 3.0), seed_of(0)) == (3, 3, 0)
    assert splits_of("test") == splits_of(["test"]) == ("test",)
    check_model_argument("mlr")
    check_model_argument(eqx.nn.Linear(1, 1, key=jax.random.key(0)))


def test_rounds_and_rate_are_automatic_on_own_rows_with_validation_rows_only():
    arrays = {name: (np.zeros((20, 1)), np.arange(20) % 2) for name in "ab"}
    own, bare = (idiolect.data.from_arrays(arrays, validation=share) for share in (0.2, 0.0))
    assert automatic(own, None, None) == ("auto", "auto")
    assert automatic(bare, None, None) == (100, "method")
    assert automatic(own, 7, None) == (7, "method")
    assert automatic(own, None, 0.5) == ("auto", 0.5)
    assert automatic(bare, "auto", "method") == ("auto", "method")
    published = replace(own, provenance={"source": "synthetic"})
    assert automatic(published, None, None) == (100, "method")
    with pytest.raises(ConfigError, match=r"^rounds = 'many' must be a whole number of at least 1"):
        automatic(own, "many", None)
    with pytest.raises(ConfigError, match=r"^rate = 'fast' must be a number"):
        automatic(own, None, "fast")


def test_the_specification_of_a_method_holds_what_it_sets():
    assert specification_of("fedavg") == specification_of(idiolect.FedAvg()) == {"name": "fedavg"}
    assert specification_of(idiolect.FedAvg(rate=0.5)) == {"name": "fedavg", "rate": 0.5}
    assert specification_of({"name": "fedavg", "rate": 0.1}) == {"name": "fedavg", "rate": 0.1}
