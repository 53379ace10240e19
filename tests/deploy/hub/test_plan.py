"""A hub's study is what its runs ask, and a change of the folder that changes it says so."""

import pytest

from idiolect.core.errors import ConfigError
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.plan import MOST_AGAIN, change_lines, current_study, save_hub, study_of
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.kind import Kind
from idiolect.deploy.site.approvals import approve, revoke
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.site import Site
from idiolect.deploy.study import Study
from idiolect.deploy.transport import InProcess, QuorumError
from tests.deploy.federation import data_of, experiment_of, hub_of, participation, site_of, sites_of

DATA = data_of()


def config_of(methods=("fedavg",), **settings):
    cell = {key: settings.pop(key) for key in ("rounds", "eval_every", "cohort", "sampling") if key in settings}
    values = {"kind": Kind.of(DATA).to_dict(), "sites": DATA.clients, "study": "t-00000000", **settings}
    return HubConfig(experiment=experiment_of([*methods], **cell).model_dump(mode="json"), **values)


def test_the_study_has_every_run_complete():
    study = study_of(config_of(["ditto", {"name": "dfedu", "graph": "ring"}], rounds=7, eval_every=3))
    assert [run.run for run in study.runs] == ["t/ditto/seed0", "t/dfedu/seed0"]
    assert {"batch_size", "local_steps", "rate", "prox_weight"} <= {*study.runs[0].method}
    assert (study.rounds, study.evaluations, study.smallest_cohort) == (7, 4, 3)
    assert study.runs[0].neighbours is None
    assert study.runs[1].neighbours["site-2"].keys() == {"site-1", "site-3"}
    assert study.travels["t/dfedu"].to == "neighbours"
    assert [(part.name, part.shape) for part in study.travels["t/ditto"].sends] == [
        ("linear/weight", (2, 3)),
        ("linear/bias", (2,)),
    ]


@pytest.mark.parametrize(
    ("settings", "again"),
    [
        ({"rounds": 90, "eval_every": 5}, 10 + 5 + 10),  # two rollbacks: to an evaluation, and to the one before it
        ({"rounds": 90, "eval_every": 5, "guard": {"rollbacks": 0}}, 10),
        ({"rounds": 90, "eval_every": 40}, 50),  # what sites allow by default
        ({"rounds": 4, "eval_every": 90}, 10 + 4 + 8),
        ({"again": 3}, 3),
    ],
)
def test_repeats_are_enough_for_the_rollbacks_of_a_run(settings, again):
    assert study_of(config_of(**settings)).again == again
    assert Floors().again == MOST_AGAIN


@pytest.mark.parametrize(
    ("settings", "fewest"),
    [
        ({}, 3),
        ({"cohort": 2}, 2),
        ({"cohort": 2.5, "sampling": "binomial"}, 1),
        ({"left": ("site-3",)}, 2),
        ({"cohort": 2, "left": ("site-3",)}, 1),
    ],
)
def test_the_smallest_cohort_is_what_a_round_may_be_asked_of(settings, fewest):
    assert study_of(config_of(**settings)).smallest_cohort == fewest


def test_without_a_schema_names_are_known_and_shapes_are_not():
    study = study_of(config_of(kind=None, agree=True))
    assert study.kind is None
    assert [(part.name, part.shape) for part in study.travels["t/fedavg"].sends] == [
        ("linear/weight", None),
        ("linear/bias", None),
    ]
    assert study.runs[0].metric == {"classification": "accuracy,macro-f1", "regression": "mse"}


def test_a_schema_that_is_agreed_on_is_no_change(tmp_path):
    before, _ = save_hub(tmp_path, config_of(kind=None))
    config = HubConfig.load(tmp_path)
    assert config.agree
    config.model_copy(update={"kind": Kind.of(DATA).to_dict()}).save(tmp_path)
    assert current_study(tmp_path) == (before, ())


