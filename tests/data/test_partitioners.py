import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiolect.data.partitioners import PARTITIONERS, dirichlet, iid, labels_per_client, lognormal_sizes
from idiolect.errors import ConfigError, DataError

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
    ],
)
def test_says_what_is_impossible(call, error, message):
    with pytest.raises(error, match=message):
        call()
