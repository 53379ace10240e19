"""Synthetic(alpha, beta), each client made from its number."""

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.sets.population import synthetic_population
from idiolect.data.sets.registry import load
from idiolect.data.sets.synthetic import synthetic


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


@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_inputs_have_the_moments_of_the_definition(beta: float) -> None:
    """Within a client Var x_j = j^-1.2; between clients the variance of a coordinate's mean is 1 + beta^2."""
    data = synthetic_population(beta=beta, clients=600, max_size=100, scale=2.0)
    parts = [data.train.client(i)[0] for i in range(600)]
    inside = np.mean([part.var(axis=0, ddof=1) for part in parts], axis=0)
    np.testing.assert_allclose(inside, np.arange(1, 61) ** -1.2, rtol=0.05)
    between = np.array([part.mean(axis=0) for part in parts]).var(axis=0).mean()
    assert between == pytest.approx(1 + beta**2, rel=0.12)  # beta's part is one draw a client: 600 of them


@pytest.mark.parametrize("alpha", [0.0, 1.0])
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
