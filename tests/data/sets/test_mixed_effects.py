import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.sets.mixed_effects import mixed_effects
from idiolect.data.sets.registry import load
from tests.data.conftest import total_sizes


def rows(data, client):
    parts = [getattr(data, split).client(client) for split in ("train", "validation", "test")]
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def test_sizes_lie_between_fewest_and_most():
    sizes = total_sizes(mixed_effects(clients=500, features=2, fewest=10, most=14))
    assert set(sizes) == {10, 11, 12, 13, 14}
    data = mixed_effects()
    assert len(data.clients) == 40
    assert data.feature_shape == (20,)
    assert data.classes == ("0", "1")
    assert data.train.x.dtype == np.float32


def test_drawn_by_hand_from_the_same_stream():
    """Every row and label again, client by client, with the stated equation."""
    random = np.random.Generator(np.random.PCG64(5))
    sizes = random.integers(12, 20, 3, endpoint=True)
    shared = random.normal(0, 0.6, 4)
    own = [random.normal(0, 0.3, 4) for _ in range(3)]
    intercepts = [random.normal(0, 1.5) for _ in range(3)]
    drawn = [random.standard_normal((size, 4)) for size in sizes]
    data = mixed_effects(3, 5, features=4, fewest=12, most=20)
    for client in range(3):
        odds = np.exp(drawn[client] @ (shared + own[client]) + intercepts[client])
        expected = (random.random(sizes[client]) < odds / (1 + odds)).astype(int)
        x, y = rows(data, client)
        found, order = np.argsort(x[:, 0]), np.argsort(drawn[client][:, 0])
        np.testing.assert_array_equal(x[found], drawn[client][order].astype(np.float32))
        np.testing.assert_array_equal(y[found], expected[order])


def test_without_deviations_all_clients_have_one_model():
    """A logistic regression of all rows finds the slopes, and the base rates of clients differ only by noise."""
    data = mixed_effects(20, 1, features=2, fewest=2000, most=2000, deviation=0, intercept=0, test=0.001)
    rates = np.array([data.train.client(i)[1].mean() for i in range(20)])
    assert rates.std() < 3 * np.sqrt(0.25 / 2000)
    spread = mixed_effects(20, 1, features=2, fewest=2000, most=2000, deviation=0, intercept=3.0, test=0.001)
    assert np.std([spread.train.client(i)[1].mean() for i in range(20)]) > 0.2


def test_the_note_has_the_best_possible_accuracy():
    """Without slopes the best model of a client is its base rate."""
    data = mixed_effects(1, 2, features=1, fewest=5000, most=5000, shared=0, deviation=0, intercept=2.0, test=0.001)
    rate = data.train.y.mean()
    stated = float(data.notes[0].split(" is right for ")[1].split(" %")[0])
    assert stated == pytest.approx(100 * max(rate, 1 - rate), abs=2.0)


def test_equal_arguments_equal_bits_and_by_name():
    first, again, other = (mixed_effects(3, seed) for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert load({"name": "mixed-effects", "clients": 3}).fingerprint == first.fingerprint


def test_split_seed_moves_samples_only():
    first, other = (mixed_effects(2, split_seed=seed) for seed in (0, 1))
    assert first.fingerprint != other.fingerprint
    for client in range(2):
        np.testing.assert_array_equal(np.sort(rows(first, client)[0][:, 0]), np.sort(rows(other, client)[0][:, 0]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"clients": 0}, "clients must be at least 1"),
        ({"features": 0}, "features must lie between 1"),
        ({"fewest": 9}, "fewest must lie between 10"),
        ({"fewest": 20, "most": 19}, "most must lie between fewest"),
        ({"deviation": -1.0}, "deviation must not be negative"),
        ({"intercept": float("nan")}, "intercept must not be negative"),
        ({"shared": float("inf")}, "shared must not be negative"),
        ({"seed": -1}, "seed must lie between"),
        ({"split_seed": -1}, "split_seed must not be negative"),
        ({"test": 1.0}, "test"),
        ({"clients": 10**9}, "clients of 60 rows; use fewer"),
    ],
)
def test_bad_arguments(wrong, message):
    with pytest.raises(ConfigError, match=message):
        mixed_effects(**wrong)
