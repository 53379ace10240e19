"""The result of a score: units, withheld splits, and intervals."""

import numpy as np
import pytest

from idiolect.deploy.hub.scored import ALL, MEAN, score_result
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message
from idiolect.deploy.query import ScoredModel, ScoreStudy
from idiolect.study.analyse.intervals import paired, share

MODEL = ScoredModel(name="m", sha256="0" * 64, bytes=9, numbers=2, model={"name": "mlr"})
CLASSES = Kind("table", "classification", ("a", "b"), (3,)).to_dict()
NUMBER = Kind("table", "regression", (), (3,), target=(50.0, 10.0)).to_dict()


def query(kind, metric):
    return ScoreStudy(id="q-00000000", sites=("a", "b", "c"), model=MODEL, kind=kind, metric=metric)


def answer(count, right, loss=1.0, **more):
    scores = {"model": {"test": {"count": count, "loss": loss * count, "values": {"accuracy": [right, count]}}}}
    return Message({"scores": scores, **more}, {"model/test/accuracy": np.asarray(right, np.int32)})


def test_shares_are_pooled_by_rows_and_have_intervals():
    result = score_result(query(CLASSES, "accuracy"), {"a": answer(10, 9), "b": answer(90, 45)}, {"c": "silent"})
    rows = {row.where: row for row in result.rows}
    assert [*rows] == ["a", "b", ALL, MEAN]
    assert rows[ALL].values["accuracy"] == pytest.approx(0.54)
    assert rows[ALL].intervals["accuracy"] == share(54, 100)
    assert rows[MEAN].values["accuracy"] == pytest.approx(0.7)
    expected = paired([0.9, 0.5], [0.0, 0.0])
    assert rows[MEAN].intervals["accuracy"] == (max(expected.low, 0), min(expected.high, 1))
    assert result.missing == {"c": "silent"}


def test_one_site_has_no_interval_over_sites():
    rows = {row.where: row for row in score_result(query(CLASSES, "accuracy"), {"a": answer(10, 9)}, {}).rows}
    assert rows[MEAN].intervals == {}


def test_an_error_is_in_the_units_of_the_table():
    scores = {"model": {"test": {"count": 4, "loss": 2.0, "values": {"mae": [2.0, 4.0]}}}}
    sent = Message({"scores": scores}, {"model/test/mae": np.asarray(2.0, np.float32)})
    result = score_result(query(NUMBER, "mae"), {"a": sent}, {})
    assert [row.values["mae"] for row in result.rows] == [5.0, 5.0, 5.0]


def test_no_answer_is_no_table(tmp_path):
    result = score_result(query(CLASSES, "accuracy"), {}, {"a": "not connected"})
    assert result.rows == ()
    result.save(tmp_path)
    assert "a: no scores: not connected" in (tmp_path / "result.md").read_text()


def test_withheld_splits_are_told_with_their_reason():
    sent = answer(10, 9, withheld={"test": "few\nrows", "other": "no split of the query"})
    result = score_result(query(CLASSES, "accuracy"), {"a": sent}, {})
    assert result.withheld == {"a": {"test": "few\nrows"}}
    assert "a: test: few rows" in result.remarks()


def test_a_loss_that_is_not_finite_is_no_number():
    sent = Message({"scores": {"model": {"test": {"count": 4, "loss": float("nan"), "values": {}}}}})
    assert "loss" in score_result(query(CLASSES, "accuracy"), {"a": sent}, {}).missing["a"]
