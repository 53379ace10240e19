"""Packed samples of several modalities."""

import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.modalities import Modalities

LAYOUT = Modalities(("signal", "text"), ((4, 3), (5,)))


def _parts(rng: np.random.Generator, count: int = 6) -> dict[str, np.ndarray]:
    return {"signal": rng.normal(size=(count, 4, 3)), "text": rng.normal(size=(count, 5))}


def test_each_modality_comes_out_as_it_went_in_and_an_absent_one_is_zero() -> None:
    parts = _parts(np.random.default_rng(0))
    there = {"signal": np.array([1, 1, 0, 1, 0, 1], bool), "text": np.array([1, 0, 1, 1, 1, 1], bool)}
    packed = LAYOUT.pack(parts, there)
    assert packed.shape == (6, LAYOUT.width) == (6, 12 + 5 + 2)
    for x in (packed, jnp.asarray(packed)):
        for name in LAYOUT.names:
            shape = (6, *(1,) * (parts[name].ndim - 1))
            expected = np.where(there[name].reshape(shape), parts[name], 0).astype(np.float32)
            np.testing.assert_array_equal(LAYOUT.part(x, name), expected)
            np.testing.assert_array_equal(LAYOUT.present(x, name), there[name])
            np.testing.assert_array_equal(LAYOUT.part(x[0], name), expected[0])


def test_what_an_absent_modality_held_leaves_no_trace() -> None:
    parts = _parts(np.random.default_rng(1))
    there = {"signal": np.ones(6, bool), "text": np.arange(6) % 2 == 0}
    spoilt = {**parts, "text": np.where(there["text"][:, None], parts["text"], np.nan)}
    np.testing.assert_array_equal(LAYOUT.pack(parts, there), LAYOUT.pack(spoilt, there))


def test_what_cannot_be_packed_is_refused() -> None:
    parts = _parts(np.random.default_rng(2))
    with pytest.raises(DataError, match=r"'text' must have the shape \(6, 5\), it is \(6, 4\)"):
        LAYOUT.pack({**parts, "text": parts["text"][:, :4]})
    with pytest.raises(DataError, match="sample 3 has no modality at all"):
        LAYOUT.pack(parts, {name: np.arange(6) != 3 for name in LAYOUT.names})
    with pytest.raises(ConfigError, match="smell"):
        LAYOUT.part(LAYOUT.pack(parts), "smell")
    with pytest.raises(ConfigError, match="share a name"):
        Modalities(("a", "a"), ((1,), (1,)))


def test_no_samples_are_packed_to_no_rows() -> None:
    empty = LAYOUT.pack({"signal": np.zeros((0, 4, 3)), "text": np.zeros((0, 5))})
    assert empty.shape == (0, LAYOUT.width)
    assert LAYOUT.part(empty, "signal").shape == (0, 4, 3)
