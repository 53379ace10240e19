import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from idiolect.study.advice import regressions
from idiolect.study.advice.regressions import (
    PENALTIES,
    Fits,
    Rows,
    folds_of,
    mixed,
    own_regressions,
    pooled_regression,
)


def rows_of(sizes: list[int], classes: int, seed: int = 0, width: int = 4) -> Rows:
    """Rows whose clients have intercepts of their own, and features of different scales."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    x = rng.normal(size=(n, width)) * np.geomspace(0.3, 3, width)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    outputs = max(classes, 1)
    signal = x @ rng.normal(size=(width, outputs)) + rng.normal(size=(len(sizes), outputs))[owners]
    y = (signal + rng.gumbel(size=signal.shape)).argmax(axis=1) if classes else signal[:, 0] + rng.normal(size=n)
    return Rows(x.astype(np.float32), y, np.concatenate([[0], np.cumsum(sizes)]))


def client_of(rows: Rows, i: int) -> tuple[np.ndarray, np.ndarray]:
    mine = slice(rows.offsets[i], rows.offsets[i + 1])
    return rows.x[mine].astype(np.float64), rows.y[mine]


def empty_like(rows: Rows) -> Rows:
    return Rows(rows.x[:0], rows.y[:0], np.zeros_like(rows.offsets))


def sklearn_logistic(penalty: float) -> LogisticRegression:
    return LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000, solver="newton-cholesky")


def mixture(shares: np.ndarray, y: np.ndarray) -> np.ndarray:
    guess = (np.bincount(y, minlength=shares.shape[1]) + 1) / (len(y) + shares.shape[1])
    return (len(y) * shares + guess) / (len(y) + 1)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_own_logistic_is_scikit_learns(classes: int, penalty: float) -> None:
    train, test = rows_of([12, 40, 25, 300], classes), rows_of([5, 9, 7, 4], classes, seed=1)
    outputs = own_regressions(train, empty_like(train), classes, np.array([penalty])).outputs(test.x, test.offsets)
    for i in range(4):
        x, y = client_of(train, i)
        assert len(np.unique(y)) == classes
        expected = mixture(sklearn_logistic(penalty).fit(x, y).predict_proba(client_of(test, i)[0]), y)
        found = np.exp(outputs[test.offsets[i] : test.offsets[i + 1]])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def dummies_of(rows: Rows) -> np.ndarray:
    return np.concatenate([rows.x, np.repeat(np.eye(len(rows.sizes)), rows.sizes, axis=0)], axis=1)


@pytest.mark.parametrize("dummies", [True, False])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_pooled_regression_is_scikit_learns_with_a_column_per_client(classes: int, dummies: bool) -> None:
    train, test = rows_of([12, 40, 1, 25], classes), rows_of([5, 0, 3, 7], classes, seed=1)
    penalty = 2.0
    fits = pooled_regression(train, test, classes, np.array([penalty]), dummies=dummies)
    x, new = (dummies_of(each) if dummies else each.x.astype(np.float64) for each in (train, test))
    found = fits.outputs(test.x, test.offsets)
    if classes:
        expected = mixture(sklearn_logistic(penalty).fit(x, train.y).predict_proba(new), train.y)
        np.testing.assert_allclose(np.exp(found), expected, atol=1e-6)
    else:
        np.testing.assert_allclose(found, Ridge(penalty).fit(x, train.y).predict(new), atol=1e-8)


def test_own_ridge_is_scikit_learns() -> None:
    train, test = rows_of([3, 40, 250], 0), rows_of([5, 9, 7], 0, seed=1)
    outputs = own_regressions(train, empty_like(train), 0, np.array([0.5])).outputs(test.x, test.offsets)
    for i in range(3):
        expected = Ridge(0.5).fit(*client_of(train, i)).predict(client_of(test, i)[0])
        np.testing.assert_allclose(outputs[test.offsets[i] : test.offsets[i + 1]], expected, atol=1e-8)


def score_of_mixture(model: LogisticRegression, x: np.ndarray, y: np.ndarray) -> float:
    shares = mixed(model.decision_function(x)[:, None], model.counts)
    return float(shares[np.arange(len(y)), y].sum())


class Counting(LogisticRegression):
    """Scikit-learn's regression that remembers how many rows of each class it was fitted on."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Counting":
        self.counts = np.bincount(y, minlength=2)
        return super().fit(X, y)


def test_folds_choose_the_penalty_of_scikit_learns_grid_search() -> None:
    train = rows_of([40, 60, 90], 2, seed=3)
    fits = own_regressions(train, empty_like(train), 2)
    for i in range(3):
        x, y = client_of(train, i)
        search = GridSearchCV(
            Counting(tol=1e-8, max_iter=10_000, solver="newton-cholesky"),
            {"C": 1 / PENALTIES},
            scoring=score_of_mixture,
            cv=PredefinedSplit(folds_of(y, 2)),
        )
        assert fits.penalties[i] == pytest.approx(1 / search.fit(x, y).best_params_["C"])
    assert len(set(fits.penalties)) > 1