def test_a_change_by_hand_makes_a_new_digest_and_names_the_fields(tmp_path):
    before, changed = save_hub(tmp_path, config_of())
    assert (changed, Study.load(tmp_path / "study.json")) == ((), before)
    assert current_study(tmp_path) == (before, ())
    HubConfig.load(tmp_path).model_copy(update={"deadline": 5.0, "quorum": 1}).save(tmp_path)
    assert current_study(tmp_path) == (before, ())  # nothing that a site is asked
    config = HubConfig.load(tmp_path)
    other = experiment_of([{"name": "fedavg", "batch_size": 1}]).model_dump(mode="json")
    config.model_copy(update={"experiment": other}).save(tmp_path)
    after, changed = current_study(tmp_path)
    assert (after.id, after.digest != before.digest) == (before.id, True)
    assert ("runs.0.method.batch_size", "20", "1") in [(one.field, one.approved, one.asked) for one in changed]
    lines = change_lines(tmp_path, after, changed)
    assert f"digest {after.digest}" in "\n".join(lines)
    assert "  runs.0.method.batch_size: 20 before, 1 now" in lines
    assert "idiolect site approve study.json KIT" in lines[-1]
    assert change_lines(tmp_path, after, ()) == []


def test_a_site_that_is_added_is_late_and_one_that_leaves_has_left(tmp_path):
    save_hub(tmp_path, config_of())
    config = HubConfig.load(tmp_path)
    study, changed = save_hub(tmp_path, config.model_copy(update={"sites": (*config.sites, "site-4")}))
    assert (study.late, study.sites[-1]) == (("site-4",), "site-4")
    assert {"sites", "late"} <= {one.field for one in changed}
    study, _ = save_hub(tmp_path, HubConfig.load(tmp_path).model_copy(update={"left": ("site-1",)}))
    assert (study.late, study.left, study.smallest_cohort) == (("site-4",), ("site-1",), 2)


def test_what_cannot_run_changes_no_file(tmp_path):
    save_hub(tmp_path, config_of())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    pooled = experiment_of(["global"]).model_dump(mode="json")
    with pytest.raises(ConfigError, match="pools all clients"):
        save_hub(tmp_path, HubConfig.load(tmp_path).model_copy(update={"experiment": pooled}))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_sites_that_have_not_approved_stop_the_run_and_the_hub_says_which_field(tmp_path):
    hub, names = tmp_path / "hub", list(DATA.clients)
    hub.mkdir()
    study, _ = save_hub(hub, config_of(rounds=2))
    sites = {name: site_of(tmp_path / name, DATA, name, kind=Site) for name in names}
    for name in names[:2]:
        approve(sites[name].folder, name, study)
    with pytest.raises(
        QuorumError, match=r"site-3: site 'site-3' refuses: study t-00000000: study: approved no study"
    ):
        run_hub(hub, InProcess(sites))
    approve(sites["site-3"].folder, "site-3", study)
    run_hub(hub, InProcess(sites))
    assert [line["missing"] for line in participation(hub)] == [{}, {}]


def test_a_site_that_revokes_in_a_run_is_missing_with_its_reason(tmp_path):
    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"], rounds=3), DATA)
    study = Study.load(hub / "study.json")
    sites = sites_of(tmp_path, DATA)
    sites["site-2"] = Revoking(tmp_path / "site-2", sites["site-2"].config, sites["site-2"].trainer)
    approve(tmp_path / "site-2", "site-2", study)
    run_hub(hub, InProcess(sites))
    lines = participation(hub)
    assert [[*line["missing"]] for line in lines] == [[], ["site-2"], ["site-2"]]
    assert "study: approved none: revoked on " in lines[1]["missing"]["site-2"]


class Revoking(Site):
    """A site whose administrator revokes the study before the second round."""

    def answer(self, message, caller, peer):
        if message.header["task"] == "round" and message.header["round"] == 1:
            terms = message.header["terms"]
            revoke(self.folder, terms["study"])
        return super().answer(message, caller, peer)
