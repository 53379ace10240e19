import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.sets.papers.pfedme import CLIENTS, clean, held_digits, paper_2020

# Samples of each client in the published split.
PUBLISHED = [
    *(5112, 4987, 3889, 4253, 3215, 3072, 3271, 3013, 3881, 4356),
    *(2940, 1554, 2201, 1851, 1780, 3651, 4313, 4028, 4178, 4425),
]

# Images of the first digit of each client in the clean split.
PINNED = [
    917,
    993,
    1094,
    1738,
    2455,
    2083,
    1666,
    2231,
    1826,
    1824,
    636,
    382,
    727,
    1131,
    1131,
    2818,
    3385,
    2526,
    2712,
    1610,
]


def test_paper_2020_is_the_published_split(mnist_labels):
    groups = paper_2020(mnist_labels)
    assert [len(group) for group in groups] == PUBLISHED
    assert len(np.unique(np.concatenate(groups))) == 23537
    for client, group in enumerate(groups):
        assert set(mnist_labels[group]) == set(held_digits(client))
        assert len(np.unique(group)) == len(group)


def test_clean_keeps_the_sizes_and_shares_nothing(mnist_labels):
    groups = clean(mnist_labels)
    everything = np.concatenate(groups)
    assert [len(group) for group in groups] == PUBLISHED
    assert len(np.unique(everything)) == len(everything) == 69970
    for client, group in enumerate(groups):
        assert set(mnist_labels[group]) == set(held_digits(client))
    assert np.bincount(mnist_labels[np.setdiff1d(np.arange(70000), everything)]).max() <= 5


def test_clean_mixes_are_pinned(mnist_labels):
    """The fitted table may not move: it defines the data set."""
    mixes = [int((mnist_labels[g] == held_digits(u)[0]).sum()) for u, g in enumerate(clean(mnist_labels))]
    assert len(mixes) == CLIENTS
    assert mixes == PINNED


def test_needs_images_of_every_digit():
    with pytest.raises(DataError, match="at least 40 images of every digit; digit 0 has 10"):
        paper_2020(np.resize(np.arange(10), 100))
