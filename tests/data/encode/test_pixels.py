import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.encode.pixels import normalise, pixel_statistics

IMAGES = np.random.default_rng(0).integers(0, 256, (9000, 6), dtype=np.uint8)
IMAGES[:, 0] = 0
IMAGES[8999, 0] = 200
TRAIN = np.arange(0, 8999)


def test_statistics_are_exact():
    mean, deviation = pixel_statistics(IMAGES)
    np.testing.assert_allclose(mean, IMAGES.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(deviation, IMAGES.std(axis=0), rtol=1e-12)
    mean, deviation = pixel_statistics(IMAGES, TRAIN)
    np.testing.assert_allclose(deviation, IMAGES[TRAIN].std(axis=0), rtol=1e-12)
    assert deviation[0] == 0


def test_published_normalisation_sees_all_images():
    pixels = IMAGES.astype(np.float64)
    expected = (pixels - pixels.mean(axis=0)) / (pixels.std(axis=0) + 0.001)
    found = normalise("pixel-zscore-all", IMAGES, TRAIN)(IMAGES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_training_normalisation_does_not_depend_on_other_images():
    changed = IMAGES.copy()
    changed[8999] = 77
    rows = IMAGES[TRAIN[:10]]
    np.testing.assert_array_equal(
        normalise("pixel-zscore-train", IMAGES, TRAIN)(rows), normalise("pixel-zscore-train", changed, TRAIN)(rows)
    )
    assert not np.array_equal(
        normalise("pixel-zscore-all", IMAGES, TRAIN)(rows), normalise("pixel-zscore-all", changed, TRAIN)(rows)
    )


def test_a_pixel_dark_in_training_does_not_explode():
    assert normalise("pixel-zscore-train", IMAGES, TRAIN)(IMAGES[8999:])[0, 0] == 0


def test_channels_have_one_mean_and_deviation_each():
    rows = IMAGES[TRAIN].reshape(-1, 2).astype(np.float64)  # two channels, side by side
    expected = (IMAGES.reshape(-1, 2) - rows.mean(axis=0)) / (rows.std(axis=0) + 0.001)
    found = normalise("channel-zscore-train", IMAGES, TRAIN, channels=2)(IMAGES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected.reshape(IMAGES.shape), atol=1e-5)
    whole = normalise("channel-zscore-train", IMAGES, TRAIN)(IMAGES[TRAIN]).astype(np.float64)
    assert abs(whole.mean()) < 1e-5
    assert abs(whole.std() - 1) < 1e-4


def test_unit_and_unknown():
    np.testing.assert_allclose(normalise("unit", IMAGES, TRAIN)(IMAGES), IMAGES / 255.0, atol=1e-7)
    with pytest.raises(ConfigError, match="did you mean 'pixel-zscore-all'"):
        normalise("pixel-zscore-al", IMAGES, TRAIN)
