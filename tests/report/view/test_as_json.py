import json
import math

import numpy as np
import pytest

from idiolect.report.view.as_json import clients_json, plain, skew, to_dict
from idiolect.report.view.from_store import view_of
from idiolect.report.view.parts import Census
from idiolect.study.store.recorded import clients_key
from tests.report.html.made import compared


def test_skew_is_the_total_variation_distance():
    census = Census(("a", "b", "c"), (4, 4, 0), (1, 1, 1), ("x", "y"), ((4, 0), (0, 4), (0, 0)))
    assert skew(census) == [0.5, 0.5, None]
    assert skew(Census(("a",), (1,), (1,))) == [None]


def test_labels_are_those_of_the_clients_by_name(tmp_path):
    results = compared(tmp_path)
    facts = {"names": ["east", "extra", "north", "south"], "train": [3, 9, 1, 2], "test": [30, 90, 10, 20]}
    facts |= {"classes": ["x", "y"], "counts": [[3, 0], [9, 0], [1, 0], [0, 2]]}
    results.store.set_fact(clients_key("d", None), facts)
    part = view_of(results, "").parts[0]
    keys = {(line.method, line.model): f"m{i}" for i, line in enumerate(part.lines)}
    found = clients_json(part, keys)
    assert (found["names"], found["train"], found["test"]) == (["north", "south", "east"], [1, 2, 3], [10, 20, 30])
    assert found["labels"] == {"names": ["x", "y"], "counts": [[1, 0], [0, 2], [3, 0]]}
    assert np.allclose(found["skew"], [1 / 3, 2 / 3, 1 / 3], atol=1e-4)


def test_one_client_and_a_client_without_test_samples(tmp_path, toy):
    one = view_of(compared(tmp_path, names=["only"]), "").parts[0]
    assert clients_json(one, {("local", "local"): "m0"})["scores"] == {"m0": [0.5]}
    part = view_of(toy, "").parts[0]
    assert np.isnan(clients_json(part, {("local", "local"): "m1"})["scores"]["m1"][3])


def test_it_is_json_without_nan(toy):
    found = to_dict(view_of(toy))
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_lines(toy):
    (cell,) = to_dict(view_of(toy))["cells"]
    assert (cell["id"], cell["metric"], cell["select"]) == ("cell0", "accuracy", "last")
    assert cell["notes"] == ["the toy data leak on purpose"]
    fedavg, alone, *absent = cell["lines"]
    assert (fedavg["method"], fedavg["model"], fedavg["verdict"], fedavg["failed"]) == (
        *("fedavg", "global", "close", 1),
    )
    assert fedavg["pooled"]["mean"] == pytest.approx(0.725)
    assert fedavg["pooled"]["std"] is None
    assert (fedavg["published"]["value"], fedavg["published"]["metric"]) == (70.0, "")
    assert (fedavg["metric"], fedavg["metrics"]["macro-f1"]["mean"]) == ("accuracy", None)
    assert fedavg["metrics"]["accuracy"] == fedavg["pooled"]
    assert fedavg["difference"] == pytest.approx(2.5)
    assert alone["rounds"] == [20, 20]
    assert [line["pooled"]["mean"] for line in absent] == [None, None, None]
    assert [line["hurt_local"] for line in absent] == [None, None, None]


def test_every_run_has_a_status(toy):
    found = to_dict(view_of(toy))
    statuses = {run["id"]: run["status"] for run in found["runs"]}
    assert statuses == {
        "cell0/fedavg/seed0": "done",
        "cell0/fedavg/seed1": "diverged",
        "cell0/local/seed0": "done",
        "cell0/local/seed1": "done",
        "cell0/pfedme/seed0": "not run",
        "cell0/pfedme/seed1": "not run",
    }
    assert found["runs"][1]["message"] == "round 7, client south: the loss is NaN"
    assert found["runs"][0]["seconds"] == 1.25
    assert {verdict: count for verdict, count in found["verdicts"].items() if count} == {"close": 1}


def test_every_run_has_its_diagnostics(toy, said):
    assert "diagnostics" not in to_dict(view_of(toy))["runs"][-1]  # not run
    assert [run["diagnostics"] for run in to_dict(view_of(toy))["runs"][:4]] == [{}] * 4
    found = to_dict(view_of(said))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["runs"][0]["diagnostics"] == {
        "duality gap": [[0, None], [20, 1 / 3]],
        "dual objective": [[20, -12345.678]],
    }
    assert found["runs"][1]["diagnostics"] == {"duality gap": [[0, None]]}
    assert found["runs"][2]["diagnostics"] == {}


def test_plain():
    assert plain({1: (math.nan, math.inf, 2.0, "a", True, None)}) == {"1": [None, None, 2.0, "a", True, None]}
