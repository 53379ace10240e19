"""Beside a run: alerts once each, a line at least every 10 s, and metrics that only this machine can read."""

import json
import socket
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from idiolect.core.errors import DataError, StoreError
from idiolect.deploy.alerts import Alert
from idiolect.deploy.events import FILE
from idiolect.deploy.headers import Request
from idiolect.deploy.hub import monitor as module
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.monitor import Monitor
from idiolect.deploy.hub.received import Now
from idiolect.deploy.nvflare.processes import free_port
from tests.deploy.federation import data_of, experiment_of, hub_of
from tests.deploy.hub.test_status import line

KEEP = "import sys; open('alerts', 'a').write(sys.stdin.read())"


@pytest.fixture
def hub(tmp_path):
    return hub_of(tmp_path / "hub", experiment_of(["fedavg"]), data_of())


def monitor_of(hub, said=None, **settings):
    config = HubConfig.load(hub)
    alert = Alert(command=(sys.executable, "-c", KEEP), missing=2)
    said = [] if said is None else said
    return Monitor(hub, config.model_copy(update={"alert": alert}), 4, said.append, **settings)


def alerts(hub):
    path = hub / "alerts"
    return [json.loads(text) for text in path.read_text().splitlines()] if path.is_file() else []


def kinds(hub):
    return [json.loads(text)["event"] for text in (hub / FILE).read_text().splitlines()]


def test_a_site_that_is_missing_is_one_alert_until_it_is_back(hub):
    log, absent = Participation(hub), {"site-2": "late"}
    log.write(line(0, ["site-1"], absent))
    with monitor_of(hub).watching():
        time.sleep(0.1)
    assert alerts(hub) == []
    monitor = monitor_of(hub)
    for round, missing in enumerate([absent, absent, {}, absent, absent], 1):
        log.write(line(round, ["site-1", *([] if missing else ["site-2"])], missing))
        monitor.look()
    monitor._alerter.close()
    assert [(one["event"], one["site"], one["rounds"]) for one in alerts(hub)] == [
        ("site missing", "site-2", 2),
        ("site missing", "site-2", 2),
    ]
    assert kinds(hub).count("site back") == 1
    again = monitor_of(hub)  # a command that starts again does not repeat what is known
    again.look()
    again._alerter.close()
    assert len(alerts(hub)) == 2


def test_what_the_job_writes_is_an_alert_and_what_this_process_writes_is_one_only(hub):
    monitor = monitor_of(hub)
    event = {"event": "refused", "process": 1, "site": "site-1", "text": "refused"}
    (hub / FILE).write_text(json.dumps(event) + "\n")
    monitor.events.write("rolled back", "rolled back to round 3", "warning")
    monitor.look()
    monitor.look()
    monitor._alerter.close()
    assert sorted(one["event"] for one in alerts(hub)) == ["refused", "rolled back"]


def test_a_full_disk_and_a_certificate_that_ends(hub, monkeypatch):
    monkeypatch.setattr(module, "LEAST_DISK", 1 << 60)
    monkeypatch.setattr(module, "RARELY", 0.0)
    said = []
    ends = {"hub": datetime.now(UTC) + timedelta(days=12.5), "lead": datetime.now(UTC) + timedelta(days=31)}
    monitor = monitor_of(hub, said, own=ends)
    monitor.look()
    monitor.look()
    monitor._alerter.close()
    found = {one["event"]: one for one in alerts(hub)}
    assert len(alerts(hub)) == 2
    assert found["certificate expires"]["of"] == "hub"
    assert found["disk full"]["free"] > 0
    assert any("the certificate of hub expires on" in text for text in said)


def test_a_line_at_least_every_ten_seconds_says_what_is_awaited(hub):
    said, now = [], [0.0]
    monitor = monitor_of(hub, said, clock=lambda: now[0])
    monitor.report("waiting for site-2")
    spoken = []
    for second in range(1, 60):
        now[0] = float(second)
        before = len(said)
        monitor.look()
        spoken += [second] * (len(said) - before)
    assert max(b - a for a, b in zip([0, *spoken], [*spoken, 60], strict=True)) <= 10
    assert said[1] == "0 of 4 rounds done; waiting for site-2 (8 s ago)"
    doing = Now(hub)
    ticket = {"job": 1, "call": 1, "round": 2, "seconds": 9.0}
    doing.write({"site-1": Request(task="round", run="r"), "site-3": Request(task="round", run="r")}, ticket, 30.0)
    assert (
        monitor.line() == "0 of 4 rounds done; r, round 3: waiting for site-1, site-3 to train (0 s of at most 30 s)"
    )
    doing.write({"site-1": Request(task="round", run="r")}, ticket, -1.0)
    assert "the hub is at work after 'round'" in monitor.line()


def test_metrics_are_for_this_machine_only(hub):
    pytest.importorskip("prometheus_client")
    Participation(hub).write(line(0, ["site-1"], {"site-2": "NaN"}, {"site-2": "NaN"}))
    port = free_port()
    monitor = monitor_of(hub, own={"hub": datetime.now(UTC) + timedelta(days=12.5)})
    with monitor.watching(port):
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        for expected in (
            "idiolect_rounds_done 1.0",
            "idiolect_rounds 4.0",
            "idiolect_round_seconds 0.5",
            'idiolect_missing_total{site="site-2"} 1.0',
            'idiolect_refused_total{site="site-2"} 1.0',
            'idiolect_bytes_total{direction="up"} 10.0',
            "idiolect_memory_bytes 0.0",
            'idiolect_certificate_days{of="hub"} 12.',
        ):
            assert expected in text, text
        other = socket.gethostbyname(socket.gethostname())
        if not other.startswith("127."):
            with pytest.raises(ConnectionError):
                socket.create_connection((other, port), timeout=2)
        taken = (
            rf"--metrics {port}: cannot listen on 127\.0\.0\.1:{port} \(Address already in use\); name another port"
        )
        with pytest.raises(StoreError, match=taken), monitor_of(hub).watching(port):
            pass
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2)


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (DataError("the sites disagree"), "run failed"),
        (StoreError("cannot write x: No space left on device"), "disk full"),
        (ValueError("patient 4711"), "run failed"),
        (KeyboardInterrupt(), "stopped"),
    ],
)
def test_how_a_run_ends_is_an_event(hub, error, event):
    with pytest.raises(type(error)), monitor_of(hub).watching():
        raise error
    assert kinds(hub)[-1] == event
    assert "4711" not in (hub / FILE).read_text()
    assert [one["event"] for one in alerts(hub)] == ([] if event == "stopped" else [event])
