"""The scikit-learn estimators: their own checks, groups as clients, and the runs that they stand for."""

import pickle
import subprocess
import sys
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import idiolect
from idiolect.api.estimators import PersonalizedClassifier, PersonalizedRegressor, clients_of, column_of, rows_of
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.data.federated import Split

RNG = np.random.default_rng(0)
GROUPS = np.repeat(["rome", "oslo", "bonn"], 40)
X = RNG.normal(size=(120, 4)) * [1, 100, 1e-3, 5] + [0, 1e4, 0, -3]
RULES = np.repeat([1.0, -1.0, 1.0], 40)  # oslo's rule is the reverse of the others'
Y = np.where(X[:, 0] * RULES > 0, "ill", "well")
ASKED = {"method": "fedavg-ft", "settings": {"rate": 0.5, "finetune_rate": 0.5, "finetune_steps": 20}, "rounds": 10}


@pytest.fixture(scope="module")
def fitted():
    return PersonalizedClassifier(**ASKED, random_state=3).fit(X, Y, groups=GROUPS)


@pytest.mark.second
@parametrize_with_checks(
    [
        PersonalizedClassifier("fedavg", random_state=0),
        PersonalizedRegressor("fedavg", random_state=0),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_it_is_the_run_of_the_same_data(fitted):
    """The models are those of `idiolect.run` on the standardised rows, client by client, to the last bit."""
    scaled = StandardScaler().fit_transform(X).astype(np.float32)
    cities = {city: (scaled[city == GROUPS], (Y[city == GROUPS] == "well").astype(int)) for city in np.unique(GROUPS)}
    data = idiolect.data.from_arrays(cities)
    x, y = (np.concatenate(parts) for parts in zip(*cities.values(), strict=True))
    whole = Split(x, y.astype(np.int32), np.array([0, 40, 80, 120]))
    data = replace(data, train=whole, test=whole)
    method = idiolect.FedAvgFineTuned(**ASKED["settings"])
    run = idiolect.run(data, "mlr", method, rounds=10, seed=3, splits="test")
    for city, model in run.models("adapted").items():
        for mine, its in zip(jax.tree.leaves(fitted.models_[city]), jax.tree.leaves(model), strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)
    assert fitted.score(X, Y, groups=GROUPS) == pytest.approx(run.scores("adapted").pooled["accuracy"])
    assert fitted.score(X, Y) == pytest.approx(run.scores("global").pooled["accuracy"])


def cities(seed, label=lambda y: (y == "well").astype(int), y=Y):
    """The rows that an estimator with this random_state trains on, as data of `idiolect.run`."""
    scaled = StandardScaler().fit_transform(X).astype(np.float32)
    parts = {city: (scaled[city == GROUPS], label(y[city == GROUPS])) for city in np.unique(GROUPS)}
    return idiolect.data.from_arrays(parts, test=0, validation=0.2, split_seed=seed, scale_labels=False)


def equal(mine, its):
    pairs = zip(jax.tree.leaves(mine), jax.tree.leaves(its), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.second
def test_without_rounds_it_is_the_run_that_chooses_them():
    """Rounds, rates and every client's model are those of `idiolect.run(..., rounds="auto")` on the same rows."""
    mine = PersonalizedClassifier(random_state=3).fit(X, Y, groups=GROUPS)
    run = idiolect.run(cities(3), "mlr", "fedavg-ft", rounds="auto", seed=3, splits="train")
    assert mine.n_iter_ == run.history[-1].round
    chosen = run.evaluator.simulation.algorithm
    assert mine.settings_ == {"batch_size": 0, "rate": chosen.rate}
    assert mine.settings_["rate"] != idiolect.FedAvgFineTuned().rate
    models = run.evaluator.client_params(run.state, ["adapted"])["adapted"]
    assert all(equal(mine.models_[city], tree.gather(models, row)) for row, city in enumerate(run.data.clients))
    again = PersonalizedClassifier(random_state=3).fit(X, Y, groups=GROUPS)
    np.testing.assert_array_equal(again.predict_proba(X, groups=GROUPS), mine.predict_proba(X, groups=GROUPS))


@pytest.mark.second
def test_fedavg_converges_without_settings_where_fifty_rounds_do_not():
    """The log-loss of a logistic regression on all rows, with correlated features and a steep rule."""
    rng = np.random.default_rng(0)
    x = np.sqrt(0.97) * rng.normal(size=(4000, 1)) + np.sqrt(0.03) * rng.normal(size=(4000, 3))
    y = rng.random(4000) < 1 / (1 + np.exp(-6 * (x @ [1, -1, 0.5])))
    scaled = StandardScaler().fit_transform(x)
    best = log_loss(y, LogisticRegression(C=np.inf, max_iter=1000).fit(scaled, y).predict_proba(scaled))

    def excess(**settings):
        fitted = PersonalizedClassifier("fedavg", random_state=0, **settings).fit(x, y, groups=np.arange(4000) % 8)
        return log_loss(y, fitted.predict_proba(x)) - best

    assert excess(rounds=50, settings={"rate": 0.1}) > 0.01
    assert excess() < 1e-3


TREES = {
    "boosted-intercept": {"min_rows": 4, "trees": 12, "leaves": 4, "bins": 16, "rate": 0.4, "client_rows": 10},
    "local-trees": {"min_rows": 4, "trees": 8, "leaves": 4, "bins": 16, "rate": 0.4},
}


@pytest.mark.second
@pytest.mark.parametrize(
    ("estimator", "method"),
    [(PersonalizedClassifier, "boosted-intercept"), (PersonalizedRegressor, "local-trees")],
)
def test_trees_are_those_of_a_run_and_new_clients_get_theirs(estimator, method):
    """Methods whose models are no parameters of the run's module: fit, predict, pickle, and clients that join."""
    settings = TREES[method]
    asked = estimator(method, settings=settings, random_state=1)
    if estimator is PersonalizedRegressor:
        y = np.where(Y == "ill", 1.0, -1.0) + 0.1 * X[:, 0]
        y = (y - y.mean()) / y.std()
        data, kind = cities(1, lambda part: ((part - y.mean()) / y.std()).astype(np.float32), y), "linear"
    else:
        y, data, kind = Y, cities(1), "mlr"
    mine = asked.fit(X, y, groups=GROUPS)
    run = idiolect.run(data, kind, {"name": method, **settings}, rounds="auto", seed=1, splits="train")
    name = run.evaluator.simulation.offered[0]
    assert (mine.n_iter_, mine.settings_) == (run.history[-1].round, {})
    scaled = mine.scaler_.transform(X).astype(np.float32)
    for city, model in run.models(name).items():
        outputs = model.outputs(scaled[city == GROUPS])
        shown = softmax(np.float64(outputs), axis=1) if estimator is PersonalizedClassifier else outputs[:, 0]
        ask = mine.predict_proba if estimator is PersonalizedClassifier else mine.predict
        np.testing.assert_allclose(ask(X[city == GROUPS], groups=GROUPS[city == GROUPS]), shown, rtol=1e-5, atol=1e-6)
        assert equal(mine.models_[city], model.module)
    assert mine.score(X, y, groups=GROUPS) > 0.8
    again = pickle.loads(pickle.dumps(mine))
    np.testing.assert_array_equal(again.predict(X, groups=GROUPS), mine.predict(X, groups=GROUPS))
    assert clone(mine).get_params() == asked.get_params()
    # A new client with oslo's rows has oslo's rule, by its own rows.
    own = GROUPS == "oslo"
    joined = again.personalize(X[own], y[own], np.full(own.sum(), "lima"))
    new = run.personalize(
        idiolect.data.from_arrays(
            {"lima": (scaled[own], mine._scaled(y[own]) if kind == "linear" else (y[own] == "well").astype(int))},
            test=0, validation=0, scale_labels=False, classes=data.classes,
        )
    )  # fmt: skip
    assert equal(joined.client_model("lima"), new.client_model(name, "lima").module)
    assert joined.score(X[own], y[own], groups=np.full(own.sum(), "lima")) > 0.8
    assert joined.clients_.tolist() == ["bonn", "oslo", "rome", "lima"]
    np.testing.assert_array_equal(joined.predict(X, groups=GROUPS), mine.predict(X, groups=GROUPS))
    assert mine.clients_.tolist() == ["bonn", "oslo", "rome"]
    with pytest.raises(ConfigError, match=r"no shared model that could predict client 'lima'.*personalize gives"):
        mine.predict(X[:1], groups=["lima"])


def test_where_no_row_can_be_held_out_rounds_are_fixed_and_that_is_said():
    few = np.r_[0:2, 40:42]
    asked = PersonalizedClassifier("fedavg", random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"^no client has rows enough .*: training ends after 100 rounds"):
        fitted = asked.fit(X[few], ["a", "b", "a", "b"], groups=GROUPS[few])
    assert fitted.n_iter_ == 100


def test_what_cannot_join_is_told(fitted):
    paris, oslo, lima = np.full(120, "paris"), GROUPS == "oslo", np.full(40, "lima")
    own = fitted.personalize(X[oslo], Y[oslo], lima)  # from the shared model, by its own fine-tuning
    assert own.score(X[oslo], Y[oslo], groups=lima) > 0.8 > 0.4 > fitted.score(X[oslo], Y[oslo], groups=lima)
    with pytest.raises(ConfigError, match=r"^client 'rome' has a model already"):
        fitted.personalize(X, Y, GROUPS)
    with pytest.raises(ConfigError, match=r"^label 'dead' is none that fit has seen"):
        fitted.personalize(X[:1], ["dead"], ["paris"])
    with pytest.raises(ConfigError, match=r"^rounds = 0 must be"):
        fitted.personalize(X, Y, paris, rounds=0)
    with pytest.raises(ConfigError, match=r"^personalize is for further groups, but fit had none"):
        PersonalizedClassifier(rounds=1, random_state=0).fit(X, Y).personalize(X, Y, paris)
    mocha = PersonalizedClassifier("mocha", settings={"relationship": "learned"}, rounds=1, random_state=0)
    with pytest.raises(ConfigError, match=r"a learned or given relation has no row for new clients"):
        mocha.fit(X, Y, groups=GROUPS).personalize(X, Y, paris)


def test_known_clients_have_their_own_model_and_others_the_shared_one(fitted):
    assert fitted.clients_.tolist() == ["bonn", "oslo", "rome"]
    assert fitted.score(X, Y, groups=GROUPS) > 0.9
    shared = fitted.predict_proba(X)
    mixed = np.where(GROUPS == "oslo", "oslo", "paris")
    found = fitted.predict_proba(X, groups=mixed)
    np.testing.assert_array_equal(found[mixed == "paris"], shared[mixed == "paris"])
    scaled = fitted.scaler_.transform(X).astype(np.float32)
    own = softmax(np.asarray(jax.vmap(fitted.client_model("oslo"))(scaled), np.float64), axis=1)
    np.testing.assert_allclose(found[mixed == "oslo"], own[mixed == "oslo"], rtol=1e-5)
    assert np.abs(found - shared)[mixed == "oslo"].max() > 0.5
    np.testing.assert_array_equal(fitted.predict(X, groups=mixed), fitted.classes_[found.argmax(axis=1)])


def test_clones_pickles_and_later_settings_do_not_touch_what_is_fitted(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert clone(fitted).get_params() == fitted.get_params()
    again.set_params(model="mlp", method="local")
    np.testing.assert_array_equal(again.predict_proba(X, groups=GROUPS), fitted.predict_proba(X, groups=GROUPS))


def test_groups_are_routed_through_pipelines_and_cross_validation():
    with config_context(enable_metadata_routing=True):
        asked = PersonalizedClassifier(**ASKED, random_state=3)
        asked.set_fit_request(groups=True).set_score_request(groups=True)
        scores = cross_val_score(
            make_pipeline(StandardScaler(), asked),
            X,
            Y,
            params={"groups": GROUPS},
            cv=GroupKFold(3),
            error_score="raise",
        )
    # Each fold's city is unknown, so the model of the two others answers: wrong on oslo, half right on the others.
    assert scores.min() < 0.3


def test_a_method_without_a_shared_model_says_so():
    local = PersonalizedClassifier("local", rounds=1, random_state=0).fit(X, Y, groups=GROUPS)
    with pytest.raises(ConfigError, match="no shared model that could predict client 'paris', unknown to"):
        local.predict(X[:2], groups=["rome", "paris"])
    with pytest.raises(ConfigError, match="could predict rows without groups; give groups= of known clients"):
        local.predict(X[:2])


def test_regression_labels_are_scaled_and_predictions_are_in_their_units():
    """Per-client least squares recovers y = a_i x + b_i where labels are around 50,000."""
    slopes, offsets = np.repeat([10.0, -30.0, 20.0], 40), np.repeat([5e4, 5.2e4, 4.9e4], 40)
    y = slopes * X[:, 0] + offsets
    settings = {"rate": 0.2, "local_steps": 20, "batch_size": 0}
    fitted = PersonalizedRegressor("local", settings=settings, rounds=20, random_state=0).fit(X, y, groups=GROUPS)
    np.testing.assert_allclose(fitted.predict(X, groups=GROUPS), y, atol=1.0)
    assert fitted.score(X, y, groups=GROUPS) > 0.9999


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": "3"}, "^rounds = '3' must be a whole number of at least 1, or 'auto'$"),
        ({"rounds": "automatic"}, "^rounds = 'automatic' must be a whole number of at least 1, or 'auto'$"),
        ({"rounds": 0}, "^rounds = 0 must be"),
        ({"rounds": None}, "^rounds = None must be"),
        ({"rate": "fast"}, "^rate = 'fast' must be a number"),
        ({"validation_fraction": 1.5}, "^validation_fraction = 1.5 must be a number above 0 and below 1$"),
        ({"validation_fraction": 0}, "^validation_fraction = 0 must be"),
        ({"validation_fraction": "0.2", "rounds": 3}, "^validation_fraction = '0.2' must be"),
        ({"validation_fraction": float("nan")}, "^validation_fraction = nan must be"),
        ({"cohort": "2"}, "cohort = '2' must be a number or null"),
        ({"settings": 3}, "settings must be a dictionary, as .*, not 3"),
        ({"method": "fedavgg"}, "did you mean 'fedavg'"),
        ({"settings": {"lr": 0.1}}, "did you mean 'rate'"),
        ({"method": idiolect.FedAvg(), "settings": {"rate": 0.1}}, "settings go with the name of a method"),
        ({"model": "linear"}, "model linear is for regression"),
        ({"standardise": False}, "too large a value for float32"),
    ],
)
def test_wrong_settings_are_one_line(change, message):
    x = X * 1e36 if "standardise" in change else X
    with pytest.raises(ConfigError, match=message):
        PersonalizedClassifier().set_params(**change).fit(x, Y, groups=GROUPS)


@pytest.mark.second
def test_scikit_learn_is_imported_by_the_estimators_alone_and_missed_in_one_line():
    code = (
        "import sys; sys.modules['sklearn'] = None\nimport idiolect\n"
        "try: idiolect.PersonalizedClassifier\nexcept idiolect.ConfigError as error: print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'idiolect[sklearn]'" in shown


def test_each_row_has_its_clients_number_and_an_unknown_one_has_none():
    names = column_of(pd.Series(["b", "a", "b"], index=[7, 8, 9]), 3)
    assert clients_of(names).tolist() == ["a", "b"]
    assert rows_of(["b", "c", "a"], clients_of(names)).tolist() == [1, -1, 0]
    assert rows_of([2.0, 1], np.array([1, 2])).tolist() == [1, 0]  # a column with gaps elsewhere is read as floats


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: column_of(["a"], 2), r"of each of 2 rows; their shape is \(1,\)"),
        (lambda: column_of([["a", "b"]], 2), r"shape is \(1, 2\)"),
        (lambda: column_of(["a", None], 2), "row 1 has no client"),
        (lambda: column_of([1.0, np.nan], 2), "row 1 has no client"),
        (lambda: clients_of(np.array(["a", 1], dtype=object)), "all numbers or all texts"),
        (
            lambda: rows_of(["1"], np.array([1, 2])),
            "groups hold '1', but the clients that fit has seen are such as 1",
        ),
    ],
)
def test_what_names_no_clients_is_told(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
