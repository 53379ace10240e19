import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from idiolect.study.advice.blend import CONCENTRATION, blended, likelihoods, loss_of, weights
from idiolect.study.advice.policies import FOLDS, blend
from idiolect.study.advice.scored import candidate


def test_a_likelihood_is_that_of_the_label_relative_to_the_best_models() -> None:
    shares = np.array([[0.2, 0.9], [0.8, 0.3]])
    np.testing.assert_allclose(likelihoods(-np.log(shares), True), shares / [0.8, 0.9])
    errors = np.array([[1.0, 4.0], [9.0, 0.0]])  # the first model has the least mean, 2.5, the variance
    expected = np.exp(-errors / 5) / np.exp(-errors / 5).max(axis=0)
    np.testing.assert_allclose(likelihoods(errors, False), expected)


def test_the_weights_of_one_client_maximise_the_likelihood_of_its_rows() -> None:
    """With one client the prior's mean is its own weights, and its pull vanishes: plain maximum likelihood."""
    rng = np.random.default_rng(0)
    likelihood = rng.uniform(size=(3, 400)) ** 2
    found = weights(likelihood, np.zeros(400, int), 1)[0]

    def value(z: np.ndarray) -> float:
        return -float(np.log(softmax(np.append(z, 0.0)) @ likelihood).sum())

    best = minimize(value, np.zeros(2), method="BFGS")
    np.testing.assert_allclose(found, softmax(np.append(best.x, 0.0)), atol=2e-3)


def test_the_weights_of_clients_are_fixed_points_and_those_without_rows_have_the_federations() -> None:
    rng = np.random.default_rng(1)
    owners = np.repeat([0, 1], [60, 6])
    likelihood = np.where(owners == 0, [[0.9], [0.2]], [[0.3], [0.8]]) + 0.1 * rng.uniform(size=(2, 66))
    found = weights(likelihood, owners, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    pi = found.mean(axis=0)
    np.testing.assert_allclose(found[2], pi, atol=2e-4)
    shares = found[owners].T * likelihood
    shares /= shares.sum(axis=0)
    for i, rows in enumerate((60, 6)):
        expected = (shares[:, owners == i].sum(axis=1) + CONCENTRATION * pi) / (rows + CONCENTRATION)
        np.testing.assert_allclose(found[i], expected, atol=2e-3)
    assert found[0, 0] > found[2, 0] > found[1, 0]
    assert found[1, 1] < 0.97 < found[0, 0]  # few rows are drawn to the federation's weights, many are not


def test_predictions_are_mixed_by_their_clients_weights() -> None:
    share, owners = np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([0, 1])
    numbers = blended([np.array([4.0, 4.0]), np.array([8.0, 8.0])], share, owners)
    np.testing.assert_allclose(numbers, [7.0, 4.0])
    np.testing.assert_allclose(loss_of(numbers, np.array([5.0, 5.0])), [4.0, 1.0])
    classes = blended([np.array([[1.0, 0.0]] * 2), np.array([[0.2, 0.8]] * 2)], share, owners)
    np.testing.assert_allclose(classes, [[0.4, 0.6], [1.0, 0.0]])
    np.testing.assert_allclose(loss_of(classes, np.array([0, 0])), -np.log([0.4, 1.0]))
    assert np.isfinite(loss_of(classes, np.array([0, 1]))).all()


@pytest.mark.parametrize("classes", [True, False])
def test_a_blend_scores_test_rows_by_all_validation_rows_and_these_by_other_folds(classes: bool) -> None:
    rng = np.random.default_rng(2)
    n = 4 * FOLDS
    owners = np.repeat([0, 1], n // 2), np.repeat([0, 1], 3)
    labels = [tuple(rng.integers(2, size=rows) if classes else rng.normal(size=rows) for rows in (n, 6))] * 2
    made = [
        candidate(
            name,
            "shared",
            [tuple(rng.normal(size=(rows, 2) if classes else rows) for rows in (n, 6)) for _ in range(2)],
            labels,
        )
        for name in ("one", "other")
    ]
    found = blend(made, owners, 2, labels)
    for draw in range(2):
        likelihood = likelihoods(np.stack([one.validation[draw] for one in made]), classes)
        predictions = [one.predictions[draw] for one in made if one.predictions]
        share = weights(likelihood, owners[0], 2)
        test = loss_of(blended([one[1] for one in predictions], share, owners[1]), labels[draw][1])
        np.testing.assert_allclose(found.candidate.test[draw], test)
        np.testing.assert_array_equal(found.choices[draw], share.argmax(axis=1))
        for fold in range(FOLDS):
            held = np.arange(n) % FOLDS == fold
            share = weights(likelihood[:, ~held], owners[0][~held], 2)
            mixed = blended([one[0][held] for one in predictions], share, owners[0][held])
            np.testing.assert_allclose(found.candidate.validation[draw][held], loss_of(mixed, labels[draw][0][held]))
    assert (found.candidate.right is None) == (not classes)


def test_mixing_two_models_of_independent_errors_is_better_than_each() -> None:
    rng = np.random.default_rng(3)
    rows = 200
    labels = [(rng.normal(size=rows), rng.normal(size=rows))]
    outputs = [[(labels[0][0] + rng.normal(size=rows), labels[0][1] + rng.normal(size=rows))] for _ in range(2)]
    made = [candidate(str(i), "shared", each, labels) for i, each in enumerate(outputs)]
    owners = np.zeros(rows, int)
    found = blend(made, (owners, owners), 1, labels).candidate
    for one in made:
        assert found.test[0].mean() < 0.75 * one.test[0].mean()
        assert found.validation[0].mean() < 0.75 * one.validation[0].mean()
