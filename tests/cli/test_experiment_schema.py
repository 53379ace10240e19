"""The schema of experiment files takes what idiolect takes, and refuses what an editor should mark."""

import copy
import json
import tomllib

import pytest

from idiolect.algorithms.registry import ALGORITHMS, build, hyperparameters
from idiolect.cli.experiment_schema import PACKAGED, bounds, experiment_schema, text_of_schema
from idiolect.core.errors import ConfigError
from idiolect.core.settings import settings_of
from idiolect.study.spec.experiment import experiment_of
from tests.engine import ROOT

SHIPPED = sorted([*PACKAGED.parent.rglob("*.toml"), *(ROOT / "examples").rglob("*.toml")])
SCHEMA = json.loads(PACKAGED.read_text(encoding="utf-8"))
GOOD = tomllib.loads("""
name = "good"
[[cells]]
id = "a"
data = { name = "synthetic", clients = 5 }
model = "mlr"
rounds = 3
methods = [{ name = "pfedme", rate = 0.1, published = [{ model = "personal", value = 90 }] }]
""")


@pytest.fixture(scope="module")
def valid():
    """Whether a table of TOML is valid by the schema."""
    jsonschema = pytest.importorskip("jsonschema", reason="needs the package jsonschema")
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    return jsonschema.Draft7Validator(SCHEMA).is_valid


def test_the_packaged_copy_is_current():
    again = "write it again: idiolect schema -o src/idiolect/experiments/schema.json"
    assert PACKAGED.read_text(encoding="utf-8") == text_of_schema(), again


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_shipped_experiment_is_valid(file, valid):
    assert valid(tomllib.loads(file.read_text(encoding="utf-8")))


def test_settings_have_descriptions_defaults_and_bounds():
    pfedme = SCHEMA["definitions"]["method.pfedme"]["properties"]
    assert pfedme["prox_weight"] == {
        "description": "lambda.", "type": "number", "exclusiveMinimum": 0, "default": 15.0
    }  # fmt: skip
    assert pfedme["local_steps"]["minimum"] == 1
    assert pfedme["epochs"]["minimum"] == 0
    assert SCHEMA["definitions"]["Cell"]["properties"]["rounds"] == {
        "description": "of communication.", "default": 100,
        "anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["auto"], "type": "string"}],
    }  # fmt: skip
    assert bounds("apfl", "mixture", {"type": "number"}) == {"minimum": 0, "maximum": 1}
    assert bounds("l2gd", "probability", {"type": "number"}) == {"exclusiveMinimum": 0, "exclusiveMaximum": 1}
    assert bounds("pfedme", "batches", {"enum": ["fresh"]}) == {}
    names = {name.partition(".")[2] for name in SCHEMA["definitions"] if name.startswith("method.")}
    assert names == {*ALGORITHMS}


def changed(*path, to):
    """A good experiment with one value changed; a last key of None adds a table to a list."""
    made = copy.deepcopy(GOOD)
    place = made
    for key in path[:-1]:
        place = place[key]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return made


CELL = ("cells", 0)
METHOD = (*CELL, "methods", 0)


@pytest.mark.parametrize(
    "wrong",
    [
        changed("titel", to="x"),
        changed("seeds", to="two"),
        changed("seeds", to=0),
        changed("cells", to=[]),
        changed("cells", to=None),
        changed("protocol", to="as-told"),
        changed(*CELL, "id", to=None),
        changed(*CELL, "data", to=None),
        changed(*CELL, "methods", to=None),
        changed(*CELL, "roundz", to=3),
        changed(*CELL, "rounds", to=1.5),
        changed(*CELL, "rounds", to=True),
        changed(*CELL, "rounds", to=0),
        changed(*CELL, "rounds", to="many"),
        changed(*CELL, "cohort", to=0),
        changed(*CELL, "eval_clients", to=0),
        changed(*CELL, "select", to="best"),
        changed(*CELL, "splits", to=["test", "tset"]),
        changed(*CELL, "model", to="mpl"),
        changed(*CELL, "model", to={"name": "mlr", "hidden": 3}),
        changed(*CELL, "model", to={"name": "mlp", "hidden": [0]}),
        changed(*CELL, "model", to={"name": "mlr", "l2": -1}),
        changed(*METHOD, "name", to="pfedmee"),
        changed(*METHOD, "name", to=None),
        changed(*METHOD, "rat", to=0.1),
        changed(*METHOD, "rate", to="fast"),
        changed(*METHOD, "rate", to=0),
        changed(*METHOD, "local_steps", to=0.5),
        changed(*METHOD, "batches", to="frsh"),
        changed(*METHOD, "label", to=3),
        changed(*METHOD, "published", to=[{"model": "personal"}]),
        changed(*METHOD, "published", to=[{"model": "personal", "value": 1, "stdd": 1}]),
        changed(*CELL, "gaps", to=[{"larger": "a", "smaller": "b", "value": 1, "within": -1}]),
    ],
    ids=lambda wrong: json.dumps(wrong)[:200],
)
def test_what_idiolect_refuses_is_marked(wrong, valid):
    assert valid(GOOD)
    assert not valid(wrong)
    with pytest.raises(ConfigError):
        experiment_of(wrong, "wrong.toml")


def test_rounds_and_rate_that_follow_from_the_data_are_valid(valid):
    for key in ("rounds", "rate"):
        automatic = changed(*CELL, key, to="auto")
        assert valid(automatic)
        assert experiment_of(automatic, "automatic.toml").cells[0].automatic


@pytest.mark.parametrize("data", ["mnits", {"name": "mnits"}, {"name": "synthetic", "clinets": 3}, {"name": "table"}])
def test_wrong_data_are_marked(data, valid):
    assert not valid(changed(*CELL, "data", to=data))
    assert valid(changed(*CELL, "data", to="mnist"))


def test_defaults_give_what_cells_leave_out(valid):
    bare = {"name": "bare", "cells": [{"id": "a"}, {"id": "b", "rounds": 2}]}
    shared = {key: GOOD["cells"][0][key] for key in ("data", "model", "methods")}
    assert valid({**bare, "defaults": shared})
    for key in shared:
        assert not valid({**bare, "defaults": {one: value for one, value in shared.items() if one != key}})
    assert not valid({**bare, "defaults": {**shared, "roundz": 1}})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_setting_is_marked_that_a_method_takes(name, valid):
    assert valid(changed("cells", 0, "methods", to=[{"name": name}]))
    for key, default in hyperparameters(ALGORITHMS[name]).items():
        for value in (default, -1, 0, 1, 2, 0.5, True, "x", [], [0.5], ["x"]):
            plain = [*value] if isinstance(value, tuple) else value
            try:
                json.dumps(plain)
                build({"name": name, key: plain})
            except (ConfigError, TypeError):
                continue
            assert plain is None or valid(changed(*CELL, "methods", to=[{"name": name, key: plain}])), (key, value)


def test_a_new_method_is_in_the_schema_at_once(unregistered):
    ALGORITHMS["mine"] = ALGORITHMS["local"]
    made = experiment_schema()["definitions"]
    assert {*made["method.mine"]["properties"]} > {*settings_of(ALGORITHMS["local"])}
