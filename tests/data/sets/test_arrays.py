import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data import audit, from_arrays

RNG = np.random.default_rng(0)


def client(count, *shape, labels=3):
    return RNG.normal(size=(count, *(shape or (4,)))), RNG.integers(0, labels, count)


CLIENTS = {"north": client(20), "south": client(11)}


def test_classification():
    data = from_arrays(CLIENTS)
    assert data.clients == ("north", "south")
    assert data.task == "classification"
    assert data.classes == ("0", "1", "2")
    assert (data.train.x.dtype, data.train.y.dtype) == (np.float32, np.int32)
    assert [s.sizes.tolist() for s in (data.train, data.validation, data.test)] == [[13, 7], [2, 1], [5, 3]]
    x = np.concatenate([data.split(s).client(1)[0] for s in ("train", "validation", "test")])
    expected = CLIENTS["south"][0].astype(np.float32)
    np.testing.assert_array_equal(np.sort(x, axis=0), np.sort(expected, axis=0))


def test_float_labels_are_targets_unless_told():
    floats = {name: (x, y.astype(float)) for name, (x, y) in CLIENTS.items()}
    assert from_arrays(floats).task == "regression"
    assert from_arrays(floats).train.y.dtype == np.float32
    assert from_arrays(floats, task="classification").classes == ("0", "1", "2")
    assert from_arrays(CLIENTS, task="regression").classes == ()


def test_images_and_names():
    data = from_arrays({"a": client(8, 5, 5, 1)}, classes=["cat", "dog", "owl"], title="pets")
    assert data.feature_shape == (5, 5, 1)
    assert data.classes == ("cat", "dog", "owl")
    assert data.name == "pets"


def test_equal_arguments_equal_bits():
    assert from_arrays(CLIENTS).fingerprint == from_arrays(dict(CLIENTS)).fingerprint
    assert from_arrays(CLIENTS).fingerprint != from_arrays(CLIENTS, split_seed=1).fingerprint
    assert audit(from_arrays(CLIENTS)).fitted_on == "unknown"


def test_minimum_drops_and_says_so():
    data = from_arrays({**CLIENTS, "tiny": client(1)}, minimum=2)
    assert data.clients == ("north", "south")
    assert "1 of 3 clients have fewer than minimum=2 samples and are dropped: tiny" in data.notes[0]


@pytest.mark.parametrize(
    ("clients", "options", "message"),
    [
        ({}, {}, "no clients"),
        ({"b": client(9), "a": client(1)}, {}, "client 'a' has 1 sample, too few.*minimum=2"),
        ({"a": (np.zeros((0, 2)), np.zeros(0))}, {}, "client 'a'.*no samples"),
        ({"a": (np.zeros((3, 2)), np.zeros(4))}, {}, "client 'a'.*3 feature rows but 4 labels"),
        ({"a": (np.zeros(3), np.zeros(3))}, {}, "client 'a'.*shape"),
        ({"a": (np.array([["x"]] * 3), np.zeros(3))}, {}, "client 'a'.*must be numbers"),
        ({"a": client(9, 4), "b": client(9, 5)}, {}, r"client 'b' has features of shape \(5,\)"),
        ({"a": client(3)}, {"minimum": 4}, "every client has fewer than minimum=4"),
        (
            {"a": (np.full((8, 2), np.nan), np.arange(8) % 2)},
            {},
            r"client 'a': features\[0, 0\] is nan \(16 such in all\)",
        ),
    ],
)
def test_refuses(clients, options, message):
    with pytest.raises(DataError, match=message):
        from_arrays(clients, **options)


def test_a_regressions_labels_are_scaled_and_told_in_their_units():
    rng = np.random.default_rng(0)
    x = {name: rng.normal(size=(40, 3)) for name in "ab"}
    arrays = {name: (part, 50_000 + 900 * part.sum(axis=1)) for name, part in x.items()}
    data = from_arrays(arrays)
    assert abs(data.train.y.mean()) < 1e-5
    assert abs(data.train.y.std() - 1) < 1e-5
    assert data.label_scale == data.target.scale
    plain = from_arrays(arrays, scale_labels=False)
    np.testing.assert_allclose(data.target.decode(data.test.y), plain.test.y, rtol=1e-6)
    assert plain.label_scale == 1
    assert plain.fingerprint != data.fingerprint


def test_digits_that_single_precision_loses_are_told():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    assert not [note for note in from_arrays({"a": (x, np.arange(40) % 2)}).notes if "lose digits" in note]
    x[:, 0] = 0.1  # no number of single precision, but a constant tells nothing apart
    x[:, 1] += 1e9
    notes = from_arrays({"a": (x, np.arange(40) % 2)}).notes
    assert "1 features lose digits in single precision, the first is number 1 (values around 1e+09" in notes[-1]
