import sys

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor

from idiolect.data import from_arrays
from idiolect.study.advice.baselines import notes_on_trees, regressions, trees
from idiolect.study.advice.draws import Draws, again
from idiolect.study.advice.regressions import PENALTIES, Rows, own_regressions


def draws_of(task: str, rows: int = 30) -> Draws:
    rng = np.random.default_rng(0)
    parts = {}
    for i in range(2):
        x = rng.normal(size=(rows, 2))
        y = x @ [1.0, -1.0] + 0.1 * rng.normal(size=rows) if task == "regression" else (x[:, 0] + i > 0.5).astype(int)
        parts[f"c{i}"] = (x, y)
    parts["one class"] = (rng.normal(size=(12, 2)), np.zeros(12) if task == "regression" else np.zeros(12, int))
    return Draws(again(from_arrays(parts, task=task)), 2)


def test_guesses_are_means() -> None:
    draws = draws_of("regression")
    found = {one.name: one for one in regressions(draws)}
    train, test = (draws.data[1].stored(name) for name in ("train", "test"))
    own = [
        (DummyRegressor().fit(*train.client(i)).predict(test.client(i)[0]) - test.client(i)[1]) ** 2 for i in range(3)
    ]
    np.testing.assert_allclose(found["own guess"].test[1], np.concatenate(own), rtol=1e-5)
    pooled = (DummyRegressor().fit(train.x, train.y).predict(test.x) - test.y) ** 2
    np.testing.assert_allclose(found["pooled guess"].test[1], pooled, rtol=1e-4)


def test_guesses_are_shares_with_one_more_of_each_label() -> None:
    draws = draws_of("classification")
    found = {one.name: one for one in regressions(draws)}["pooled guess"]
    train, test = (draws.data[0].stored(name) for name in ("train", "test"))
    y = np.concatenate([train.y, [0, 1]])
    shares = DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y).class_prior_
    np.testing.assert_allclose(found.test[0], -np.log(shares[test.y]), rtol=1e-6)


def test_own_regressions_see_the_training_rows_of_each_division() -> None:
    draws = draws_of("regression")
    found = {one.name: one for one in regressions(draws)}["own ridge"]
    for draw, data in enumerate(draws.data):
        train, validation, test = (
            Rows(part.x, part.y, part.offsets) for part in map(data.stored, ("train", "validation", "test"))
        )
        outputs = own_regressions(train, validation, 0, PENALTIES).outputs(test.x, test.offsets)
        np.testing.assert_allclose(found.test[draw], (outputs - test.y) ** 2)


def test_names_and_kinds_say_what_needs_all_rows() -> None:
    draws = draws_of("classification", 300)
    found = {one.name: one.kind for one in [*regressions(draws), *trees(draws)]}
    assert found == {
        "own guess": "baseline",
        "pooled guess": "pooled",
        "own logistic": "baseline",
        "pooled logistic": "pooled",
        "pooled logistic without clients": "pooled",
        "own trees": "baseline",
        "pooled trees": "pooled",
    }


def test_a_regression_beats_guessing_and_client_intercepts_beat_none() -> None:
    draws = draws_of("classification", 100)
    found = {one.name: one for one in [*regressions(draws), *trees(draws)]}
    losses = {name: np.mean([rows.mean() for rows in one.test]) for name, one in found.items()}
    assert losses["own logistic"] < losses["own guess"]
    assert losses["pooled logistic"] < losses["pooled logistic without clients"]
    assert all(np.isfinite(rows).all() for one in found.values() for rows in one.test)


def test_without_lightgbm_a_note_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = draws_of("classification", 300)
    assert trees(draws)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert trees(draws) == []
    assert notes_on_trees(draws) == ("install idiolect[trees] to compare with gradient boosting",)


def test_notes_say_for_whom_own_trees_are_missing() -> None:
    pytest.importorskip("lightgbm")
    assert [one.name for one in trees(draws_of("regression"))] == ["pooled trees"]
    assert "no client has 100 training rows" in notes_on_trees(draws_of("regression"))[0]
    assert "2 of 3 clients" in notes_on_trees(draws_of("regression", 300))[0]
