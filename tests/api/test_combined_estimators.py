"""Estimators that mix several methods: weights, strangers, new clients, and scikit-learn's own checks."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import idiolect
from idiolect.api.combined_estimators import CombinedClassifier, CombinedRegressor
from idiolect.api.estimators import PersonalizedClassifier
from idiolect.api.fitted import divided_by
from idiolect.core.errors import ConfigError
from idiolect.study.combine.weights import weights_of

RNG = np.random.default_rng(0)
GROUPS = np.repeat(["oslo", "rome", "bonn", "kyiv", "bern"], 40)
X = RNG.normal(size=(200, 10)) * [1, *[100.0] * 9]
RULES = np.repeat([-1.0, 1.0, 1.0, 1.0, 1.0], 40)  # oslo's rule is the reverse of the others'
Y = np.where(X[:, 0] * RULES + 0.3 * RNG.normal(size=200) > 0, "well", "ill")
LIMA = np.full(40, "lima")
METHODS = ["local", "fedavg"]


@pytest.fixture(scope="module")
def fitted() -> CombinedClassifier:
    return CombinedClassifier(METHODS, random_state=3).fit(X, Y, groups=GROUPS)


@pytest.mark.second
@parametrize_with_checks([CombinedClassifier(METHODS, random_state=0), CombinedRegressor(METHODS, random_state=0)])
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_weights_follow_the_rows_that_no_method_was_trained_on(fitted: CombinedClassifier) -> None:
    rows = np.searchsorted(fitted.clients_, GROUPS)
    held = np.concatenate([part for _, part in divided_by(rows, 5, 0.2, 3)])
    assert len(held) == 40
    alone = {
        name: PersonalizedClassifier(name, rounds="auto", random_state=3).fit(X, Y, groups=GROUPS) for name in METHODS
    }
    column = (Y[held] == "well").astype(int)
    losses = np.stack(
        [-np.log(one.predict_proba(X[held], groups=GROUPS[held])[np.arange(40), column]) for one in alone.values()]
    )
    expected = weights_of("blend", losses, rows[held], 5, True)[0]
    np.testing.assert_allclose(fitted.weights_.to_numpy(), expected, rtol=1e-9)
    assert fitted.weights_.columns.tolist() == METHODS
    assert fitted.weights_.index.tolist() == ["bern", "bonn", "kyiv", "oslo", "rome"]
    assert fitted.weights_["local"].idxmax() == "oslo"


def test_a_row_is_predicted_by_its_clients_mix(fitted: CombinedClassifier) -> None:
    parts = [one.predict_proba(X, groups=GROUPS) for one in fitted.estimators_.values()]
    share = fitted.weights_.loc[GROUPS].to_numpy()
    mixed = share[:, :1] * parts[0] + share[:, 1:] * parts[1]
    np.testing.assert_allclose(fitted.predict_proba(X, groups=GROUPS), mixed, rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X, groups=GROUPS), fitted.classes_[mixed.argmax(axis=1)])
    assert fitted.score(X, Y, groups=GROUPS) == accuracy_score(Y, fitted.predict(X, groups=GROUPS)) > 0.85


def test_strangers_have_the_methods_with_a_shared_model(fitted: CombinedClassifier) -> None:
    shared = fitted.estimators_["fedavg"].predict_proba(X)
    np.testing.assert_array_equal(fitted.predict_proba(X), shared)
    some = np.where(GROUPS == "oslo", "oslo", "lima")
    found = fitted.predict_proba(X, groups=some)
    np.testing.assert_array_equal(found[some == "lima"], shared[some == "lima"])
    np.testing.assert_array_equal(found[some == "oslo"], fitted.predict_proba(X, groups=GROUPS)[some == "oslo"])
    alone = CombinedClassifier(["local", {"name": "fedu", "graph": "complete"}], random_state=0)
    alone = alone.fit(X[:80], Y[:80], groups=GROUPS[:80])
    assert not any(one.has_shared_ for one in alone.estimators_.values())
    with pytest.raises(ConfigError, match=r"^no method of local, fedu has a shared model .* client 'lima'"):
        alone.predict(X[:1], groups=["lima"])
    with pytest.raises(ConfigError, match=r"could predict rows without groups; give groups="):
        alone.predict(X[:1])


def test_further_clients_have_models_of_all_methods_and_the_federations_weights(fitted: CombinedClassifier) -> None:
    joined = fitted.personalize(X[:40], Y[:40], LIMA, rounds=20)
    assert joined.clients_.tolist() == [*fitted.clients_, "lima"]
    assert "lima" not in fitted.clients_
    np.testing.assert_allclose(joined.weights_.loc["lima"], fitted.weights_.mean())
    np.testing.assert_array_equal(joined.predict_proba(X, groups=GROUPS), fitted.predict_proba(X, groups=GROUPS))
    share = joined.weights_.loc["lima"].to_numpy()
    parts = [one.predict_proba(X[:40], groups=LIMA) for one in joined.estimators_.values()]
    mixed = share[0] * parts[0] + share[1] * parts[1]
    np.testing.assert_allclose(joined.predict_proba(X[:40], groups=LIMA), mixed, rtol=1e-12)


def test_a_portfolio_is_one_method_for_each_client() -> None:
    found = CombinedClassifier(METHODS, kind="portfolio", random_state=3).fit(X, Y, groups=GROUPS)
    assert {*found.weights_.to_numpy().ravel().tolist()} == {0.0, 1.0}
    assert (found.weights_.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(found.predict_proba(X), found.estimators_["fedavg"].predict_proba(X))


def test_numbers_are_mixed_in_their_units() -> None:
    y = 5e4 + 1e3 * np.where(RULES > 0, 1, -1) * X[:, 0]
    found = CombinedRegressor(METHODS, random_state=0).fit(X, y, groups=GROUPS)
    parts = [one.predict(X, groups=GROUPS) for one in found.estimators_.values()]
    share = found.weights_.loc[GROUPS].to_numpy()
    np.testing.assert_allclose(found.predict(X, groups=GROUPS), (share * np.stack(parts, axis=1)).sum(axis=1))
    assert found.score(X, y, groups=GROUPS) == r2_score(y, found.predict(X, groups=GROUPS)) > 0.9


def test_without_groups_there_is_one_client_and_clones_and_pickles_are_equal() -> None:
    found = CombinedClassifier(METHODS, random_state=0).fit(X[:40], Y[:40])
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    assert clone(found).get_params() == found.get_params()
    assert len(found.weights_) == 1


def test_where_no_row_can_be_held_out_all_methods_count_alike() -> None:
    few = np.r_[0:2, 40:42]
    with pytest.warns(ConvergenceWarning, match=r"^no client has rows enough"):
        found = CombinedClassifier(METHODS, random_state=0).fit(X[few], ["a", "b", "a", "b"], groups=GROUPS[few])
    assert (found.weights_ == 0.5).all(axis=None)


def test_its_methods_are_those_of_compare_unless_some_are_named() -> None:
    assert [*CombinedClassifier()._methods()][:2] == ["local", "fedavg"]
    assert len(CombinedClassifier()._methods()) > 4
    given = [idiolect.FedAvg(rate=0.1), {"name": "local", "rate": 0.1}]
    assert [*CombinedClassifier(given)._methods()] == ["fedavg", "local"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": "local"}, "^methods = 'local' must be 'auto' or a list of methods"),
        ({"methods": idiolect.FedAvg()}, "must be 'auto' or a list of methods"),
        ({"methods": 3}, "^methods = 3 must be 'auto' or a list"),
        ({"methods": ["local"]}, "a combination needs two methods or more$"),
        ({"methods": ["local", {"name": "local"}]}, "^methods: 'local' is there twice$"),
        ({"methods": ["local", "fedavgg"]}, "did you mean 'fedavg'"),
        ({"kind": "mix"}, "^kind = 'mix' must be one of blend, portfolio$"),
        ({"validation_fraction": 0}, "^validation_fraction = 0 must be"),
    ],
)
def test_wrong_settings_are_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CombinedClassifier(**{"methods": METHODS, **change}).fit(X[:40], Y[:40], groups=GROUPS[:40])
