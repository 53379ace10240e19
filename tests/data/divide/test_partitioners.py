import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.divide.partitioners import (
    PARTITIONERS,
    dirichlet,
    dirichlet_clients,
    iid,
    labels_per_client,
    lognormal_sizes,
)

LABELS = np.random.default_rng(1).integers(0, 5, 600).astype(np.int32)


def rng(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(PARTITIONERS)),
    st.integers(1, 20),
    st.integers(1, 5),
    st.integers(0, 2**32),
)
def test_disjoint_seeded_and_large_enough(name, clients, minimum, seed):
    groups = PARTITIONERS[name](LABELS, clients, rng(seed), minimum=minimum)
    everything = np.concatenate(groups)
    assert len(groups) == clients
    assert len(np.unique(everything)) == len(everything)
    assert min(len(group) for group in groups) >= minimum
    if name != "labels_per_client":  # two classes a client may leave classes without a holder
        assert len(everything) == len(LABELS)
    again = PARTITIONERS[name](LABELS, clients, rng(seed), minimum=minimum)
    assert all(np.array_equal(a, b) for a, b in zip(groups, again, strict=True))


def test_another_seed_deals_otherwise():
    for partitioner in PARTITIONERS.values():
        first, second = (np.concatenate(partitioner(LABELS, 5, rng(seed))) for seed in (0, 1))
        assert not np.array_equal(first, second)


def test_labels_per_client_gives_exactly_k_and_spreads_the_classes():
    groups = labels_per_client(LABELS, 10, rng(), k=2)
    held = [np.unique(LABELS[group]) for group in groups]
    assert all(len(classes) == 2 for classes in held)
    assert np.bincount(np.concatenate(held)).tolist() == [4] * 5
    assert sum(map(len, groups)) == len(LABELS)


def test_dirichlet_concentration_moves_from_one_class_to_iid():
    def largest_share(concentration):
        groups = dirichlet(LABELS, 10, rng(), concentration=concentration)
        return np.mean([np.bincount(LABELS[group]).max() / len(group) for group in groups])

    assert largest_share(1000.0) < 0.35 < 0.6 < largest_share(0.1)


def test_dirichlet_clients_moves_from_one_class_to_the_pool():
    """Far fewer samples than the pool has: no class is used up, so a client's mixture is its own draw."""

    def shares(concentration, seed):
        groups = dirichlet_clients(LABELS, 4, rng(seed), concentration=concentration, size=25)
        return np.array([np.bincount(LABELS[group], minlength=5) / 25 for group in groups])

    pure = np.concatenate([shares(1e-4, seed) for seed in range(20)])
    assert (pure.max(axis=1) == 1).mean() > 0.95
    assert len(np.unique(pure.argmax(axis=1))) == 5
    mixed = np.concatenate([shares(1e6, seed) for seed in range(20)])
    np.testing.assert_allclose(mixed.mean(axis=0), np.bincount(LABELS) / 600, atol=0.02)


def test_dirichlet_clients_has_the_variance_of_the_distribution():
    """q ~ Dir(a p): Var q_k = p_k (1 - p_k) / (a + 1); a sample of n from q adds (1 - 1 / n)."""
    labels = np.resize(np.arange(2), 200_000)
    groups = dirichlet_clients(labels, 2000, rng(), concentration=3.0, size=20)
    share = np.array([labels[group].mean() for group in groups])
    assert share.var() == pytest.approx(0.25 / 4 * (1 - 1 / 20) + 0.25 / 20, rel=0.08)


@pytest.mark.parametrize("concentration", [1e-6, 0.01, 0.1, 10.0])
def test_dirichlet_clients_works_for_every_concentration(concentration):
    """Where `dirichlet` finds no partition: 100 clients, most of them with one class."""
    labels = np.random.default_rng(0).integers(0, 10, 7003)
    groups = dirichlet_clients(labels, 100, rng(), concentration=concentration)
    assert sorted({len(group) for group in groups}) == [70, 71]
    assert len(np.unique(np.concatenate(groups))) == 7003
    few = np.mean([len(np.unique(labels[group])) for group in groups])
    assert few < 1.6 if concentration <= 0.1 else few > 8


def test_lognormal_sizes_spread():
    even = [len(g) for g in lognormal_sizes(LABELS, 10, rng(), sigma=0.0)]
    wild = [len(g) for g in lognormal_sizes(LABELS, 10, rng(), sigma=2.0, minimum=5)]
    assert max(even) - min(even) <= 1
    assert sum(even) == sum(wild) == 600
    assert max(wild) > 200
    assert min(wild) >= 5


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: iid(LABELS, 301, rng()), DataError, "600 samples are too few for 301 clients with minimum=2"),
        (lambda: iid(LABELS, 0, rng()), ConfigError, "clients must be at least 1"),
        (lambda: dirichlet(LABELS, 5, rng(), concentration=0), ConfigError, "concentration must be positive"),
        (
            lambda: dirichlet(LABELS, 20, rng(), concentration=0.01, minimum=25),
            DataError,
            "raise concentration",
        ),
        (lambda: labels_per_client(LABELS, 5, rng(), k=6), ConfigError, "between 1 and the 5 classes"),
        (lambda: labels_per_client(LABELS, 60, rng(), k=1, minimum=10), DataError, "lower minimum"),
        (lambda: dirichlet(LABELS / 2, 5, rng()), DataError, "labels are numbers"),
        (lambda: lognormal_sizes(LABELS, 5, rng(), sigma=-1), ConfigError, "sigma"),
        (lambda: dirichlet_clients(LABELS, 5, rng(), concentration=0), ConfigError, "concentration must be positive"),
        (lambda: dirichlet_clients(LABELS, 5, rng(), size=121), DataError, "too few for 5 clients of size=121"),
        (lambda: dirichlet_clients(LABELS, 5, rng(), size=1), ConfigError, "at least minimum=2"),
    ],
)
def test_says_what_is_impossible(call, error, message):
    with pytest.raises(error, match=message):
        call()
