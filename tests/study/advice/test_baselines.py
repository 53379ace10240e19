import sys

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV

from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.study.advice.baselines import PENALTIES, baselines, check_installed
from idiolect.study.advice.draws import Draws, again


def draws_of(task: str) -> Draws:
    rng = np.random.default_rng(0)
    parts = {}
    for i in range(2):
        x = rng.normal(size=(30, 2))
        y = x @ [1.0, -1.0] + 0.1 * rng.normal(size=30) if task == "regression" else (x[:, 0] + i > 0.5).astype(int)
        parts[f"c{i}"] = (x, y)
    parts["one class"] = (rng.normal(size=(12, 2)), np.zeros(12) if task == "regression" else np.zeros(12, int))
    return Draws(again(from_arrays(parts, task=task)), 2)


def test_own_ridge_and_guess_are_scikit_learns_on_each_clients_training_rows() -> None:
    draws = draws_of("regression")
    found = {one.name: one for one in baselines(draws)}
    data = draws.data[1]
    for name, model in (("own ridge", RidgeCV(PENALTIES)), ("own guess", DummyRegressor())):
        expected = []
        for client in range(3):
            model.fit(*data.stored("train").client(client))
            x, y = data.stored("test").client(client)
            expected.append((model.predict(x) - y) ** 2)
        np.testing.assert_allclose(found[name].test[1], np.concatenate(expected), rtol=1e-4, atol=1e-10)


def test_logistic_beats_guessing_and_one_class_is_no_trouble() -> None:
    found = {one.name: one for one in baselines(draws_of("classification"))}
    assert [*found] == ["own guess", "pooled guess", "own logistic", "pooled logistic"]
    losses = {name: np.mean([rows.mean() for rows in one.test]) for name, one in found.items()}
    assert losses["own logistic"] < losses["own guess"]
    assert all(np.isfinite(rows).all() for one in found.values() for rows in one.test)


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ConfigError, match=r"idiolect\[sklearn\]"):
        check_installed()
