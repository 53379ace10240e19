import gzip
import json

import pytest

from idiolect.core.errors import StoreError
from idiolect.report.raw import write_csv
from idiolect.report.view.as_json import to_dict
from idiolect.report.view.folder import new_clients, view_of_folder, view_of_folders
from idiolect.report.view.from_store import view_of
from idiolect.study.search.launch import SWEPT
from idiolect.study.store.store import Store
from tests.report.html.made import compared, data_of, page_of
from tests.report.stores import experiment, finished


def test_a_run_folder_is_read_as_its_results_are(tmp_path):
    results = compared(tmp_path)
    assert page_of(view_of_folder(tmp_path)) == data_of(results)


def test_a_compressed_report_is_read_and_a_damaged_one_named(tmp_path):
    data = to_dict(view_of(compared(tmp_path / "runs"), "idiolect compare --data toy"))
    (tmp_path / "report.json.gz").write_bytes(gzip.compress(json.dumps(data).encode()))
    assert to_dict(view_of_folder(tmp_path))["headline"] == data["headline"]
    packed = (tmp_path / "report.json.gz").read_bytes()
    for damaged in (packed[:-20], b"no archive", packed[:50] + b"\0" * 20 + packed[70:]):
        (tmp_path / "report.json.gz").write_bytes(damaged)
        with pytest.raises(StoreError, match=r"cannot read .*report\.json\.gz"):
            view_of_folder(tmp_path)


def test_several_folders_are_one_page(tmp_path):
    results = compared(tmp_path / "runs")
    (tmp_path / "files").mkdir()
    write_csv(results, tmp_path / "files" / "table.csv")
    data = page_of(view_of_folders([tmp_path / "runs", tmp_path / "files", tmp_path / "runs"]))
    assert data["title"] == "A toy; files"
    assert [cell["id"] for cell in data["cells"]] == ["0/cell0", "1/cell0"]
    assert [cell["title"] for cell in data["cells"]] == ["A toy: cell0", "files: cell0"]
    assert data["headline"] == "Of 2 comparisons: federate in 1, 1 inconclusive."


@pytest.mark.parametrize(
    ("name", "words"),
    [("nosuch", "no such folder"), ("file", "is a file; name the folder"), ("a\0b", "no such|null")],
)
def test_what_is_no_folder(tmp_path, name, words):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=words):
        view_of_folder(tmp_path / name)


@pytest.mark.parametrize("depth", [101, 100_000])
def test_a_report_json_may_not_be_nested_without_end(tmp_path, depth):
    """One line instead of a traceback, just as for all other JSON from outside."""
    (tmp_path / "report.json").write_text("[" * depth + "]" * depth)
    with pytest.raises(StoreError, match=r"report\.json: ValueError: .* nested too deeply"):
        view_of_folder(tmp_path)
    assert new_clients(tmp_path) is None


NAN = float("nan")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
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


def test_every_setting_and_the_chosen_ones_on_test_data(swept):
    data = page_of(view_of_folder(swept))
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
    assert (data["decision"], data["headline"][:13]) == ("inconclusive", "Inconclusive:")


def test_an_unfinished_sweep_says_so(tmp_path):
    store = Store(tmp_path)
    store.set_fact("experiment", experiment([{"name": "fedavg"}], name="sweep-toy").model_dump(mode="json"))
    store.set_fact(SWEPT, [])
    data = page_of(view_of_folder(tmp_path))
    assert "The sweep is not finished: nothing is chosen yet, and no setting is shown." in data["missing"]
    assert data["cells"][0]["sweep"] is None
