import pytest

from idiolect.report.html.payload import payload_of
from idiolect.report.html.read import whole_of_folder
from idiolect.study.search.launch import SWEPT
from idiolect.study.store.store import Store
from tests.report.stores import experiment, finished

NAN = float("nan")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """FedAvg with two rates, Local with one; the test scores are of the chosen settings alone."""
    folder = tmp_path_factory.mktemp("sweep")
    store, exp = Store(folder), experiment([{"name": "fedavg"}, {"name": "local"}], name="sweep-toy")
    tried = []
    for method, model, rate, score in (
        *(("fedavg", "global", 0.1, 0.6), ("fedavg", "global", 0.5, 0.7), ("local", "local", 0.1, 0.8)),
    ):
        label = f"{method} rate={rate}"
        chosen = score > 0.6
        scores = [score, 0.01, 0.05, 2]
        one = {"method": method, "label": label, "values": {"rate": rate}, "rounds": 20, "chosen": chosen}
        tried.append({**one, "failures": [], "validation": scores, "test": scores if chosen else None})
        cell = exp.cells[0].model_copy(
            update={"methods": (exp.cells[0].method(method).model_copy(update={"label": label}),)}
        )
        one = exp.model_copy(update={"cells": (cell,)})
        for seed in (0, 1):
            splits = ("validation", "test") if chosen else ("validation",)
            finished(store, one, "cell0", label, seed, {20: {model: [score] * 3 + [NAN]}}, splits=splits)
    store.set_fact("experiment", exp.model_dump(mode="json"))
    store.set_fact("options", {"command": "idiolect sweep --data toy"})
    store.set_fact(SWEPT, tried)
    return folder


def test_every_setting_and_the_chosen_ones_on_test_data(folder):
    data = payload_of(whole_of_folder(folder))
    cell = data["cells"][0]
    assert data["title"] == "Sweep: sweep-toy"
    assert data["command"] == "idiolect sweep --data toy"
    assert [row["cells"][0]["text"] for row in cell["table"]["rows"]] == ["fedavg rate=0.5", "local rate=0.1"]
    assert [entry["title"] for entry in cell["methods"]] == ["FedAvg", "Local"]
    assert [(run["method"], run["values"], run["chosen"]) for run in cell["sweep"]["runs"]] == [
        *(("method0", [0.1], False), ("method0", [0.5], True), ("method1", [0.1], True)),
    ]
    assert [row[1] for row in cell["tables"][0]["rows"]] == ["rate=0.1", "rate=0.5", "rate=0.1"]
    assert cell["tables"][0]["rows"][0][4] == "—"
    assert data["answer"][0].startswith("Training alone scores best, 80.00")


def test_an_unfinished_sweep_says_so(tmp_path):
    store = Store(tmp_path)
    store.set_fact("experiment", experiment([{"name": "fedavg"}], name="sweep-toy").model_dump(mode="json"))
    store.set_fact(SWEPT, [])
    data = payload_of(whole_of_folder(tmp_path))
    assert "The sweep is not finished: nothing is chosen yet, and no setting is shown." in data["missing"]
    assert data["cells"][0]["sweep"] is None
