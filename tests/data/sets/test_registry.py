import json

import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SOURCES, describe_data, load, synthetic
from idiolect.data.sets.registry import task_of


def test_loads_by_name(tiny_mnist, tmp_path):
    spec = {"name": "synthetic", "clients": 3, "max_size": 260, "alpha": 1}
    assert load(json.loads(json.dumps(spec))).fingerprint == synthetic(1.0, clients=3, max_size=260).fingerprint
    data = load(
        {
            "name": "mnist",
            "folder": str(tiny_mnist),
            "partition": "dirichlet",
            "concentration": 1.0,
            "minimum": 10,
            "verify": False,
        }
    )
    assert data.provenance["partition"]["parameters"]["concentration"] == 1.0
    table = tmp_path / "t.csv"
    table.write_text("who,x,label\n" + "".join(f"{i % 2},{i},{i % 3}\n" for i in range(20)))
    assert load({"name": "table", "path": str(table), "client": "who"}).clients == ("0", "1")


def test_data_of_a_specification_know_how_they_were_made(tiny_mnist, tmp_path, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(tiny_mnist))
    table = tmp_path / "t.csv"
    table.write_text("client,x,label\n" + "".join(f"{i % 2},{i},{i % 3}\n" for i in range(20)))
    for spec in (
        {"name": "synthetic", "clients": 3, "max_size": 260},
        {"name": "mnist", "partition": "labels_per_client", "k": 3, "verify": False},
        {"name": "fashion-mnist", "partition": "pflego-high", "clients": 8, "labels": "global", "verify": False},
        {"name": "table", "path": str(table), "standardise": False},
    ):
        data = load(spec)
        arguments = json.loads(json.dumps(data.provenance))["arguments"]
        assert data.provenance["source"] == spec["name"]
        unverified = {"verify": False} if "verify" in spec else {}
        assert load({"name": spec["name"], **arguments, **unverified}).fingerprint == data.fingerprint


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, r"needs a name: one of .*mnist.*synthetic, synthetic-population, table"),
        ({"name": "mnits"}, "unknown data set 'mnits'; did you mean 'mnist'"),
        ({"name": "synthetic", "alhpa": 1}, "unknown key of data set 'synthetic' 'alhpa'; did you mean 'alpha'"),
        ({"name": "mnist", "partitoin": "iid"}, "'partitoin'; did you mean 'partition'"),
        ({"name": "table"}, "data set 'table' needs a path, the CSV, Parquet, JSON or Excel file"),
        ({"name": "synthetic", "clients": "many"}, "data set 'synthetic': clients = 'many' must be a whole number"),
        ({"name": "synthetic", "clients": print}, "plain values"),
        ({"name": "mnist", "rng": 3}, "unknown key of data set 'mnist' 'rng'"),
        ({"name": "mnist", "labels": 3}, "data set 'mnist': labels = 3 must be a name or null"),
        ({"name": "fashion-mnist", "k": "two"}, "data set 'fashion-mnist': k = 'two' must be a whole number"),
        ({"name": "emnist", "variant": "byclass", "part": ["test"]}, "'part'; did you mean 'parts'"),
        ({"name": "cifar10", "concentraton": 0.1}, "'concentraton'; did you mean 'concentration'"),
        ({"name": "har-modalities", "modality": "body_acc"}, "'modality'; did you mean 'modalities'"),
        ({"name": "mosi", "missing": "often"}, "data set 'mosi': missing = 'often' must be a number"),
        ({"name": "mosei", "mising": 0.3}, "'mising'; did you mean 'missing'"),
        ({"name": "omniglot", "partition": "iid"}, "unknown key of data set 'omniglot' 'partition'"),
    ],
)
def test_refuses(spec, message):
    with pytest.raises(ConfigError, match=message):
        load(spec)


def test_errors_of_the_data_come_through(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        load({"name": "table", "path": str(tmp_path / "t.csv")})


def test_describe_has_one_line_each():
    assert describe_data().keys() == SOURCES.keys()
    assert all(line.endswith(".") and "\n" not in line for line in describe_data().values())


def test_the_task_is_known_of_sets_whose_arguments_cannot_change_it():
    assert {name for name in SOURCES if task_of(name) is None} == {"encoded", "mosei", "school", "table"}
    assert {task_of(name) for name in SOURCES} == {None, "classification"}
    assert task_of("nowhere") is None
