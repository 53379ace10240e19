"""A hub's configuration and its counter of jobs."""

import json

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.alerts import EVENTS
from idiolect.deploy.hub.config import HubConfig, next_job
from idiolect.deploy.kind import Kind
from tests.deploy.federation import data_of


def test_it_comes_back_and_two_sites_with_one_name_are_refused(tmp_path):
    config = HubConfig(experiment={"name": "e"}, kind={"task": "regression"}, sites=("a", "b"), quorum=2)
    config.save(tmp_path)
    assert HubConfig.load(tmp_path) == config
    with pytest.raises(ConfigError, match="two sites are called 'a'; give each its own name"):
        HubConfig(experiment={}, kind={}, sites=("a", "a")).save(tmp_path)
    assert HubConfig.load(tmp_path) == config


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "is missing; make it with 'idiolect hub init'"), ("{", "Invalid JSON"), ("{}", "experiment: Field")],
)
def test_a_wrong_one_is_one_line(tmp_path, text, told):
    if text is not None:
        (tmp_path / "hub.json").write_text(text)
    with pytest.raises(ConfigError, match=told) as error:
        HubConfig.load(tmp_path)
    assert "\n" not in str(error.value)


def test_a_later_job_has_a_larger_number_in_every_folder(tmp_path, monkeypatch):
    for name in ("study", "another"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("idiolect.deploy.hub.config.time.time", lambda: 1000.7)
    assert [next_job(tmp_path / "study") for _ in range(3)] == [1000, 1001, 1002]
    monkeypatch.setattr("idiolect.deploy.hub.config.time.time", lambda: 2000.2)
    assert next_job(tmp_path / "another") == 2000  # a second study on the same sites, or a folder that was lost
    assert next_job(tmp_path / "study") == 2000
    monkeypatch.setattr("idiolect.deploy.hub.config.time.time", lambda: 10.0)  # a clock that was set back
    assert next_job(tmp_path / "study") == 2001
    for text in ("{}", "[" * 100_000):
        (tmp_path / "study" / "hub-jobs.json").write_text(text)
        with pytest.raises(StoreError, match="cannot read"):
            next_job(tmp_path / "study")


@pytest.mark.parametrize(
    ("quorum", "needed"),
    [(None, [0, 1, 1, 2, 2, 3]), (1, [0, 1, 1, 1, 1, 1]), (2, [0, 1, 2, 2, 2, 2]), (4, [0, 1, 2, 3, 4, 4])],
)
def test_half_of_a_cohort_rounded_up_must_answer_or_as_many_as_are_named_and_there(quorum, needed):
    config = HubConfig(experiment={}, kind={}, sites=tuple("abcde"), quorum=quorum)
    assert [config.needed(cohort) for cohort in range(6)] == needed


def test_a_round_cannot_need_more_answers_than_there_are_sites(tmp_path):
    config = HubConfig(experiment={}, kind=None, sites=("a", "b"), quorum=2)
    config.check()
    with pytest.raises(ConfigError, match="--quorum 3: there are 2 sites; a round needs at most all"):
        config.model_copy(update={"quorum": 3}).save(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("quorum", "left", "message"),
    [
        (3, (), "--quorum 3: there are 2 sites"),
        (2, ("b",), "--quorum 2: there are 1 sites"),
        (2, (), ""),
        (1, ("b",), ""),
        (None, ("b",), ""),
    ],
)
def test_a_file_edited_by_hand_is_checked_too(tmp_path, quorum, left, message):
    """Sites that have left for good do not answer."""
    HubConfig(experiment={}, kind=None, sites=("a", "b")).save(tmp_path)
    path = tmp_path / "hub.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "quorum": quorum, "left": left}))
    if not message:
        assert HubConfig.load(tmp_path).quorum == quorum
        return
    with pytest.raises(ConfigError, match=f"{path}: {message}; a round needs at most all"):
        HubConfig.load(tmp_path)


def test_a_robust_rule_needs_three_sites(tmp_path):
    config = HubConfig(experiment={}, kind=None, sites=("a", "b"), guard={"robust": 3.0})
    with pytest.raises(ConfigError, match=r"guard\.robust needs 3 sites, and there are 2.*remove guard\.robust"):
        config.save(tmp_path)
    assert not list(tmp_path.iterdir())
    HubConfig(experiment={}, kind=None, sites=("a", "b", "c"), guard={"robust": 3.0}).save(tmp_path)


GUARD = {
    "scale": 10.0,
    "floor": 0.02,
    "clip": None,
    "most_rows": 10_000_000,
    "robust": None,
    "weight_cap": 1.0,
    "explode": 3.0,
    "rollbacks": 2,
    "checkpoints": 3,
}
WHOLE = {"experiment": {}, "kind": None, "sites": ("a",)}


def test_what_is_not_given_has_these_values():
    config = HubConfig(**WHOLE)
    given = config.model_dump(exclude={*WHOLE})
    times = {"deadline": 60.0, "starting": 120.0}
    of_study = {"study": "", "agree": False, "again": None, "agreed_by": (), "starts": {}}
    assert given == {
        "table": {},
        "left": (),
        "quorum": None,
        "tries": 3,
        "patience": 3,
        **times,
        **of_study,
        "guard": GUARD,
        "alert": {"command": (), "seconds": 10.0, "missing": 3, "events": EVENTS},
    }
    with pytest.raises(ValueError, match="frozen"):
        config.quorum = 2


@pytest.mark.parametrize(
    ("field", "least", "below"),
    [
        ("deadline", 0.1, 0.0),
        ("starting", 0.1, 0.0),
        ("quorum", 1, 0),
        ("tries", 1, 0),
        ("patience", 1, 0),
        ("sites", ("a",), ()),
    ],
)
def test_each_number_has_its_least_value(field, least, below):
    assert getattr(HubConfig(**{**WHOLE, field: least}), field) == least
    with pytest.raises(ValueError, match=field):
        HubConfig(**{**WHOLE, field: below})


def test_the_kind_of_data_is_known_when_the_sites_have_agreed():
    with pytest.raises(ConfigError, match="the sites have not agreed on a schema yet; 'idiolect hub run' lets them"):
        _ = HubConfig(**WHOLE).agreed
    kind = Kind.of(data_of())
    assert HubConfig(**{**WHOLE, "kind": kind.to_dict()}).agreed == kind


def test_a_file_that_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / "hub.json").mkdir()
    with pytest.raises(ConfigError, match=r"cannot read .*hub\.json: Is a directory$"):
        HubConfig.load(tmp_path)
