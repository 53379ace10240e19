"""Sites that join a run which has begun, and sites that leave it."""

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import read_message
from idiolect.deploy.transport import InProcess
from idiolect.study.store.store import Store
from tests.deploy.federation import (
    Silent,
    data_of,
    experiment_of,
    hub_of,
    kept_file,
    participation,
    scores_of,
    sites_of,
)

DATA = data_of(4)


class Until:
    """A transport whose job dies before a round; or in it (answered), when the sites have answered."""

    def __init__(self, inner, round, answered=False):
        self.inner, self.round, self.sites, self.asked = inner, round, inner.sites, []
        self.answered = answered

    def call(self, round, messages, *, deadline):
        self.asked += messages
        last = round == self.round and any(message.header["task"] == "round" for message in messages.values())
        if last and not self.answered:
            raise StoreError("the job has died")
        got = self.inner.call(round, messages, deadline=deadline)
        if last:
            assert not got.missing
            raise StoreError("the job has died")
        return got


def begun(folder, experiment, answered=False):
    """A run of three sites that has done two rounds of four; in the third the sites may have answered a dead hub."""
    hub = hub_of(folder / "hub", experiment, DATA, sites=DATA.clients[:3])
    sites = InProcess(sites_of(folder, DATA))
    with pytest.raises(StoreError, match="died"):
        run_hub(hub, Until(sites, 2, answered))
    return hub, sites


def change(hub, **values):
    HubConfig.load(hub).model_copy(update=values).save(hub)


@pytest.mark.second
@pytest.mark.parametrize("method", ["pfedme", "ditto"])
def test_a_site_that_joins_is_one_that_was_silent_before(method, tmp_path):
    experiment = experiment_of([method], eval_every=4)
    hub, sites = begun(tmp_path / "joins", experiment)
    change(hub, sites=DATA.clients)
    run_hub(hub, sites)
    assert [len(line["cohort"]) for line in participation(hub)] == [3, 3, 4, 4]
    assert "site-4" in participation(hub)[-1]["answered"]
    with Store(hub, create=False) as store:
        assert [row.provenance["clients"] for row in store.runs()] == [list(DATA.clients)]
    run = f"t/{method}/seed0"
    silent = Silent(InProcess(sites_of(tmp_path / "silent", DATA)), {(run, r): ["site-4"] for r in (0, 1)})
    run_hub(hub_of(tmp_path / "silent" / "hub", experiment, DATA), silent)
    joined, expected = scores_of(hub, run), scores_of(tmp_path / "silent" / "hub", run)
    for key in expected:
        if key[0] == 4:
            np.testing.assert_allclose(joined[key].loss, expected[key].loss, atol=1e-6)


def vectors_of(folder, run):
    """All that hub and sites keep after a run: bytes by their place."""
    name, found = run.replace("/", "__"), {}
    files = {"hub": folder / "hub" / "checkpoints" / f"{name}.hub"}
    files |= {site: kept_file(folder / site, run) for site in DATA.clients}
    for place, path in files.items():
        for leaf, vector in read_message(path).vectors.items():
            found[place, leaf] = vector.tobytes()
    return found


@pytest.mark.second
@pytest.mark.parametrize("method", ["l2gd", "pflego"])
def test_a_retried_round_is_answered_for_the_federation_that_asks_again(method, tmp_path):
    """A site joins between the hub's death and the retry: what the sites have answered was for one site less."""
    experiment = experiment_of([method], eval_every=4, model={"name": "mlp", "hidden": [3]})
    for answered in (True, False):
        hub, sites = begun(tmp_path / str(answered), experiment, answered)
        change(hub, sites=DATA.clients)
        run_hub(hub, sites)
        assert [len(line["answered"]) for line in participation(hub)] == [3, 3, 4, 4]
    retried, fresh = (vectors_of(tmp_path / str(answered), f"t/{method}/seed0") for answered in (True, False))
    assert retried == fresh


def test_a_method_with_a_row_for_each_site_goes_on_without_the_new_one(tmp_path):
    hub, sites = begun(tmp_path, experiment_of(["afl"]))
    change(hub, sites=DATA.clients)
    run_hub(hub, sites)
    last = participation(hub)[-1]
    assert (last["round"], last["answered"]) == (3, list(DATA.clients[:3]))
    assert "afl keeps a row for each site" in last["missing"]["site-4"]


def test_a_new_site_that_does_not_answer_stops_nobody(tmp_path):
    hub, _ = begun(tmp_path, experiment_of(["fedavg"]))
    change(hub, sites=(*DATA.clients[:3], "elsewhere"))
    run_hub(hub, InProcess(sites_of(tmp_path, DATA)))
    assert participation(hub)[-1]["missing"] == {"elsewhere": "not connected"}


def test_a_site_that_has_left_is_never_called_and_the_others_keep_their_numbers(tmp_path):
    experiment = experiment_of(["pfedme"], eval_every=4)
    hub, sites = begun(tmp_path / "left", experiment)
    change(hub, left=("site-2",))
    watched = Until(sites, 99)
    run_hub(hub, watched)
    assert "site-2" not in watched.asked
    assert participation(hub)[-1]["missing"] == {"site-2": "has left"}
    run = "t/pfedme/seed0"
    three = data_of(4).select(lambda index: index < 3)
    silent = Silent(InProcess(sites_of(tmp_path / "silent", three)), {(run, r): ["site-2"] for r in (2, 3)})
    run_hub(hub_of(tmp_path / "silent" / "hub", experiment, three), silent)
    left, expected = scores_of(hub, run), scores_of(tmp_path / "silent" / "hub", run)
    for key in expected:
        if key[0] == 4:
            np.testing.assert_allclose(left[key].loss[[0, 2]], expected[key].loss[[0, 2]], atol=1e-6)
            assert left[key].count[1] == 0
