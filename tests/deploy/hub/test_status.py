"""The state of a hub's folder, from its files only."""

import json
from datetime import UTC, datetime, timedelta

from idiolect.deploy.headers import Greeting
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.received import keep_greetings
from idiolect.deploy.hub.revoked import revoke
from idiolect.deploy.hub.status import VERSION, Ledger, certificates, days_left, status_of
from tests.deploy.federation import data_of, experiment_of, hub_of

AT = datetime(2026, 11, 1, tzinfo=UTC)


def line(round, answered, missing, refused=(), **more):
    return {
        "run": "r",
        "round": round,
        "start": f"2026-11-01T00:00:0{round}.000+00:00",
        "end": f"2026-11-01T00:00:0{round}.500+00:00",
        "answered": list(answered),
        "missing": dict(missing),
        "refused": dict(refused),
        "seconds": 0.5,
        "bytes_down": 20,
        "bytes_up": 10,
        "sites": {site: {"bytes_down": 10, "bytes_up": 5, "seconds": 0.25} for site in answered},
        **more,
    }


def test_days_until_a_certificate_ends():
    assert days_left("2026-11-11T12:00:00+00:00", AT) == 10.5
    assert days_left("2026-11-11T12:00:00", AT) == 10.5
    assert days_left(AT - timedelta(days=1), AT) == -1
    assert days_left("soon", AT) is None


def test_lines_add_up_and_are_read_once(tmp_path):
    log, ledger = Participation(tmp_path), Ledger(tmp_path)
    log.write(line(0, ["a", "b"], {}))
    log.write(line(1, ["a"], {"b": "late"}))
    assert len(ledger.read()) == 2
    log.write(line(2, ["a"], {"b": "NaN"}, {"b": "NaN"}))
    log.write({"other": 1})
    assert len(ledger.read()) == 1
    assert ledger.read() == []
    b = ledger.sites["b"]
    assert (b.rounds, b.missing, b.in_a_row, b.refused, b.reason) == (1, 2, 2, 1, "NaN")
    assert b.last == "2026-11-01T00:00:00.500+00:00"
    assert (ledger.sites["a"].bytes_up, ledger.sites["a"].seconds) == (15, 0.25)
    assert (ledger.bytes_down, ledger.bytes_up, ledger.done, ledger.rolled_back) == (60, 30, {"r": 3}, 0)
    log.write({"run": "r", "job": 1, "round": 3, "rollback": 2, "without": ["b"]})
    ledger.read()
    assert (ledger.done, ledger.rolled_back, ledger.last["round"]) == ({"r": 2}, 1, 2)
    log.write(line(3, ["b"], {}))
    ledger.read()
    assert (ledger.sites["b"].in_a_row, ledger.sites["b"].reason) == (0, "")


def test_the_fields_of_the_status(tmp_path):
    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"]), data_of())
    config, soon = HubConfig.load(hub), datetime.now(UTC) + timedelta(days=29)
    keep_greetings(hub, {"site-1": Greeting(name="site-1", protocol=1, version="9", expires=soon.isoformat())})
    revoke(hub, "site-3")
    Participation(hub).write(line(0, ["site-1"], {"site-2": "late"}))
    (hub / "study.json").write_text('{"id": "t-00000001"}')
    own = {"hub": datetime.now(UTC) + timedelta(days=31)}
    found = status_of(hub, config, 4, Ledger(hub), registered={"site-1": True}, jobs=["j"], own=own)
    assert json.loads(json.dumps(found)) == found
    assert {*found} == {
        *("version", "time", "study", "agreed", "sites", "jobs", "now", "rounds", "last_round", "bytes"),
        *("rolled_back", "certificates"),
    }
    assert (found["version"], found["study"], found["jobs"]) == (VERSION, "t-00000001", ["j"])
    first, second, third = (found["sites"][f"site-{n}"] for n in (1, 2, 3))
    assert (first["registered"], first["version"], first["rounds"]) == (True, "9", 1)
    assert (second["registered"], second["missing_in_a_row"], second["reason"]) == (False, 1, "late")
    assert (third["revoked"], first["revoked"]) == (True, False)
    assert found["rounds"] == {"done": 1, "total": 4, "runs": {"r": 1}}
    warned = {who: (round(of["days"]), of["warn"]) for who, of in found["certificates"].items()}
    assert warned == {"hub": (31, False), "site site-1": (29, True)}
    assert certificates(tmp_path, {}) == {}
    config.model_copy(update={"left": ("site-1",)}).save(hub)
    assert certificates(hub, {}) == {}  # nobody need renew it
    config.save(hub)
    asked_nobody = status_of(hub, config, 4, Ledger(hub))
    assert (asked_nobody["jobs"], asked_nobody["sites"]["site-1"]["registered"]) == (None, None)
