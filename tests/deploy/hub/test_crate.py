"""The folder of an audit: a report in words, copies that match their hashes, and a valid RO-Crate."""

import hashlib
import json
import warnings

import pytest

pytest.importorskip("rocrate")

from idiolect.core.errors import ConfigError
from idiolect.deploy.hub import crate
from idiolect.deploy.hub.crate import markdown, page, report, write_audit
from idiolect.deploy.hub.journal import FORGOTTEN, Participation
from idiolect.deploy.hub.revoked import revoke
from tests.deploy.federation import data_of, experiment_of, hub_of
from tests.deploy.hub.test_status import line

EVIL = "<script>alert(1)</script> | [x](http://evil) # *"


@pytest.fixture
def hub(tmp_path):
    folder = hub_of(tmp_path / "hub", experiment_of(["fedavg"]), data_of())
    log = Participation(folder)
    log.write(line(0, ["site-1", "site-2"], {"site-3": EVIL}))
    log.write(line(1, ["site-1"], {"site-2": "late", "site-3": "NaN"}, {"site-3": "NaN"}))
    revoke(folder, "site-3", "key lost")
    (folder / "study.json").write_text(json.dumps({"id": "t-00000001", "runs": [{"run": "r"}]}))
    return folder


def test_the_crate_has_what_the_specification_asks_for(hub, tmp_path):
    """RO-Crate 1.1: the metadata descriptor, the root data entity with its properties, and each file."""
    out = tmp_path / "audit"
    write_audit(hub, out)
    graph = {one["@id"]: one for one in json.loads((out / "ro-crate-metadata.json").read_text())["@graph"]}
    descriptor, root = graph["ro-crate-metadata.json"], graph["./"]
    assert descriptor["@type"] == "CreativeWork"
    assert descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["@type"] == "Dataset"
    assert all(root[name] for name in ("name", "description", "datePublished", "license"))
    assert graph[root["license"]["@id"]]["@type"] == "CreativeWork"
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {part["@id"] for part in root["hasPart"]} == files - {"ro-crate-metadata.json"}
    for part in root["hasPart"]:
        content, entity = (out / part["@id"]).read_bytes(), graph[part["@id"]]
        assert entity["@type"] == "File"
        assert entity["sha256"] == hashlib.sha256(content).hexdigest()
        assert entity["contentSize"] == str(len(content))
    references = {
        value["@id"]
        for entity in graph.values()
        for values in entity.values()
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, dict)
    }
    assert {one for one in references if not one.startswith("http")} <= {*graph}
    assert graph["#training"]["startTime"] == "2026-11-01T00:00:00.000+00:00"


def test_the_library_reads_it(hub, tmp_path):
    from rocrate.rocrate import ROCrate

    write_audit(hub, tmp_path / "audit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = ROCrate(tmp_path / "audit")
    assert read.name == "Audit of the federated study t-00000001"
    assert len(read.data_entities) == len(list((tmp_path / "audit").rglob("*.*"))) - 1


def test_the_report_tells_the_story(hub, tmp_path):
    write_audit(hub, tmp_path / "audit")
    text = (tmp_path / "audit" / "report.md").read_text()
    for expected in (
        "# Audit of t-00000001",
        "from 2026-11-01 00:00:00 to 2026-11-01 00:00:01 UTC: 2 rounds in 1 runs",
        "No site has handed over its log",
        "| site-1 | 2026-11-01 00:00:00 | 2026-11-01 00:00:01 | 2 | 0 | 0 | takes part |",
        "| site-3 | - | - | 0 | 2 | 1 | revoked |",
        "- site-2: late (1)",
        "key lost",
        "planned run: r",
    ):
        assert expected in text, text


def test_the_report_tells_who_was_forgotten_and_the_audit_has_their_rounds(hub, tmp_path):
    line = {"run": "r", "start": 1, "round": 0, "job": 1, "cohort": ["site-2"], "answered": ["site-2"]}
    line |= {"forgotten": "site-2", "time": "2026-11-02T10:00:00+00:00"}
    rows = [line, {**line, "job": 2}, {**line, "round": 1}]  # the first round was played twice
    (hub / FORGOTTEN).write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_audit(hub, tmp_path / "audit")
    text = (tmp_path / "audit" / "report.md").read_text()
    assert "- site-2, 2026-11-02 10:00:00 UTC: 2 rounds of r were taken back\n" in text
    assert (tmp_path / "audit" / "hub" / FORGOTTEN).read_bytes() == (hub / FORGOTTEN).read_bytes()


def test_what_sites_say_is_no_markup(hub, tmp_path):
    sections = report(write_audit(hub, tmp_path / "audit"))
    assert "<script" not in page(sections)
    assert "<script" not in markdown(sections).replace("\\<", "")
    assert "[x](http" not in markdown(sections)
    assert "\n# " not in markdown(sections)[2:]


def test_long_lists_are_cut(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(crate, "LONGEST", 1)
    text = markdown(report(write_audit(hub, tmp_path / "audit")))
    assert "- and 2 more" in text


def test_a_folder_in_use_stays_as_it_is(hub, tmp_path, monkeypatch):
    out = tmp_path / "audit"
    out.mkdir()
    write_audit(hub, out)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ConfigError, match="is not empty: name a new folder"):
        write_audit(hub, out)
    with pytest.raises(ConfigError, match="no such folder"):
        write_audit(hub, tmp_path / "other", tmp_path / "absent")
    monkeypatch.setattr(crate, "_describe", lambda *_: (_ for _ in ()).throw(RuntimeError))
    with pytest.raises(RuntimeError):
        write_audit(hub, tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    monkeypatch.setattr(crate, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'idiolect\[audit\]'"):
        write_audit(hub, tmp_path / "other")
    assert out.stat().st_mode & 0o077 == 0 or all(path.stat().st_mode & 0o077 == 0 for path in out.iterdir())
