import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.encode.normalisation import (
    check_scaling,
    normalise,
    packing,
    pixel_statistics,
    provenance_of,
    standardise,
)
from idiolect.data.modalities import Modalities

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


LAYOUT = Modalities(("signal", "more"), ((6, 3), (6, 2)))
PACKED_TRAIN = np.arange(12)


def test_each_modality_is_normalised_as_it_would_be_alone():
    x = RNG.normal(5, 2, (20, 6, 5)).astype(np.float32)
    for normalisation in ("none", "zscore-train", "window"):
        found = packing(LAYOUT, x, normalisation, PACKED_TRAIN)(x[12:])
        for name, columns in (("signal", slice(0, 3)), ("more", slice(3, 5))):
            part = x[..., columns]
            np.testing.assert_array_equal(
                LAYOUT.part(found, name), standardise(normalisation, part, PACKED_TRAIN)(part[12:])
            )
            np.testing.assert_array_equal(LAYOUT.present(found, name), 1)


def test_a_modality_of_zeros_is_absent_and_not_fitted_on_if_so_wished():
    x = RNG.normal(5, 2, (20, 6, 5)).astype(np.float32)
    x[[0, 3, 15], :, :3] = 0
    kept = np.setdiff1d(PACKED_TRAIN, [0, 3])
    found = packing(LAYOUT, x, "zscore-train", PACKED_TRAIN, zeros_are_absent=True)(x)
    assert np.flatnonzero(LAYOUT.present(found, "signal") == 0).tolist() == [0, 3, 15]
    np.testing.assert_array_equal(LAYOUT.part(found, "signal")[[0, 3, 15]], 0)
    others = np.setdiff1d(np.arange(20), [0, 3, 15])
    expected = standardise("zscore-train", x[..., :3], kept)(x[others][..., :3])
    np.testing.assert_array_equal(LAYOUT.part(found, "signal")[others], expected)
    np.testing.assert_array_equal(LAYOUT.present(found, "more"), 1)
    plain = packing(LAYOUT, x, "none", PACKED_TRAIN)(x)
    np.testing.assert_array_equal(LAYOUT.present(plain, "signal"), 1)
    for zeros in (True, False):
        assert packing(LAYOUT, x, "none", PACKED_TRAIN, zeros_are_absent=zeros)(x[:0]).shape == (0, LAYOUT.width)


def test_a_time_of_zeros_is_padding_if_so_wished():
    x = RNG.normal(5, 2, (20, 6, 5)).astype(np.float32)
    x[:, 4:, :3] = 0
    found = packing(LAYOUT, x, "zscore-train", PACKED_TRAIN, zeros_are_absent=True)(x)
    expected = standardise("zscore-train", x[:, :4, :3], PACKED_TRAIN)(x[:, :4, :3])
    np.testing.assert_allclose(LAYOUT.part(found, "signal")[:, :4], expected, atol=1e-6)
    np.testing.assert_array_equal(LAYOUT.part(found, "signal")[:, 4:], 0)
    np.testing.assert_array_equal(
        LAYOUT.part(found, "more"), standardise("zscore-train", x[..., 3:], PACKED_TRAIN)(x[..., 3:])
    )


IMAGES = np.random.default_rng(0).integers(0, 256, (9000, 6), dtype=np.uint8)
IMAGES[:, 0] = 0
IMAGES[8999, 0] = 200
IMAGES_TRAIN = np.arange(0, 8999)


def test_statistics_are_exact():
    mean, deviation = pixel_statistics(IMAGES)
    np.testing.assert_allclose(mean, IMAGES.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(deviation, IMAGES.std(axis=0), rtol=1e-12)
    mean, deviation = pixel_statistics(IMAGES, IMAGES_TRAIN)
    np.testing.assert_allclose(deviation, IMAGES[IMAGES_TRAIN].std(axis=0), rtol=1e-12)
    assert deviation[0] == 0


def test_published_normalisation_sees_all_images():
    pixels = IMAGES.astype(np.float64)
    expected = (pixels - pixels.mean(axis=0)) / (pixels.std(axis=0) + 0.001)
    found = normalise("pixel-zscore-all", IMAGES, IMAGES_TRAIN)(IMAGES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_training_normalisation_does_not_depend_on_other_images():
    changed = IMAGES.copy()
    changed[8999] = 77
    rows = IMAGES[IMAGES_TRAIN[:10]]
    np.testing.assert_array_equal(
        normalise("pixel-zscore-train", IMAGES, IMAGES_TRAIN)(rows),
        normalise("pixel-zscore-train", changed, IMAGES_TRAIN)(rows),
    )
    assert not np.array_equal(
        normalise("pixel-zscore-all", IMAGES, IMAGES_TRAIN)(rows),
        normalise("pixel-zscore-all", changed, IMAGES_TRAIN)(rows),
    )


def test_a_pixel_dark_in_training_does_not_explode():
    assert normalise("pixel-zscore-train", IMAGES, IMAGES_TRAIN)(IMAGES[8999:])[0, 0] == 0


def test_channels_have_one_mean_and_deviation_each():
    rows = IMAGES[IMAGES_TRAIN].reshape(-1, 2).astype(np.float64)  # two channels, side by side
    expected = (IMAGES.reshape(-1, 2) - rows.mean(axis=0)) / (rows.std(axis=0) + 0.001)
    found = normalise("channel-zscore-train", IMAGES, IMAGES_TRAIN, channels=2)(IMAGES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.reshape(IMAGES.shape), atol=1e-5)
    whole = normalise("channel-zscore-train", IMAGES, IMAGES_TRAIN)(IMAGES[IMAGES_TRAIN]).astype(np.float64)
    assert abs(whole.mean()) < 1e-5
    assert abs(whole.std() - 1) < 1e-4


def test_unit_and_unknown():
    np.testing.assert_allclose(normalise("unit", IMAGES, IMAGES_TRAIN)(IMAGES), IMAGES / 255.0, atol=1e-7)
    with pytest.raises(ConfigError, match="did you mean 'pixel-zscore-all'"):
        normalise("pixel-zscore-al", IMAGES, IMAGES_TRAIN)
