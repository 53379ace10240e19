"""idiolect site approve, approvals, revoke: read, asked, pinned, listed; every bad input is one line."""

import json
from pathlib import Path

import pytest

from idiolect.deploy.site.approvals import Approvals
from idiolect.deploy.study import Study
from tests.deploy.nvflare.made import approved_kit, site_kit

TOML = """
name = "four"
[[cells]]
id = "c"
data = { name = "table", path = "elsewhere.csv", label = "outcome" }
model = { name = "mlr" }
rounds = 2
eval_every = 1
methods = [{ name = "fedavg" }]
"""


@pytest.fixture
def here(tmp_path, monkeypatch, commandline):
    """A hub's folder, and a site's kit that has approved nothing."""
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text(TOML)
    Path("own.csv").write_text("client,x,outcome\na,1,y\n")
    site_kit(tmp_path / "kit", "north")
    code, out, err = commandline("hub", "init", "hub", "e.toml", "--sites", "north,south", "--agree")
    assert code == 0, err
    study = Study.load(Path("hub/study.json"))
    assert f"digest {study.digest}" in out
    assert "idiolect site approve study.json KIT" in out
    code, out, err = commandline("site", "init", "kit", "own.csv")
    assert (code, "idiolect site approve study.json kit" in out) == (0, True), err
    return tmp_path


def test_approved_listed_revoked(here, commandline):
    study = Study.load(Path("hub/study.json"))
    assert "this site has approved no study" in commandline("site", "approvals", "kit")[1]
    code, out, err = commandline("site", "approve", "hub/study.json", "kit", "--yes")
    assert code == 0, err
    for told in (
        study.id,
        study.digest,
        "c/fedavg: method fedavg",
        "What the hub could infer: run 'idiolect site risk",
    ):
        assert told in out
    assert [one.digest for one in Approvals.load(here / "kit/idiolect").approved] == [study.digest]
    (row,) = json.loads(commandline("site", "approvals", "kit", "--json")[1])["approvals"]
    assert (row["study"], row["digest"], row["state"], row["rounds"], row["of"]) == (
        study.id,
        study.digest,
        "approved",
        0,
        2,
    )
    assert (
        study.digest[:12] in commandline("site", "approvals", "kit/idiolect")[1]
    )  # the folder is as good as the kit
    code, out, _ = commandline("site", "revoke", "kit", study.id)
    assert (code, f"revoked: {study.id}" in out) == (0, True)
    assert "revoked 20" in commandline("site", "approvals", "kit")[1]
    code, _, err = commandline("site", "revoke", "kit", study.id)
    assert (code, err.count("\n"), "is approved here; approved: none" in err) == (1, 1, True)


def test_nothing_is_approved_without_an_answer(here, commandline, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, out, err = commandline("site", "approve", "hub/study.json", "kit")
    assert (code, "then add --yes" in err, "method fedavg" in out) == (1, True, True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text))
    code, _, err = commandline("site", "approve", "hub/study.json", "kit")
    assert (code, "is not approved" in err, asked) == (1, True, ["Approve this study?"])
    assert not (here / "kit/idiolect/approvals.json").exists()
    monkeypatch.setattr("typer.confirm", lambda text, **_: True)
    assert commandline("site", "approve", "hub/study.json", "kit")[0] == 0
    assert (here / "kit/idiolect/approvals.json").is_file()


def test_a_change_at_the_hub_is_named_there_and_at_the_site(here, commandline):
    approved_kit(here / "kit", Path("hub/study.json"))
    code, out, _ = commandline("hub", "add", "hub", "east")
    new = Study.load(Path("hub/study.json"))
    assert (code, f"digest {new.digest}" in out, 'late: [] before, ["east"] now' in out) == (0, True, True)
    assert "each site approves it with" in out
    out = commandline("site", "approve", "hub/study.json", "kit", "--yes")[1]
    assert "A study of this id is approved here, with other content:" in out
    assert 'sites: ["north", "south"] before, ["north", "south", "east"] now' in out
    out = commandline("hub", "remove", "hub", "south")[1]
    assert 'left: [] before, ["south"] now' in out
    assert commandline("hub", "add", "hub", "west", "--json")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("approve", "absent.json", "kit", "--yes"), "absent.json"),
        (("approve", "own.csv", "kit", "--yes"), "own.csv is no study"),
        (("approve", "hub/hub.json", "kit", "--yes"), "hub/hub.json is no study"),
        (("approve", "hub/study.json", "absent", "--yes"), "no kit"),
        (("approve", "other.json", "kit", "--yes"), "site 'north' takes no part in study"),
        (("approvals", "absent"), "no kit"),
        (("revoke", "kit", "x"), "no study 'x' is approved here"),
        (("revoke", "absent", "x"), "no kit"),
    ],
)
def test_bad_inputs_are_one_line_and_leave_nothing(here, commandline, arguments, told):
    study = Study.load(Path("hub/study.json"))
    Study.model_validate({**study.model_dump(), "sites": ("a", "b")}).save(Path("other.json"))
    code, _, err = commandline("site", *arguments)
    assert (code != 0, err.count("\n")) == (True, 1), err
    assert told in err
    assert not (here / "kit/idiolect/approvals.json").exists()
