"""A query's file: what it refuses, and which kind of study a file is."""

import json

import pytest
from pydantic import ValidationError

from idiolect.core.errors import ConfigError
from idiolect.deploy.query import DescribeStudy, ScoredModel, ScoreStudy, load_study
from idiolect.deploy.study import Study
from tests.deploy.federation import changes, study_of_run

MODEL = ScoredModel(name="m", sha256="0" * 64, bytes=9, numbers=2, model={"name": "mlr"})
SCORE = ScoreStudy(id="q-00000000", sites=("a", "b"), model=MODEL, kind={"task": "classification"}, metric="accuracy")
DESCRIPTION = DescribeStudy(id="d-00000000", sites=("a", "b"), table={"label": "y"})


@pytest.mark.parametrize("study", [SCORE, DESCRIPTION])
def test_a_file_is_read_as_it_was_written(tmp_path, study):
    study.save(tmp_path / "study.json")
    again = load_study(tmp_path / "study.json")
    assert again == study
    assert again.digest == study.digest


def test_a_study_with_training_is_none_of_them(tmp_path):
    study = study_of_run("fedavg")
    study.save(tmp_path / "study.json")
    assert isinstance(load_study(tmp_path / "study.json"), Study)


@pytest.mark.parametrize("study", [SCORE, DESCRIPTION])
def test_every_field_changes_the_digest(study):
    same = 0
    for where, values in changes(study.model_dump(mode="json")):
        try:
            other = type(study).model_validate(values)
        except ValidationError:
            continue
        same += other.digest == study.digest
        assert other.digest != study.digest or other == study, where
    assert same <= 4  # a default that is left out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "it is of version 2"),
        ({"id": "../x"}, "id: String should match"),
        ({"sites": ["a", "a"]}, "'a' is named twice"),
        ({"sites": []}, "sites"),
        ({"purpose": "train"}, "is no study: experiment: Field required"),
        ({"more": 1}, "more"),
        ({"answers": 0}, "answers"),
        ({"model": {**MODEL.model_dump(), "sha256": "short"}}, "model.sha256"),
        ({"splits": ["all"]}, "splits"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path, change, words):
    path = tmp_path / "study.json"
    path.write_text(json.dumps({**SCORE.model_dump(mode="json"), **change}))
    with pytest.raises(ConfigError) as caught:
        load_study(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "7", "{", '{"purpose": "score"}'])
def test_other_content_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(ConfigError, match="is no study"):
        load_study(tmp_path / "s.json")
