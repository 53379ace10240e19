"""Runs in MLflow, read back by its own client."""

import os
import re
import socket
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.trackers.tracking import export, trackers_of


def test_without_the_library_one_line_with_the_command(monkeypatch):
    modules = __import__("sys").modules
    monkeypatch.setitem(modules, "mlflow", None)
    monkeypatch.setitem(modules, "mlflow.exceptions", None)
    with pytest.raises(ConfigError, match=r"pip install 'idiolect\[mlflow\]'"):
        trackers_of("tracked", None)


@pytest.fixture(scope="module")
def sent(folder, tmp_path_factory):
    """(client, experiment id) after two exports into one folder."""
    pytest.importorskip("mlflow.tracking")
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("alembic")
    target = tmp_path_factory.mktemp("mlflow")
    for _ in range(2):
        assert export(folder, trackers_of(str(target), None), final=True) == 2
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{target / 'mlflow.db'}")
    return client, client.get_experiment_by_name("toy").experiment_id


def runs(sent):
    client, experiment = sent
    return {run.info.run_name: run for run in client.search_runs([experiment])}


def test_a_run_for_each_method_cell_and_seed_below_one_with_the_report(sent):
    found = runs(sent)
    assert {*found} == {"toy", "cell0/fedavg/seed0", "cell0/local/seed0"}
    parent = found["toy"].info.run_id
    fedavg, local = found["cell0/fedavg/seed0"], found["cell0/local/seed0"]
    assert fedavg.data.tags["mlflow.parentRunId"] == local.data.tags["mlflow.parentRunId"] == parent
    assert (fedavg.info.status, local.info.status) == ("FINISHED", "RUNNING")
    assert fedavg.data.params["method.rate"] == "0.1"
    assert fedavg.data.params["data.path"] == "own.csv"
    assert fedavg.data.tags["idiolect.method"] == "fedavg"
    assert fedavg.data.tags["idiolect.round"] == "20 method,test,train"


def test_numbers_by_round_and_none_twice(sent):
    client, _ = sent
    history = client.get_metric_history(runs(sent)["cell0/fedavg/seed0"].info.run_id, "test/global/accuracy")
    assert [(point.step, round(point.value, 3)) for point in history] == [(0, 0.1), (20, 0.725)]


def test_files_are_where_their_users_look_for_them(sent):
    client, _ = sent
    found = runs(sent)
    assert {file.path for file in client.list_artifacts(found["toy"].info.run_id)} == {"report.md", "figures"}
    place = Path(unquote(urlparse(found["cell0/fedavg/seed0"].info.artifact_uri).path))
    assert (place / "models" / "global.safetensors").read_bytes() == b"model"


def test_nothing_is_told_to_the_makers_of_the_library(sent):
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


@pytest.mark.second
def test_a_folder_that_was_made_for_nothing_goes_again(folder, tmp_path):
    pytest.importorskip("mlflow.tracking")
    (tmp_path / "notes.txt").write_text("kept")
    for to in (tmp_path / "a" / "b", tmp_path):
        (tracker,) = trackers_of(str(to), None)
        with pytest.raises(StoreError, match="no runs in"):
            export(tmp_path / "absent", [tracker], final=True)
        tracker.close()
        assert not (tmp_path / "a").exists()
        assert (tmp_path / "notes.txt").is_file()
    (tracker,) = trackers_of(str(tmp_path / "c"), None)
    export(folder, [tracker], final=False)
    tracker.close()
    assert (tmp_path / "c" / "mlflow.db").is_file()


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "https://127.0.0.1:9/ml", "http://127.0.0.1:99999"])
def test_a_server_that_is_not_there_is_one_line_at_once(address):
    """Without patience of MLflow's own, which tries for minutes."""
    pytest.importorskip("mlflow.tracking")
    began = time.monotonic()
    with pytest.raises(StoreError, match=rf"MLflow at {re.escape(address)}: no server answers \(") as caught:
        trackers_of(address, None)
    assert time.monotonic() - began < 10
    assert "\n" not in str(caught.value)


def test_a_server_that_goes_away_is_not_waited_for_long(folder, monkeypatch):
    pytest.importorskip("mlflow.tracking")
    for name in ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        (tracker,) = trackers_of(address, None)
        limits = {
            name: os.environ[name] for name in ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT")
        }
    assert limits == {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")  # the two tries more take seconds
    with pytest.raises(StoreError, match=f"MLflow at {address}: "):
        export(folder, [tracker], final=True)
