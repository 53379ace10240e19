"""The list of revoked sites: a hash that notices changes, and sites that are called no more."""

import json

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.calls import Call
from idiolect.deploy.hub.revoked import FILE, is_revoked, refusals, revocations, revoke, revoked_names
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import data_of, experiment_of, hub_of, participation, sites_of


@pytest.fixture
def hub(tmp_path):
    return hub_of(tmp_path / "hub", experiment_of(["fedavg"]), data_of())


def test_a_site_is_revoked_once(hub):
    assert (revocations(hub), is_revoked(hub, "site-1")) == ([], False)
    assert revoke(hub, "site-1", "key lost")
    assert revoke(hub, "site-2")
    assert not revoke(hub, "site-1")
    assert [(one["name"], one["reason"]) for one in revocations(hub)] == [("site-1", "key lost"), ("site-2", "")]
    assert revoked_names(hub) == {"site-1", "site-2"}
    assert is_revoked(hub, "site-1")
    with pytest.raises(ConfigError, match="there is no site 'west'"):
        revoke(hub, "west")
    assert "its certificate was revoked on 20" in refusals(hub)["site-1"]


def test_a_run_continues_without_a_site_that_is_revoked_in_its_middle(tmp_path):
    """A round needs two answers of the three sites, and of the two that are left."""
    data = data_of()
    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"]), data, quorum=2)

    class Revoking(InProcess):
        def call(self, round, messages, *, deadline):
            if round == 2:
                revoke(hub, "site-3")
            return super().call(round, messages, deadline=deadline)

    run_hub(hub, Revoking(sites_of(tmp_path / "sites", data)))
    answered = [(line["round"], len(line["answered"])) for line in participation(hub)]
    assert answered == [(0, 3), (1, 3), (2, 2), (3, 2)]
    assert "its certificate was revoked" in participation(hub)[-1]["missing"]["site-3"]


@pytest.mark.parametrize("change", ["name", "cut", "empty", "kind"])
def test_a_list_that_was_changed_is_refused(hub, change):
    revoke(hub, "site-1")
    path = hub / FILE
    text = path.read_text()
    content = {
        "name": text.replace("site-1", "site-2"),
        "cut": text[:-5],
        "empty": json.dumps({**json.loads(text), "revoked": []}),
        "kind": "[]",
    }
    path.write_text(content[change])
    with pytest.raises(StoreError, match="restore it from a backup"):
        revoked_names(hub)
    with pytest.raises(StoreError):
        refusals(hub)
    assert not is_revoked(hub, "site-1")


def test_a_site_that_is_revoked_in_the_middle_of_a_job_is_called_no_more(hub):
    class Site:
        calls = 0

        def answer(self, message, caller, peer):
            Site.calls += 1
            return Message({"ok": True})

    call = Call(InProcess({"site-1": Site()}), 1, revoked=lambda: refusals(hub))
    request = {"site-1": Request(task="hello")}
    assert {*call(request, round=0, deadline=5).replies} == {"site-1"}
    revoke(hub, "site-1")
    got = call(request, round=0, deadline=5)
    assert (got.replies, Site.calls) == ({}, 1)
    assert "its certificate was revoked" in got.missing["site-1"]
