"""Exact unlearning: a hub that has forgotten a site stands where one stands that never had it."""

import json
import sqlite3

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.forget import FORGOTTEN, PLAN, check_forgotten, forget, plan_of
from idiolect.deploy.hub.journal import HubState
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.hub.supervised import supervised
from idiolect.deploy.messages import read_message
from idiolect.deploy.site.state import state_of
from idiolect.deploy.transport import InProcess
from idiolect.study.store.store import DATABASE, Store
from tests.deploy.federation import data_of, experiment_of, hub_of, kept_file, participation, scores_of, sites_of
from tests.deploy.hub.test_membership import Until

DATA = data_of(4)
RUN = "t/ditto/seed0"
NAME = RUN.replace("/", "__")


def states(folder, sites):
    """Bytes of the shared state and of each site's private one."""
    shared = HubState.load(folder / "hub" / "checkpoints" / f"{NAME}.hub", RUN)
    found = {("hub", leaf): vector.tobytes() for leaf, vector in shared.vectors.items()}
    for site in sites:
        kept = state_of(read_message(kept_file(folder / site, RUN)))
        found |= {(site, leaf): vector.tobytes() for leaf, vector in kept.items()}
    return found, shared


def same_scores(one, other, sites):
    mine, theirs = scores_of(one / "hub", RUN), scores_of(other / "hub", RUN)
    assert mine.keys() == theirs.keys()
    for key, scores in mine.items():
        np.testing.assert_array_equal(scores.loss[:sites], theirs[key].loss[:sites])


def run_of(folder, names, experiment, **settings):
    hub = hub_of(folder / "hub", experiment, DATA, sites=names, **settings)
    sites = InProcess(sites_of(folder, DATA))
    run_hub(hub, sites)
    return hub, sites


@pytest.fixture(scope="module")
def experiment():
    return experiment_of(["ditto", "local"], eval_every=2)


def test_a_run_is_repeated_from_its_beginning_as_if_the_site_had_never_been_there(tmp_path, experiment):
    hub, sites = run_of(tmp_path / "forgets", DATA.clients, experiment)
    for name in ("report.html", "table.csv", "segment.json"):
        (hub / name).write_text("x")
    (hub / "figures").mkdir()
    plan = plan_of(hub, "site-4")
    assert [(one.run, one.done, one.to) for one in plan.restarts] == [(RUN, 4, 0), ("t/local/seed0", 4, 0)]
    assert plan.rounds == 8
    assert plan.seconds == pytest.approx(sum(line["seconds"] for line in participation(hub)))
    assert not (hub / PLAN).exists()
    forget(hub, plan)
    kept = {path.name for path in hub.iterdir()}
    assert not kept & {"report.html", "table.csv", "segment.json", "figures", "models", PLAN}
    assert not list((hub / "checkpoints").iterdir())
    assert participation(hub) == []
    lines = [json.loads(line) for line in (hub / FORGOTTEN).read_text().splitlines()]
    assert len(lines) == 8
    assert {*lines[0]} == {
        "run",
        "start",
        "round",
        "job",
        "cohort",
        "answered",
        "asked",
        "replies",
        "forgotten",
        "time",
    }
    db = sqlite3.connect(hub / DATABASE)
    assert db.execute("SELECT COUNT(*) FROM evaluations").fetchone() == (0,)
    run_hub(hub, sites)
    run_of(tmp_path / "never", DATA.clients[:3], experiment)
    mine, shared = states(tmp_path / "forgets", DATA.clients[:3])
    assert mine == states(tmp_path / "never", DATA.clients[:3])[0]
    assert list(shared.counts) == list(DATA.clients[:3])
    same_scores(tmp_path / "forgets", tmp_path / "never", 3)


@pytest.mark.second
def test_scores_have_the_names_of_the_sites_that_are_left_and_the_forgotten_one_s_is_in_lists_only(tmp_path):
    experiment = experiment_of(["fedavg"])
    hub, sites = run_of(tmp_path, DATA.clients, experiment)
    forget(hub, plan_of(hub, "site-2"))
    place = lambda: {path.name for path in hub.rglob("*") if path.is_file() and b"site-2" in path.read_bytes()}  # noqa: E731
    lists = {"hub.json", "study.json", FORGOTTEN, "received.jsonl"}
    assert {name for name in place() if not name.startswith("events.jsonl")} == lists
    run_hub(hub, sites)
    assert {name for name in place() if not name.startswith("events.jsonl")} == lists
    with Store(hub, create=False) as store:
        (row,) = store.runs()
        assert row.provenance["clients"] == ["site-1", "site-3", "site-4"]
        assert store.scores(row.id, 4, "global", "train").count.shape == (3,)


@pytest.mark.second
def test_no_byte_of_a_score_is_left_in_the_database(tmp_path, experiment):
    hub, _ = run_of(tmp_path, DATA.clients, experiment)
    db = sqlite3.connect(hub / DATABASE)
    blobs = [blob for (blob,) in db.execute("SELECT loss_by_client FROM evaluations")]
    db.close()
    held = lambda: b"".join(path.read_bytes() for path in hub.glob(f"{DATABASE}*"))  # noqa: E731
    assert blobs
    assert all(blob in held() for blob in blobs)
    forget(hub, plan_of(hub, "site-4"))
    assert not any(blob in held() for blob in blobs)


