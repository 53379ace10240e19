import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.encode.scaling import check_scaling, provenance_of, standardise

RNG = np.random.default_rng(0)
TRAIN = np.arange(0, 40)


def test_features_are_scaled_by_training_rows():
    x = RNG.normal(3, 5, (60, 4)).astype(np.float32)
    found = standardise("zscore-train", x, TRAIN)(x)
    expected = (x - x[TRAIN].astype(float).mean(0)) / x[TRAIN].astype(float).std(0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)
    changed = x.copy()
    changed[40:] = 1e6
    np.testing.assert_array_equal(standardise("zscore-train", changed, TRAIN)(x), found)


def test_a_channel_of_a_signal_has_one_scale():
    x = RNG.normal([1, -2], [3, 0.1], (60, 16, 2)).astype(np.float32)
    found = standardise("zscore-train", x, TRAIN)(x)
    for channel in (0, 1):
        training = x[TRAIN][:, :, channel].astype(float)
        expected = (x[:, :, channel] - training.mean()) / training.std()
        np.testing.assert_allclose(found[:, :, channel], expected, atol=1e-5)


def test_a_constant_feature_is_only_centred():
    x = np.full((60, 1), 0.1, dtype=np.float32)
    x[50] = 5
    found = standardise("zscore-train", x, TRAIN)(x)
    assert found[0, 0] == pytest.approx(0, abs=1e-7)
    assert found[50, 0] == pytest.approx(4.9)


def test_none_changes_nothing():
    x = RNG.normal(size=(5, 2))
    np.testing.assert_array_equal(standardise("none", x, TRAIN)(x), x.astype(np.float32))


def test_unknown():
    for call in (lambda: check_scaling("zscore"), lambda: standardise("zscore", np.zeros((2, 2)), TRAIN)):
        with pytest.raises(ConfigError, match="did you mean 'zscore-train'"):
            call()


def test_what_a_publisher_fitted_on_test_samples_stays_so():
    assert provenance_of("none", "as published", "unknown") == {"name": "as published", "fitted_on": "unknown"}
    assert provenance_of("zscore-train", "as published", "unknown") == {"name": "zscore-train", "fitted_on": "train"}
    assert provenance_of("zscore-train", "scaled", "all")["fitted_on"] == "all"


def test_a_window_by_itself():
    x = RNG.normal([1, -2], [3, 0.1], (6, 16, 2)).astype(np.float32)
    x[0, :, 0] = 4  # constant: only centred
    found = standardise("window", x, TRAIN)(x)
    np.testing.assert_allclose(found.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(found.std(axis=1)[1:], 1, atol=2e-4)
    np.testing.assert_array_equal(found[0, :, 0], 0)
    np.testing.assert_array_equal(standardise("window", x, TRAIN)(x[2:3]), found[2:3])
    with pytest.raises(ConfigError, match="needs signals"):
        standardise("window", x[:, :, 0], TRAIN)
    assert provenance_of("window", "none", "nothing") == {"name": "window", "fitted_on": "nothing"}
    assert provenance_of("window", "scaled", "all")["fitted_on"] == "all"


@pytest.mark.parametrize("name", ["none", "zscore-train", "window"])
def test_padding_counts_nowhere_and_stays_zero(name):
    rng = np.random.default_rng(1)
    long = rng.normal(3, 2, (8, 5, 2)).astype(np.float32)
    padded = np.zeros((8, 9, 2), np.float32)
    places = [1, 2, 4, 5, 8]
    padded[:, places] = long
    train = np.arange(6)
    found = standardise(name, padded, train, padded=True)(padded)
    np.testing.assert_allclose(found[:, places], standardise(name, long, train)(long), atol=1e-6)
    np.testing.assert_array_equal(np.delete(found, places, axis=1), 0)
    np.testing.assert_array_equal(standardise(name, padded, train, padded=True)(np.zeros_like(padded)), 0)
