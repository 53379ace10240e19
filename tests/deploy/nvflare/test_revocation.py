"""A revoked certificate over the real engine: no call, no registration, and no message of a worker that runs."""

import json
import time
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from idiolect.core.errors import ConfigError
from idiolect.deploy.hub.revoked import revoke
from idiolect.deploy.hub.run import progress
from idiolect.deploy.nvflare import revocation
from idiolect.deploy.nvflare.kits import HUB_FOLDER, Kit
from idiolect.deploy.nvflare.local_federation import kits_here, supervised
from idiolect.deploy.nvflare.processes import start, stop
from idiolect.deploy.nvflare.revocation import ENGINE, enforce
from idiolect.deploy.nvflare.session import session
from idiolect.deploy.this_machine import prepare
from tests.deploy.federation import data_of, experiment_of, hub_of, participation

DATA = data_of()


def kit_of(folder: Path) -> Kit:
    folder.mkdir()
    return Kit(folder, "server", "localhost", "localhost", 1, "localhost")


def test_a_hub_that_starts_reads_the_list_and_keeps_what_was_on_it(tmp_path: Path) -> None:
    hub, kit = hub_of(tmp_path / "hub", experiment_of(["fedavg"]), DATA), kit_of(tmp_path / "kit")
    assert enforce(hub, kit) == []
    assert not (kit.folder / ENGINE).exists()
    revoke(hub, "site-1")
    (kit.folder / ENGINE).write_text('{"disabled_clients": ["other"]}')
    assert enforce(hub, kit) == ["site-1"]
    assert json.loads((kit.folder / ENGINE).read_text()) == {"disabled_clients": ["other", "site-1"]}


def test_a_hub_that_runs_needs_the_lead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub, kit = hub_of(tmp_path / "hub", experiment_of(["fedavg"]), DATA), kit_of(tmp_path / "kit")
    revoke(hub, "site-1")
    monkeypatch.setattr(revocation, "running", lambda _: 1)
    with pytest.raises(ConfigError, match="--admin"):
        enforce(hub, kit)


@pytest.mark.second
def test_a_revoked_site_is_out_at_once_and_does_not_come_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    # A round takes 0.03 s, and the revocation comes in the third second.
    names = prepare(out, experiment_of(["fedavg"], rounds=400, eval_every=400), DATA, deadline=10.0)
    kits = kits_here(out, names, DATA)
    running, revoked_at = [kits.hub, *kits.sites.values()], []

    def seen(folder: Path) -> tuple[int, int]:
        done = progress(folder)
        if done[0] >= 3 and not revoked_at:
            assert revoke(out, "site-3", "its key was lost")
            assert enforce(out, kits.hub, kits.lead) == ["site-3"]
            revoked_at.append(progress(folder)[0])
        return done

    try:
        start(kits.hub, {HUB_FOLDER: str(out)})
        for kit in kits.sites.values():
            start(kit)
        watch = supervised(kits, out, names, lambda _: None)
        status = watch.sleep
        watch.sleep = lambda seconds: (seen(out), status(seconds))[1]
        jobs = watch.run()
        stop(kits.sites["site-3"])
        start(kits.sites["site-3"])
        with session(kits.lead) as opened:
            end = time.monotonic() + 12
            while time.monotonic() < end:
                assert "site-3" not in opened.status().sites
                time.sleep(1)
            assert {"site-1", "site-2"} <= {*opened.status().sites}
    finally:
        for kit in running:
            stop(kit)
    lines = participation(out)
    last = [line for line in lines if line["round"] > revoked_at[0] + 1]
    assert jobs == 1
    assert len(last) > 10
    assert all("site-3" not in line["answered"] for line in last)
    assert all("was revoked" in line["missing"]["site-3"] for line in last)
    log = "".join(path.read_text() for path in kits.hub.folder.glob("log.txt*"))
    assert "Reject disabled client registration: site-3" in log
    assert "unauthenticated" in log
