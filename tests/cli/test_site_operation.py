"""A site's commands for months: stop, status, leave, accept-changes, service."""

import json
from datetime import UTC, datetime

import pytest

from idiolect.deploy.messages import Message
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.site.rows import Rows
from idiolect.deploy.site.state import RunState
from tests.deploy.nvflare.made import site_kit

STUDY = "heart-0a1b2c3d"
RUN = "c/fedavg/seed0"


@pytest.fixture
def kit(tmp_path):
    made = site_kit(tmp_path / "north", "north", start=datetime.now(UTC))
    outbox = Outbox(made / "idiolect" / "sent.jsonl")
    for round in (0, 1):
        outbox.write("server", "round", Message(), run=RUN, round=round, study=STUDY)
    outbox.write("server", "round", Message({"error": "rows\nhave \x1b[31mchanged"}), run=RUN, round=2, study=STUDY)
    RunState(made / "idiolect" / "state" / STUDY, RUN).begin({})
    Rows("00" * 32, "ab", {}).save(made / "idiolect" / "state" / STUDY)
    return made


def test_status_has_all_that_an_administrator_asks(kit, commandline):
    code, out, err = commandline("site", "status", kit, "--json")
    assert (code, err) == (0, "")
    values = json.loads(out)
    (study,) = values.pop("studies")
    assert values == {
        "site": "north", "running": False, "watched": False, "certificate_days": 29, "certificate_problem": "",
    }  # fmt: skip
    assert (study["id"], study["runs"], study["left"]) == (STUDY, {RUN: 2}, False)
    assert study["last"]["round"] == 2
    assert "changed" in study["refusal"]["error"]
    code, out, _ = commandline("site", "status", kit)
    assert code == 0
    assert "site 'north' does not run" in out
    assert f"study {STUDY}: rounds {RUN}: 2" in out
    assert "29 more days" in out


def test_status_says_what_is_wrong_with_a_certificate(tmp_path, commandline):
    kit = site_kit(tmp_path / "old", "north", start=datetime(2020, 1, 1, tzinfo=UTC))
    code, out, _ = commandline("site", "status", kit)
    assert code == 0
    assert "expired on 2020-01-31" in out
    assert "no hub has asked for a study yet" in out
    assert json.loads(commandline("site", "status", kit, "--json")[1])["certificate_days"] is None


def test_stop_of_a_site_that_does_not_run(kit, commandline):
    assert commandline("site", "stop", kit)[:2] == (0, "it did not run\n")
    assert json.loads(commandline("site", "stop", kit, "--json")[1]) == {"stopped": False}


def test_who_leaves_says_what_becomes_of_the_states(kit, tmp_path, commandline):
    for options in ((), ("--delete", "--out", tmp_path / "kept")):
        code, _, err = commandline("site", "leave", kit, STUDY, *options)
        assert (code, err.count("\n")) == (1, 1)
        assert "either --out FOLDER or --delete" in err
    code, out, err = commandline("site", "leave", kit, STUDY, "--out", tmp_path / "kept")
    assert code == 0, err
    assert "idiolect hub forget" in out
    assert (tmp_path / "kept" / "state" / "c__fedavg__seed0" / "kept.msg").is_file()
    assert f"study {STUDY} (left)" in commandline("site", "status", kit)[1]


def test_what_is_missing_to_combine_is_one_line(kit, commandline):
    for options, reason in (((), "site init"), (("--kind", "mean"), "must be one of blend, portfolio")):
        code, out, err = commandline("site", "combine", kit, *options)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert reason in err


def test_a_change_of_rows_is_accepted(kit, commandline):
    code, out, _ = commandline("site", "accept-changes", kit, STUDY)
    assert (code, "at the next job" in out) == (0, True)
    code, _, err = commandline("site", "accept-changes", kit, "lung-0a1b2c3d")
    assert (code, f"it has {STUDY}" in err) == (1, True)


def test_a_unit_is_printed_or_written(kit, tmp_path, commandline):
    code, out, _ = commandline("site", "service", kit)
    assert code == 0
    assert f'"site" "run" "{kit}"' in out.replace("\n", "")
    code, out, _ = commandline("site", "service", kit, "-o", tmp_path / "a.service", "--json")
    assert (tmp_path / "a.service").read_text() == json.loads(out)["unit"]
    code, _, err = commandline("site", "service", kit, "-o", tmp_path / "absent" / "a.service")
    assert (code, err.count("\n")) == (1, 1)
