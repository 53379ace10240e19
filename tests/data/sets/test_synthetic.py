import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data import synthetic
from idiolect.data.sets.registry import load
from idiolect.data.sets.synthetic import synthetic_population
from tests.data.conftest import total_sizes
from tests.tiers import second


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


def test_a_client_depends_on_its_number_and_the_seed_alone() -> None:
    few, many, other = (synthetic_population(clients=n, seed=s) for n, s in ((4, 0), (900, 0), (4, 1)))
    for name in ("train", "test"):
        for index in range(4):
            for a, b in zip(few.split(name).client(index), many.split(name).client(index), strict=True):
                np.testing.assert_array_equal(a, b)
        assert not np.array_equal(few.split(name).client(3)[0], other.split(name).client(3)[0])
    assert few.fingerprint != many.fingerprint != other.fingerprint


def test_splits_are_other_samples_of_the_same_client() -> None:
    data = synthetic_population(clients=300, validation=0.2, max_size=200, scale=2.0)
    centres = {
        name: np.array([data.split(name).client(i)[0].mean(axis=0) for i in range(300)]) for name in ("train", "test")
    }
    assert not set(map(tuple, data.train.client(0)[0])) & set(map(tuple, data.test.client(0)[0]))
    apart = ((centres["train"] - centres["test"]) ** 2).mean()
    assert apart < 0.02 < 0.8 < centres["train"].var()


@pytest.mark.parametrize("beta", [0.0, second(2.0)])
def test_inputs_have_the_moments_of_the_definition(beta: float) -> None:
    """Within a client Var x_j = j^-1.2; between clients the variance of a coordinate's mean is 1 + beta^2."""
    data = synthetic_population(beta=beta, clients=600, max_size=100, scale=2.0)
    parts = [data.train.client(i)[0] for i in range(600)]
    inside = np.mean([part.var(axis=0, ddof=1) for part in parts], axis=0)
    np.testing.assert_allclose(inside, np.arange(1, 61) ** -1.2, rtol=0.05)
    between = np.array([part.mean(axis=0) for part in parts]).var(axis=0).mean()
    assert between == pytest.approx(1 + beta**2, rel=0.12)  # beta's part is one draw a client: 600 of them


@pytest.mark.parametrize("alpha", [second(0.0), 1.0])
def test_labels_are_as_uneven_as_in_the_published_draws(alpha: float) -> None:
    """The mean share of a client's most frequent label, of samples as many."""
    ours = synthetic_population(alpha, 0.5, clients=400, max_size=100, scale=5.0)
    theirs = synthetic(alpha, 0.5, clients=400, max_size=100)

    def share(data: object) -> np.ndarray:
        return np.array([np.bincount(data.train.client(i)[1]).max() / 75 for i in range(400)])  # pyright: ignore

    assert set(ours.train.sizes) == set(theirs.train.sizes) == {75}
    error = np.hypot(share(ours).std(), share(theirs).std()) / np.sqrt(400)
    assert abs(share(ours).mean() - share(theirs).mean()) < 4 * error


def test_labels_are_those_of_one_linear_model_a_client() -> None:
    """What is learnt from a client's training samples holds for its test samples, and not for another client's."""
    data = synthetic_population(alpha=0.0, clients=40, max_size=3000, scale=60.0)
    mixed = [i for i in range(40) if np.bincount(data.test.client(i)[1]).max() < 0.6 * data.test.sizes[i]]
    assert len(mixed) >= 2

    x, y = data.train.client(mixed[0])
    centre = x.mean(axis=0)

    def padded(x: np.ndarray) -> np.ndarray:
        return np.hstack([(x - centre) * np.arange(1, 61) ** 0.6, np.ones((len(x), 1))])

    weights = np.zeros((61, 10))
    for _ in range(1500):
        logits = padded(x) @ weights
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights -= 0.3 * padded(x).T @ (odds / odds.sum(axis=1, keepdims=True) - np.eye(10)[y]) / len(y)
    own, other = (
        np.mean((padded(x) @ weights).argmax(axis=1) == y)
        for x, y in (data.test.client(mixed[0]), data.test.client(mixed[1]))
    )
    assert other < 0.7 < 0.93 < own


def test_sizes_follow_the_rule() -> None:
    data = synthetic_population(clients=5000, scale=0.4, max_size=100, test=0.25, validation=0.1)
    whole = data.train.sizes + data.validation.sizes + data.test.sizes
    assert (whole.min(), whole.max()) == (20, 100)
    drawn = np.random.default_rng(0).lognormal(4, 2, 5000)
    np.testing.assert_array_equal(whole, np.minimum(np.ceil(0.4 * (drawn.astype(int) + 50)), 100))
    np.testing.assert_array_equal(data.test.sizes, whole - np.floor(whole * 0.75))


def test_bad_arguments_are_refused() -> None:
    for given, said in (
        ({"clients": 0}, "clients must lie"),
        ({"alpha": -1.0}, "alpha"),
        ({"max_size": 5}, "max_size"),
        ({"scale": 0.0}, "scale"),
        ({"test": 1.0}, "test fraction"),
        ({"seed": -1}, "seed"),
    ):
        with pytest.raises(ConfigError, match=said):
            load({"name": "synthetic-population", **given})