def late(folder, experiment):
    """site-4 joins after two rounds of four, and the run ends."""
    hub = hub_of(folder / "hub", experiment, DATA, sites=DATA.clients[:3])
    sites = InProcess(sites_of(folder, DATA))
    with pytest.raises(StoreError, match="died"):
        run_hub(hub, Until(sites, 2))
    HubConfig.load(hub).model_copy(update={"sites": DATA.clients}).save(hub)
    run_hub(hub, sites)
    return hub, sites


@pytest.mark.second
@pytest.mark.parametrize("from_beginning", [False, True])
def test_a_site_that_joined_late_costs_only_the_rounds_since(tmp_path, from_beginning):
    experiment = experiment_of(["ditto"], eval_every=2)
    hub, sites = late(tmp_path / "late", experiment)
    assert [len(line["answered"]) for line in participation(hub)] == [3, 3, 4, 4]
    plan = plan_of(hub, "site-4", from_beginning)
    assert [(one.done, one.to) for one in plan.restarts] == [(4, 0 if from_beginning else 2)]
    forget(hub, plan)
    assert len(participation(hub)) == (0 if from_beginning else 2)
    assert not any("site-4" in json.dumps(line) for line in participation(hub))
    for path in (hub / "checkpoints").iterdir():
        assert b"site-4" not in path.read_bytes()
    run_hub(hub, sites)
    run_of(tmp_path / "never", DATA.clients[:3], experiment)
    assert states(tmp_path / "late", DATA.clients[:3])[0] == states(tmp_path / "never", DATA.clients[:3])[0]
    same_scores(tmp_path / "late", tmp_path / "never", 3)


def test_a_site_without_the_state_of_then_says_what_to_do(tmp_path):
    experiment = experiment_of(["ditto"], eval_every=2)
    hub, sites = late(tmp_path, experiment)
    forget(hub, plan_of(hub, "site-4"))
    for path in kept_file(tmp_path / "site-1", RUN).parent.glob("*-*.msg"):
        path.unlink()
    run_hub(hub, sites)
    assert "idiolect hub forget --from-beginning" in participation(hub)[2]["missing"]["site-1"]


def test_an_interrupted_one_is_finished_by_the_same_command_and_nothing_runs_before(
    tmp_path, experiment, monkeypatch
):
    hub, sites = run_of(tmp_path, DATA.clients, experiment)
    plan = plan_of(hub, "site-4")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("idiolect.deploy.hub.forget.shutil.rmtree", full)
    (hub / "models").mkdir()
    with pytest.raises(StoreError, match="No space left on device; repeat the command"):
        forget(hub, plan)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="was interrupted; finish it: idiolect hub forget site-4"):
        check_forgotten(hub)
    with pytest.raises(ConfigError, match="forgetting 'site-4' was interrupted"):
        plan_of(hub, "site-3")
    again = plan_of(hub, "site-4")
    assert again == plan
    forget(hub, again)
    check_forgotten(hub)
    assert participation(hub) == []
    assert len((hub / FORGOTTEN).read_text().splitlines()) == 8
    run_hub(hub, sites)
    assert HubConfig.load(hub).starts == {RUN: 1, "t/local/seed0": 1}


@pytest.mark.second
def test_two_sites_are_forgotten_one_after_the_other(tmp_path, experiment):
    hub, sites = run_of(tmp_path / "two", DATA.clients, experiment)
    for site in ("site-4", "site-3"):
        forget(hub, plan_of(hub, site))
        run_hub(hub, sites)
    run_of(tmp_path / "never", DATA.clients[:2], experiment)
    assert states(tmp_path / "two", DATA.clients[:2])[0] == states(tmp_path / "never", DATA.clients[:2])[0]


def test_what_cannot_be_forgotten_is_one_line_and_changes_nothing(tmp_path, experiment):
    hub = hub_of(tmp_path / "hub", experiment, DATA, quorum=4)
    before = {path: path.read_bytes() for path in hub.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match="there is no site 'east'"):
        plan_of(hub, "east")
    with pytest.raises(ConfigError, match="a round needs 4 answers"):
        forget(hub, plan_of(hub, "site-4"))
    with supervised(hub), pytest.raises(StoreError, match="another 'idiolect hub run' works in"):
        forget(hub, plan_of(hub, "site-4"))
    after = {path: path.read_bytes() for path in hub.rglob("*") if path.is_file() and path.stat().st_size}
    assert after == before


def test_a_schema_that_the_site_has_helped_to_agree_on_goes_too(tmp_path, experiment):
    hub, _ = run_of(tmp_path, DATA.clients, experiment, agree=True, agreed_by=DATA.clients)
    (hub / "schema.json").write_text("{}")
    forget(hub, plan_of(hub, "site-4"))
    config = HubConfig.load(hub)
    assert (config.kind, config.agreed_by) == (None, ())
    assert not (hub / "schema.json").exists()
    assert not list(hub.glob(f"{DATABASE}*"))
