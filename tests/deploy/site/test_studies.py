import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.site.rows import FILE, Rows
from idiolect.deploy.site.studies import accept_changes, leave, studies_of
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import data_of, experiment_of, hub_of, participation, sites_of
from tests.deploy.hub.test_membership import Until
from tests.tiers import second

DATA = data_of(3)
RUN = "t/ditto/seed0"


@pytest.fixture
def began(tmp_path):
    """A hub after two rounds of four, and its sites."""
    hub, sites = hub_of(tmp_path / "hub", experiment_of(["ditto"]), DATA), sites_of(tmp_path, DATA)
    with pytest.raises(StoreError, match="died"):
        run_hub(hub, Until(InProcess(sites), 2))
    return hub, sites, tmp_path / "site-2"


def only(site):
    (study,) = studies_of(site)
    return study


def test_the_studies_with_their_last_round_and_refusal(began, tmp_path):
    hub, sites, site = began
    assert studies_of(tmp_path / "nowhere") == []
    here = only(site)
    assert (here.runs, here.left, here.refusal) == ({RUN: 2}, False, None)
    assert here.last is not None
    assert (here.last["run"], here.last["round"]) == (RUN, 2)
    rows = Rows.load(site / "state" / here.id)
    Rows(rows.salt, "00" * 32, rows.kind).save(site / "state" / here.id)
    run_hub(hub, InProcess(sites))
    refusal = only(site).refusal
    assert refusal is not None
    assert "training rows have changed" in refusal["error"]


@pytest.mark.second
def test_two_studies_have_each_their_own(began, tmp_path):
    _, sites, site = began
    run_hub(hub_of(tmp_path / "other", experiment_of(["fedavg"]), DATA), InProcess(sites))
    one, other = studies_of(site)
    assert (one.runs, other.runs) == ({RUN: 2}, {"t/fedavg/seed0": 4})
    assert {path.name for path in (site / "models").iterdir()} == {other.id}


@pytest.mark.parametrize("to", [second("kept"), None])
def test_who_leaves_takes_states_and_models_along_and_is_never_called_again(began, tmp_path, to):
    hub, sites, site = began
    study = only(site).id
    (site / "models" / study / "t__ditto__seed0").mkdir(parents=True)
    target = None if to is None else tmp_path / to
    taken = leave(site, study, target)
    assert taken == [f"state/{FILE}", "state/t__ditto__seed0", "models/t__ditto__seed0"]
    assert not list((site / "state" / study).glob("t__*"))
    assert not (site / "models" / study).exists()
    if target is not None:
        assert (target / "state" / "t__ditto__seed0" / "kept.msg").is_file()
        assert (target / "models" / "t__ditto__seed0").is_dir()
        assert target.stat().st_mode & 0o077 == 0
    assert only(site).left
    run_hub(hub, InProcess(sites))
    last = participation(hub)[-1]
    assert last["answered"] == ["site-1", "site-3"]
    assert leave(site, study, target) == []  # an interrupted one is repeated
    assert [path.name for path in (site / "state" / study).iterdir() if path.is_dir()] == []


def test_what_cannot_be_left_is_one_line_and_stays(began, tmp_path):
    *_, site = began
    with pytest.raises(ConfigError, match="this site has no study 'heart-00000001'; it has compare-t-"):
        leave(site, "heart-00000001", None)
    with pytest.raises(ConfigError, match=r"this site has no study '\.\./state'"):
        leave(site, "../state", None)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(ConfigError, match="is there already; name a new folder"):
        leave(site, only(site).id, tmp_path / "full")
    assert not only(site).left
    assert list((site / "state").glob("*/t__*/kept.msg"))


def test_a_change_is_accepted_once(began):
    *_, site = began
    study = only(site).id
    accept_changes(site, study)
    assert Rows.load(site / "state" / study).digest == ""
    with pytest.raises(ConfigError, match="has been accepted already"):
        accept_changes(site, study)
    with pytest.raises(ConfigError, match="this site has no study 'x-00000001'"):
        accept_changes(site, "x-00000001")