def test_folds_deal_each_class_evenly() -> None:
    y = np.array([0] * 7 + [1] * 3)
    folds = folds_of(y, 2)
    assert sorted(np.bincount(folds)) == [3, 3, 4]
    assert set(folds[y == 1]) == {0, 1, 2}


@pytest.mark.parametrize("classes", [0, 2])
def test_validation_rows_choose_for_clients_that_have_enough(classes: int) -> None:
    train, validation = rows_of([400, 220], classes, width=40), rows_of([300, 40], classes, seed=0, width=40)
    fits = own_regressions(train, validation, classes)
    every = [own_regressions(train, validation, classes, np.array([p])) for p in PENALTIES]
    for i in range(2):
        losses = [_loss(one, validation, i, classes) for one in every]
        assert fits.penalties[i] == PENALTIES[int(np.argmin(losses))]


def _loss(fits: Fits, rows: Rows, i: int, classes: int) -> float:
    mine = slice(rows.offsets[i], rows.offsets[i + 1])
    outputs, y = fits.outputs(rows.x, rows.offsets)[mine], rows.y[mine]
    return float(-outputs[np.arange(len(y)), y].mean() if classes else ((outputs - y) ** 2).mean())


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_other_clients_their_order_and_their_number_change_nothing(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = rows_of([33, 14, 120, 9], classes)
    found = own_regressions(train, empty_like(train), classes)
    order = [2, 3, 0, 1]
    parts = [client_of(train, i) for i in order]
    offsets = np.concatenate([[0], np.cumsum([len(y) for _, y in parts])])
    turned = Rows(np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]), offsets)
    monkeypatch.setattr(regressions, "_NUMBERS", 1)  # each client by itself, without padding
    other = own_regressions(turned, empty_like(turned), classes)
    np.testing.assert_array_equal(other.penalties, found.penalties[order])
    np.testing.assert_allclose(other.weights, found.weights[order], atol=1e-7)
    np.testing.assert_allclose(other.intercepts, found.intercepts[order], atol=1e-7)


def test_more_features_than_rows_are_the_same_problem() -> None:
    train, test = rows_of([20, 30], 2, width=70), rows_of([5, 5], 2, seed=1, width=70)
    outputs = own_regressions(train, empty_like(train), 2, np.array([1.0])).outputs(test.x, test.offsets)
    for i in range(2):
        x, y = client_of(train, i)
        expected = mixture(sklearn_logistic(1.0).fit(x, y).predict_proba(client_of(test, i)[0]), y)
        np.testing.assert_allclose(np.exp(outputs[test.offsets[i] : test.offsets[i + 1]]), expected, atol=1e-6)


def test_separable_rows_stay_finite() -> None:
    x = np.linspace(-1, 1, 30)[:, None].astype(np.float32)
    train = Rows(np.tile(x, (2, 1)) * 50, np.tile((x[:, 0] > 0).astype(int), 2), np.array([0, 30, 60]))
    for fits in (own_regressions(train, train, 2), pooled_regression(train, train, 2)):
        outputs = fits.outputs(train.x, train.offsets)
        assert np.isfinite(outputs).all()
        assert (outputs.argmax(axis=1) == train.y).all()
    weak = own_regressions(train, train, 2, np.array([1e-3]))
    expected = sklearn_logistic(1e-3).fit(*client_of(train, 0))
    np.testing.assert_allclose(weak.weights[0], expected.coef_, rtol=1e-4)


def test_a_class_that_a_client_lacks_keeps_the_guess_of_one_row() -> None:
    train = rows_of([40, 40], 3)
    y = train.y.copy()
    y[:40][y[:40] == 1] = 0
    lacking = Rows(train.x, y, train.offsets)
    outputs = own_regressions(lacking, empty_like(lacking), 3, np.array([1.0])).outputs(train.x, train.offsets)
    np.testing.assert_allclose(np.exp(outputs[:40, 1]), (1 / 43) / 41)
    np.testing.assert_allclose(logsumexp(outputs, axis=1), 0, atol=1e-12)
    # A softmax of two classes has twice the weights' freedom: half the penalty on one logit.
    x, labels = client_of(lacking, 0)
    expected = sklearn_logistic(0.5).fit(x, labels).predict_proba(x)
    shares = np.zeros((40, 3))
    shares[:, [0, 2]] = expected
    np.testing.assert_allclose(np.exp(outputs[:40]), mixture(shares, labels), atol=1e-6)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_two_rows_or_one_class_make_a_guess(classes: int) -> None:
    train = rows_of([2, 20, 30], classes)
    if classes:
        train.y[2:22] = 1
        train.y[:2] = [0, 1]
    fits = own_regressions(train, empty_like(train), classes)
    outputs = fits.outputs(train.x, train.offsets)
    if not classes:
        np.testing.assert_allclose(outputs[:2], train.y[:2].mean())
        return
    assert np.isnan(fits.penalties[:2]).all()
    for mine in (slice(0, 2), slice(2, 22)):
        counts = np.bincount(train.y[mine], minlength=classes)
        np.testing.assert_allclose(
            np.exp(outputs[mine]), np.tile((counts + 1) / (counts.sum() + classes), (counts.sum(), 1))
        )
