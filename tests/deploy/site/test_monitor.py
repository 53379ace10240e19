"""What a site notes of each call, its alerts, and its metrics."""

import json
import sys
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from idiolect.deploy.alerts import Alert
from idiolect.deploy.events import FILE, EventLog
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.processes import free_port
from idiolect.deploy.site import monitor as module
from idiolect.deploy.site.monitor import SiteMonitor, answered
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import data_of, experiment_of, hub_of, sites_of

KEEP = "import sys; open('alerts', 'a').write(sys.stdin.read())"
ALERT = Alert(command=(sys.executable, "-c", KEEP))


def lines(folder, name=FILE):
    path = folder / name
    return [json.loads(text) for text in path.read_text().splitlines()] if path.is_file() else []


def test_each_call_of_a_run_is_an_event(tmp_path):
    data = data_of()
    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"], rounds=2, eval_every=2), data)
    sites = sites_of(tmp_path / "sites", data)
    sites["site-1"].expires = "2030-01-01T00:00:00+00:00"
    run_hub(hub, InProcess(sites))
    found = lines(tmp_path / "sites" / "site-1")
    tasks = ["hello", "join", "begin", "evaluate", "round", "round", "evaluate", "finish"]
    assert [line["task"] for line in found] == tasks
    assert [line["event"] for line in found] == ["answered"] * 7 + ["run ended"]
    assert [line["round"] for line in found if line["task"] == "round"] == [1, 2]
    assert all(line["time"].endswith("+00:00") for line in found)
    said = json.loads((hub / "greetings.json").read_text())
    assert (said["site-1"]["expires"], said["site-2"]["expires"]) == ("2030-01-01T00:00:00+00:00", "")
    events = lines(hub)
    assert [line["event"] for line in events] == ["run started", "round", "round", "run ended"]
    assert events[1]["answered"] == ["site-1", "site-2", "site-3"]


def test_a_refused_call_is_a_warning_whatever_its_header_holds(tmp_path):
    site = sites_of(tmp_path, data_of())["site-1"]
    for header in ({"task": "x" * 999, "run": ["a"], "round": "b"}, {}, Request(task="join").message().header):
        site.answer(Message(header), "hub", None)
    found = lines(tmp_path / "site-1")
    assert [(line["event"], line["level"]) for line in found] == [("refused", "warning")] * 3
    assert len(found[0]["task"]) == 40


def test_alerts_and_metrics_of_a_site(tmp_path, monkeypatch):
    pytest.importorskip("prometheus_client")
    monkeypatch.setattr(module, "LEAST_DISK", 1 << 60)
    soon = datetime.now(UTC) + timedelta(days=12.5)
    monitor, port = SiteMonitor(tmp_path, ALERT, soon), free_port()
    worker, other = (
        EventLog(tmp_path, "site"),
        '{"event": "refused", "process": 1, "text": "the hub asks too much"}\n',
    )
    with monitor.watching(port):
        with (tmp_path / FILE).open("a") as file:
            file.write(other)
        call = Request(task="round", run="r", round=4).message()
        answered(worker, "server", call, Message({}, {}), 0.25)
        answered(worker, "server", call, Message({"error": "cannot write: No space left on device"}), 0.25)
        monitor.look()
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    for expected in (
        "idiolect_site_round 5.0",
        "idiolect_site_round_seconds 0.25",
        "idiolect_site_answered_total 1.0",
        "idiolect_site_refused_total 1.0",
        "idiolect_site_certificate_days 12.",
    ):
        assert expected in text, text
    told = sorted(line["event"] for line in lines(tmp_path, "alerts"))
    assert told == ["certificate expires", "disk full", "refused"]
    assert [line["event"] for line in lines(tmp_path)][-1] == "stopped"


def test_a_site_that_fails_says_so(tmp_path):
    with pytest.raises(ValueError, match="ended"), SiteMonitor(tmp_path, ALERT, None).watching():
        raise ValueError("ended with status 1")
    assert lines(tmp_path)[-1]["event"] == "run failed"
    assert [line["event"] for line in lines(tmp_path, "alerts")] == ["run failed"]
