import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data import audit, mnist, mnist_partition
from idiolect.data.sets.papers.fedu import CIFAR_USED, MNIST_USED, fedu_cifar, fedu_mnist, fedu_note

# The statistics in Table II of the paper: clients, samples, classes a client, mean and deviation of the sizes.
PUBLISHED = {"mnist": (100, 61_866, 2, 619, 343.8), "cifar": (20, 54_572, 3, 2729, 851.4)}


@pytest.fixture(scope="module")
def cifar_labels():
    return np.random.default_rng(0).permutation(np.repeat(np.arange(10), 6000)).astype(np.int32)


@pytest.fixture(params=["mnist", "cifar"])
def dealt(request, mnist_labels, cifar_labels):
    """(name, labels, partitioner)."""
    cases = {"mnist": (mnist_labels, fedu_mnist), "cifar": (cifar_labels, fedu_cifar)}
    return request.param, *cases[request.param]


def test_the_published_statistics(dealt):
    name, labels, deal = dealt
    groups = deal(labels)
    sizes = np.array([len(group) for group in groups])
    clients, samples, held, mean, deviation = PUBLISHED[name]
    assert (len(sizes), sizes.sum()) == (clients, samples)
    assert round(sizes.mean()) == mean
    assert round(sizes.std(), 1) == deviation
    if name == "mnist":
        assert (sizes.min(), sizes.max()) == (200, 2376)
    for client, group in enumerate(groups):
        assert set(labels[group]) == {(client + j) % 10 for j in range(held)}


def test_nothing_is_shared(dealt):
    _, labels, deal = dealt
    everything = np.concatenate(deal(labels))
    assert len(np.unique(everything)) == len(everything)


def test_a_generator_draws_other_images_of_the_same_sizes(dealt):
    _, labels, deal = dealt
    plain, first, again, other = (
        deal(labels, None if seed is None else np.random.default_rng(seed)) for seed in (None, 0, 0, 1)
    )
    for groups in (first, other):
        assert [len(group) for group in groups] == [len(group) for group in plain]
        assert not np.array_equal(groups[0], plain[0])
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(again))
    assert not np.array_equal(first[0], other[0])


def test_a_smaller_pool_scales_the_sizes(dealt):
    name, labels, deal = dealt
    few = labels[: len(labels) // 6]
    groups = deal(few)
    sizes, published = (np.array([len(group) for group in g]) for g in (groups, deal(labels)))
    assert np.corrcoef(sizes, published)[0, 1] > 0.98
    assert sizes.sum() < len(few)
    for client, group in enumerate(groups):
        assert set(few[group]) == {(client + j) % 10 for j in range(PUBLISHED[name][2])}
    everything = np.concatenate(groups)
    assert len(np.unique(everything)) == len(everything)


def test_mnist_by_name(tiny_mnist):
    data = mnist(tiny_mnist, "fedu-100", verify=False)
    assert data.num_clients == 100
    assert np.unique(data.train.client(29)[1]).tolist() == [0, 9]
    assert "scaled to this smaller pool" in data.notes[0]
    assert audit(data).clean
    assert data.fingerprint == mnist(tiny_mnist, "fedu-100", verify=False, seed=5).fingerprint


def test_real_mnist(real_data):
    partition = mnist_partition(real_data, "fedu-100", validation=0.0)
    assert partition.statistics["distinct"] == 61_866
    assert (partition.train.sizes.min(), partition.train.sizes.max()) == (150, 1782)


def test_the_note_tells_published_from_scaled(mnist_labels, cifar_labels):
    assert "those of the published partition, 61,866" in fedu_note(fedu_mnist(mnist_labels), MNIST_USED)
    assert "those of the published partition, 54,572" in fedu_note(fedu_cifar(cifar_labels), CIFAR_USED)
    assert "scaled to this smaller pool" in fedu_note(fedu_mnist(mnist_labels[:9000]), MNIST_USED)


def test_too_few_images():
    with pytest.raises(DataError, match="at least 40 images of every class; class 0 has 10"):
        fedu_mnist(np.resize(np.arange(10), 100))
    with pytest.raises(DataError, match="class 9 has 0"):
        fedu_cifar(np.resize(np.arange(9), 9000))
