import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data import synthetic
from tests.data.conftest import total_sizes


@pytest.fixture(scope="module")
def published():
    return synthetic()


def test_published_sizes(published):
    sizes = total_sizes(published)
    assert len(sizes) == 100
    assert (sizes.min(), sizes.max(), np.median(sizes), sizes.sum()) == (250, 25810, 577.5, 205795)
    assert published.feature_shape == (60,)
    assert published.num_outputs == 10
    assert published.validation.sizes.sum() == 0
    assert published.train.x.dtype == np.float32
    assert published.train.y.dtype == np.int32


def test_inputs_have_the_stated_covariance(published):
    largest = int(np.argmax(published.train.sizes))
    x, _ = published.train.client(largest)
    variances = np.arange(1, 61) ** -1.2
    np.testing.assert_allclose(x.var(axis=0), variances, rtol=0.05)


def test_labels_follow_the_published_draw_order():
    """The first client again, drawn by hand from the same stream."""
    random = np.random.RandomState(3)
    count = (random.lognormal(4, 2, 2).astype(int) + 50) * 5
    u, b = random.normal(0, 0.5, 2), random.normal(0, 0.5, 2)
    centre, _ = (random.normal(value, 1, 60) for value in b)
    weights, bias = random.normal(u[0], 1, (60, 10)), random.normal(u[0], 1, 10)
    x = random.multivariate_normal(centre, np.diag(np.arange(1, 61) ** -1.2), count[0])
    y = np.argmax(x @ weights + bias, axis=1)
    data = synthetic(clients=2, seed=3)
    found = np.concatenate([data.train.client(0)[0], data.test.client(0)[0]])
    labels = np.concatenate([data.train.client(0)[1], data.test.client(0)[1]])
    drawn = x.astype(np.float32)
    order, expected = np.argsort(found[:, 0]), np.argsort(drawn[:, 0])
    np.testing.assert_array_equal(found[order], drawn[expected])
    np.testing.assert_array_equal(labels[order], y[expected])


def test_equal_arguments_equal_bits():
    first, again, other = (synthetic(clients=3, seed=s, max_size=300) for s in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.provenance == again.provenance


def test_split_seed_moves_samples_only():
    first, other = (synthetic(clients=3, max_size=300, split_seed=s) for s in (0, 1))
    np.testing.assert_array_equal(first.train.sizes, other.train.sizes)
    assert first.provenance["pool"] == other.provenance["pool"]
    assert first.fingerprint != other.fingerprint


def test_cap_is_noted():
    data = synthetic(clients=20, max_size=400, validation=0.1)
    assert total_sizes(data).max() == 400
    assert "capped at max_size=400" in data.notes[0]


@pytest.mark.parametrize("bad", [{"alpha": -1}, {"beta": -1}, {"clients": 0}, {"max_size": 1}, {"seed": -1}])
def test_refuses_bad_arguments(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        synthetic(**bad)
