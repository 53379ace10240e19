"""An audit compares what sites sent with what the hub received, and tells every difference."""

import json
import shutil

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.hub.audit import audit_of, copied_files, site_logs
from idiolect.deploy.hub.received import FILE
from idiolect.deploy.hub.revoked import revoke
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import append_line, lines_of
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import Silent, data_of, experiment_of, hub_of, sites_of

RUN = "t/fedavg/seed0"
CALLS = 9
"""Of each site: hello, join, begin, three evaluations, two rounds, finish."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder, data = tmp_path_factory.mktemp("audit"), data_of()
    hub = hub_of(folder / "hub", experiment_of(["fedavg"], rounds=2, eval_every=1), data)
    run_hub(hub, Silent(InProcess(sites_of(folder / "sites", data)), {(RUN, 1): ["site-2"]}))
    return folder


@pytest.fixture
def folder(ran, tmp_path):
    shutil.copytree(ran, tmp_path / "x")
    return tmp_path / "x"


def changed(path, change):
    """Rewrite a file of lines. change: line -> the line that replaces it, None to leave it out."""
    lines = [new for line in lines_of(path) if (new := change(line)) is not None]
    path.unlink()
    for line in lines:
        append_line(path, line)


def test_logs_of_an_honest_run_are_equal(folder):
    audit = audit_of(folder / "hub", folder / "sites")
    assert audit.differences == []
    assert {site: one.equal for site, one in audit.sites.items()} == {
        "site-1": CALLS,
        "site-2": CALLS,  # one of them did not come
        "site-3": CALLS,
    }
    one, two = audit.sites["site-1"], audit.sites["site-2"]
    assert (one.rounds, two.rounds, dict(two.missing)) == (2, 1, {"silent": 1})
    assert one.sent["round"] == one.received["round"] == (2, one.received["round"][1])
    assert one.sent["round"][1] > 0
    assert two.sent["round"][0] == 1
    assert [of["terms"]["run"] for of in one.terms.values()] == [RUN]
    assert one.vectors
    assert audit.first <= one.first <= one.last <= audit.last
    assert audit.rounds == {RUN: 2}


def hashed(line):
    return {**line, "sha256": "0" * 64} if line.get("task") == "round" and line.get("round") == 0 else line


def header(line):
    scores = line.get("header", {}).get("scores") if line.get("task") == "evaluate" else None
    return {**line, "header": {"scores": {}}} if scores and line["round"] == 2 else line


def left_out(line):
    return None if line.get("task") == "round" and line.get("round") == 0 else line


@pytest.mark.parametrize(
    ("where", "change", "kind", "words"),
    [
        ("site", hashed, "other content", "sha256 000"),
        ("site", header, "other content", "the headers differ"),
        ("site", left_out, "not sent", "not in the site's log"),
        ("hub", left_out, "not received", "no record"),
        (
            "hub",
            lambda line: {**line, "bytes": 1} if line["task"] == "round" and "bytes" in line else line,
            "other content",
            "bytes",
        ),
    ],
)
def test_every_change_of_a_log_is_a_difference(folder, where, change, kind, words):
    path = folder / "sites" / "site-1" / "sent.jsonl" if where == "site" else folder / "hub" / FILE
    only_first = lambda line: change(line) if where == "site" or line["site"] == "site-1" else line  # noqa: E731
    changed(path, only_first)
    differences = audit_of(folder / "hub", folder / "sites").differences
    assert {(one.site, one.kind) for one in differences} == {("site-1", kind)}
    assert all(words in one.line for one in differences)


def test_a_late_answer_was_sent_and_not_received(folder):
    changed(
        folder / "hub" / FILE,
        lambda line: (
            {key: value for key, value in line.items() if key not in ("sha256", "bytes", "header_sha256")}
            | {"error": "no answer within 5 s"}
            if (line["site"], line["task"], line["round"]) == ("site-3", "round", 1)
            else line
        ),
    )
    (only,) = audit_of(folder / "hub", folder / "sites").differences
    assert (only.site, only.kind) == ("site-3", "not received")
    assert "no answer within 5 s" in only.line


def test_sites_hand_over_their_logs_or_do_not(folder, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    with pytest.raises(ConfigError, match=r"holds no SITE/sent\.jsonl"):
        audit_of(folder / "hub", logs)
    shutil.copy(folder / "sites" / "site-2" / "sent.jsonl", logs / "site-2.jsonl")
    assert {*site_logs(logs, ["site-1", "site-2"])} == {"site-2"}
    audit = audit_of(folder / "hub", logs)
    assert [site for site, one in audit.sites.items() if one.handed] == ["site-2"]
    assert audit.sites["site-1"].sent == {}
    assert audit.sites["site-1"].received["round"][0] == 2
    with pytest.raises(ConfigError, match="no such folder"):
        audit_of(folder / "hub", tmp_path / "absent")
    with pytest.raises(ConfigError, match="hub init"):
        audit_of(tmp_path, None)


def test_what_is_copied_and_what_is_told_of_revocation(folder):
    revoke(folder / "hub", "site-3", "key lost")
    (folder / "hub" / "events.jsonl.1").write_text("")
    study = {"id": "t-1", "runs": []}
    (folder / "hub" / "study.json").write_text(json.dumps(study))
    for site, approved in {"site-1": study, "site-2": {**study, "rounds": 9}}.items():
        entry = {"digest": "", "time": "2026-11-01T00:00:00.000+00:00", "revoked": "", "study": approved}
        (folder / "sites" / site / "approvals.json").write_text(json.dumps({"version": 1, "approved": [entry]}))
    (folder / "sites" / "site-3" / "approvals.json").write_text("{}")
    names = list(copied_files(folder / "hub", folder / "sites", ["site-1", "site-2"]))
    assert names.index("hub/events.jsonl.1") < names.index("hub/events.jsonl")
    assert {"hub/hub.json", "hub/received.jsonl", "hub/revoked.json", "sites/site-1/sent.jsonl"} <= {*names}
    assert "sites/site-1/approvals.json" in names
    assert not any("checkpoint" in name or "state" in name or "models" in name for name in names)
    audit = audit_of(folder / "hub", folder / "sites")
    assert [one["name"] for one in audit.revoked] == ["site-3"]
    assert audit.approvals == {
        "site-1": ["approved t-1 at 2026-11-01T00:00:00 UTC: the hub's study"],
        "site-2": ["approved t-1 at 2026-11-01T00:00:00 UTC: another content than the hub's study"],
        "site-3": ["approvals.json cannot be read"],
    }
    (folder / "hub" / "study.json").write_text("{")
    with pytest.raises(StoreError, match=r"cannot read .*study\.json"):
        audit_of(folder / "hub", None)
