"""A study's file: read and written the same, every fault one line, and every difference named."""

import json

import pytest
from pydantic import ValidationError

from idiolect.core.errors import ConfigError
from idiolect.deploy.study import LARGEST, Part, PlannedRun, Study, bytes_of, differences, new_id, shown
from tests.deploy.federation import changes, study_of_run

STUDY = study_of_run("scaffold")
VALUES = STUDY.model_dump(mode="json")


def test_a_file_comes_back_with_the_same_digest(tmp_path):
    STUDY.save(tmp_path / "study.json")
    again = Study.load(tmp_path / "study.json")
    assert (again, again.digest) == (STUDY, STUDY.digest)


def test_every_change_makes_another_digest():
    seen = {STUDY.digest}
    for where, values in changes(VALUES):
        try:
            other = Study.model_validate(values)
        except ValidationError:
            continue
        if other.model_dump(mode="json") != VALUES:  # an absent field may have the same value
            assert other.digest not in seen, where
            seen.add(other.digest)
    assert len(seen) > 10


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "it is of version 2, and this idiolect reads version 1"),
        ({"id": "../up-12345678"}, "id: String should match pattern"),
        ({"id": "a-12345678\n"}, "id: String should match pattern"),
        ({"sites": ["a", "a"]}, "sites: 'a' is named twice"),
        ({"left": ["b"]}, "left: 'b' is none of the study's sites"),
        ({"rounds": 8}, "rounds: 8, but a run has 9"),
        ({"evaluations": 1}, "evaluations: 1, but a run has"),
        ({"smallest_cohort": 4}, "smallest_cohort: 4, but run 'r' has a smaller one"),
        ({"travels": {}}, "travels: the messages of '' are missing"),
        ({"runs": [{**VALUES["runs"][0], "neighbours": {"site-1": {"x": 1.0}}}]}, "'x' is none of the study's sites"),
        ({"code": "x"}, "code: Extra inputs are not permitted"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_in_one_line(tmp_path, change, told):
    path = tmp_path / "study.json"
    path.write_text(json.dumps({**VALUES, **change}))
    with pytest.raises(ConfigError) as error:
        Study.load(path)
    assert told in str(error.value)
    assert str(error.value).startswith(f"{path} is no study: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"3", b"{" * 9000])
def test_what_is_no_study_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "study.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is no study: ") as error:
        Study.load(path)
    assert "\n" not in str(error.value)


def test_a_missing_and_an_endless_file_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        Study.load(tmp_path / "absent.json")
    with pytest.raises(ConfigError, match="cannot read"):
        Study.load(tmp_path)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(ConfigError, match="has more than"):
        Study.load(tmp_path / "large")


def test_terms_are_those_of_the_planned_run():
    terms = STUDY.terms("r", {"task": "classification"})
    assert (terms.study, terms.approved, terms.metric) == (STUDY.id, STUDY.digest, "accuracy,macro-f1")
    assert terms.method == STUDY.runs[0].method
    with pytest.raises(ConfigError, match="has no run 'q'"):
        STUDY.terms("q", {})


def test_two_values_differ_where_python_would_call_them_equal():
    for approved, asked in ((1, True), (1, 1.0), (0, False), (None, 0), ([1], [1, 1]), ({"x": None}, {})):
        assert [*differences({"a": approved}, {"a": asked})], (approved, asked)
    (found,) = differences({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}})
    assert str(found) == "a.b.1: approved 2, asked 3"
    assert not [*differences(VALUES, json.loads(json.dumps(VALUES)))]


def test_a_value_of_another_party_does_not_steer_a_terminal():
    assert shown("a\x1b[2Jb\u202e\nc") == "a\\x1b[2Jb\\u202e\\nc"
    assert len(shown("x" * 999)) == 80


def test_an_id_can_be_a_folder_s_name_and_is_another_each_time():
    names = [new_id(name) for name in ("four hospitals", "../é", "", "a" * 99)]
    assert names[0].startswith("four-hospitals-")
    for name in names:
        Study.model_validate({**VALUES, "id": name})
    assert new_id("a") != new_id("a")


def test_bytes_of_a_message():
    known = Part(name="w", type="float32", shape=(2, 3)), Part(name="n", type="int32", shape=())
    assert bytes_of(known) == 28
    assert bytes_of((*known, Part(name="x", type="float32", shape=None))) is None
    assert PlannedRun.model_validate(VALUES["runs"][0]).group == ""
