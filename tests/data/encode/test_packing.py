import numpy as np

from idiolect.data.encode.packing import packing
from idiolect.data.encode.scaling import standardise
from idiolect.data.modalities import Modalities

RNG = np.random.default_rng(0)
LAYOUT = Modalities(("signal", "more"), ((6, 3), (6, 2)))
TRAIN = np.arange(12)


def test_each_modality_is_normalised_as_it_would_be_alone():
    x = RNG.normal(5, 2, (20, 6, 5)).astype(np.float32)
    for normalisation in ("none", "zscore-train", "window"):
        found = packing(LAYOUT, x, normalisation, TRAIN)(x[12:])
        for name, columns in (("signal", slice(0, 3)), ("more", slice(3, 5))):
            part = x[..., columns]
            np.testing.assert_array_equal(
                LAYOUT.part(found, name), standardise(normalisation, part, TRAIN)(part[12:])
            )
            np.testing.assert_array_equal(LAYOUT.present(found, name), 1)


def test_a_modality_of_zeros_is_absent_and_not_fitted_on_if_so_wished():
    x = RNG.normal(5, 2, (20, 6, 5)).astype(np.float32)
    x[[0, 3, 15], :, :3] = 0
    kept = np.setdiff1d(TRAIN, [0, 3])
    found = packing(LAYOUT, x, "zscore-train", TRAIN, zeros_are_absent=True)(x)
    assert np.flatnonzero(LAYOUT.present(found, "signal") == 0).tolist() == [0, 3, 15]
    np.testing.assert_array_equal(LAYOUT.part(found, "signal")[[0, 3, 15]], 0)
    others = np.setdiff1d(np.arange(20), [0, 3, 15])
    expected = standardise("zscore-train", x[..., :3], kept)(x[others][..., :3])
    np.testing.assert_array_equal(LAYOUT.part(found, "signal")[others], expected)
    np.testing.assert_array_equal(LAYOUT.present(found, "more"), 1)
    plain = packing(LAYOUT, x, "none", TRAIN)(x)
    np.testing.assert_array_equal(LAYOUT.present(plain, "signal"), 1)
    for zeros in (True, False):
        assert packing(LAYOUT, x, "none", TRAIN, zeros_are_absent=zeros)(x[:0]).shape == (0, LAYOUT.width)


def test_a_time_of_zeros_is_padding_if_so_wished():
    x = RNG.normal(5, 2, (20, 6, 5)).astype(np.float32)
    x[:, 4:, :3] = 0
    found = packing(LAYOUT, x, "zscore-train", TRAIN, zeros_are_absent=True)(x)
    expected = standardise("zscore-train", x[:, :4, :3], TRAIN)(x[:, :4, :3])
    np.testing.assert_allclose(LAYOUT.part(found, "signal")[:, :4], expected, atol=1e-6)
    np.testing.assert_array_equal(LAYOUT.part(found, "signal")[:, 4:], 0)
    np.testing.assert_array_equal(
        LAYOUT.part(found, "more"), standardise("zscore-train", x[..., 3:], TRAIN)(x[..., 3:])
    )
