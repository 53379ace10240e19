"""A hub's commands for months: forget and service."""

import json

import pytest

from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import data_of, experiment_of, hub_of, participation, sites_of
from tests.deploy.nvflare.made import site_kit

DATA = data_of(3)


@pytest.fixture
def hub(tmp_path):
    made = hub_of(tmp_path / "hub", experiment_of(["local"]), DATA)
    run_hub(made, InProcess(sites_of(tmp_path, DATA)))
    return made


def test_the_cost_is_said_and_asked_for_before_anything_changes(hub, commandline, monkeypatch):
    before = {path: path.read_bytes() for path in hub.rglob("*") if path.is_file()}
    code, out, err = commandline("hub", "forget", "site-3", hub)
    assert code == 1
    assert "t/local/seed0: from its beginning, 4 rounds" in out
    assert "to be repeated: 4 rounds, which took" in out
    assert "repeat the command with --yes" in err
    assert {path: path.read_bytes() for path in before} == before
    code, out, err = commandline("hub", "forget", "site-3", hub, "--yes", "--json")
    assert code == 0, err
    values = json.loads(out)
    assert (values["rounds"], values["runs"]) == (4, {"t/local/seed0": {"from": 0, "rounds": 4}})
    assert participation(hub) == []
    assert HubConfig.load(hub).left == ("site-3",)
    events = [json.loads(line) for line in (hub / "events.jsonl").read_text().splitlines()]
    assert [line["site"] for line in events if line["event"] == "forgotten"] == ["site-3"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("east", "hub"), "there is no site 'east'"), (("site-1", "absent"), "hub init"), (("", "hub"), "no site ''")],
)
def test_one_clear_line(hub, commandline, monkeypatch, arguments, words):
    monkeypatch.chdir(hub.parent)
    code, _, err = commandline("hub", "forget", *arguments, "--yes")
    assert (code, err.count("\n")) == (1, 1)
    assert words in err


def test_a_service_needs_the_kits_of_hub_and_lead(hub, tmp_path, commandline):
    kit = site_kit(tmp_path / "kit")
    code, _, err = commandline("hub", "service", hub, "--kit", kit, "--admin", kit)
    assert (code, "a hub's is needed here" in err) == (1, True)
