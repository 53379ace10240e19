"""A hub's configuration and its counter of jobs."""

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.hub.config import HubConfig, next_job


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


def test_jobs_are_counted_durably(tmp_path):
    assert [next_job(tmp_path) for _ in range(3)] == [1, 2, 3]
    (tmp_path / "hub-jobs.json").write_text("{}")
    with pytest.raises(StoreError, match="cannot read"):
        next_job(tmp_path)


@pytest.mark.parametrize(
    ("quorum", "needed"),
    [(None, [0, 1, 1, 2, 2, 3]), (1, [0, 1, 1, 1, 1, 1]), (2, [0, 1, 2, 2, 2, 2]), (4, [0, 1, 2, 3, 4, 4])],
)
def test_half_of_a_cohort_rounded_up_must_answer_or_as_many_as_are_named_and_there(quorum, needed):
    config = HubConfig(experiment={}, kind={}, sites=tuple("abcde"), quorum=quorum)
    assert [config.needed(cohort) for cohort in range(6)] == needed
