import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, ImageSet, Partition, audit, from_images, mnist, mnist_partition, partition_images
from idiolect.data.sets.published import (
    CIFAR_USED,
    MNIST_USED,
    PFEDME_CLIENTS,
    clean,
    fedu_cifar,
    fedu_mnist,
    fedu_note,
    held_digits,
    paper_2020,
)

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


# Samples of each client in the published split.
PFEDME_SIZES = [
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
    assert [len(group) for group in groups] == PFEDME_SIZES
    assert len(np.unique(np.concatenate(groups))) == 23537
    for client, group in enumerate(groups):
        assert set(mnist_labels[group]) == set(held_digits(client))
        assert len(np.unique(group)) == len(group)


def test_clean_keeps_the_sizes_and_shares_nothing(mnist_labels):
    groups = clean(mnist_labels)
    everything = np.concatenate(groups)
    assert [len(group) for group in groups] == PFEDME_SIZES
    assert len(np.unique(everything)) == len(everything) == 69970
    for client, group in enumerate(groups):
        assert set(mnist_labels[group]) == set(held_digits(client))
    assert np.bincount(mnist_labels[np.setdiff1d(np.arange(70000), everything)]).max() <= 5


def test_clean_mixes_are_pinned(mnist_labels):
    """The fitted table may not move: it defines the data set."""
    mixes = [int((mnist_labels[g] == held_digits(u)[0]).sum()) for u, g in enumerate(clean(mnist_labels))]
    assert len(mixes) == PFEDME_CLIENTS
    assert mixes == PINNED


def test_needs_images_of_every_digit():
    with pytest.raises(DataError, match="at least 40 images of every digit; digit 0 has 10"):
        paper_2020(np.resize(np.arange(10), 100))


CLASSES = 10


def pool(labels, trained, share=1 / 6):
    """Images that show their own number, so that none equals another."""
    labels = np.asarray(labels, dtype=np.int32)
    numbers = np.arange(len(labels), dtype="<u4")
    images = np.concatenate([numbers[:, None].view(np.uint8), np.zeros((len(labels), 2), np.uint8)], axis=1)
    names = tuple("abcdefghijklmnopqrstuvwxyz"[: labels.max() + 1])
    return ImageSet("tiny", images, labels, (2, 3, 1), names, trained, share)


@pytest.fixture(scope="module")
def digits():
    labels = np.random.default_rng(3).integers(0, CLASSES, 3600)
    return pool(labels, trained=3000)


def rows(partition, client, *splits):
    return np.concatenate([partition.rows(split).client(client) for split in splits or SPLITS])


@pytest.mark.parametrize(("level", "held"), [("high", 2), ("medium", 5), ("none", 10)])
def test_k_classes_a_client_and_every_image_once(digits, level, held):
    dealt = partition_images(digits, f"pflego-{level}", clients=20)
    for client in range(20):
        assert len(np.unique(digits.labels[rows(dealt, client)])) == held
    everything = np.concatenate([rows(dealt, client) for client in range(20)])
    assert sorted(everything) == list(range(3600))
    assert dealt.parameters["k"] == held
    assert dealt.notes == ()


def test_official_parts_go_apart_to_the_same_holders_one_by_one(digits):
    dealt = partition_images(digits, "pflego-medium", clients=13, seed=5)
    table = {}
    for part, splits in (("train", ("train", "validation")), ("test", ("test",))):
        found = [rows(dealt, client, *splits) for client in range(13)]
        official = np.concatenate(found) < digits.trained
        assert official.all() if part == "train" else not official.any()
        table[part] = np.stack([np.bincount(digits.labels[r], minlength=CLASSES) for r in found])
    np.testing.assert_array_equal(table["train"] > 0, table["test"] > 0)
    for counts in table.values():
        for column in counts.T:
            dealt_out = column[column > 0]
            assert dealt_out.max() - dealt_out.min() <= 1
            assert (np.diff(dealt_out) <= 0).all()  # in turn, from the first holder on


def test_a_class_is_shuffled_before_it_is_dealt(digits):
    def first(seed):
        return partition_images(digits, "pflego-none", clients=2, seed=seed, validation=0.0).train.client(0)

    assert not np.array_equal(first(0), first(1))
    np.testing.assert_array_equal(first(0), first(0))
    ones = np.flatnonzero(digits.labels[: digits.trained] == 1)
    assert not np.isin(ones[::2], first(0)).all()


@pytest.mark.parametrize(("clients", "classes"), [(5, 10), (4, 7), (6, 10), (31, 62)])
def test_no_class_is_left_out_where_the_clients_can_hold_all(clients, classes):
    labels = np.resize(np.arange(classes), 40 * classes)
    images = pool(labels % 26, 20 * classes)
    images = ImageSet(
        "tiny", images.images, labels.astype(np.int32), (2, 3, 1), tuple(map(str, range(classes))), 20 * classes, 0.5
    )
    for seed in range(10):
        dealt = partition_images(images, "pflego-high", clients=clients, seed=seed)
        held = [np.unique(labels[rows(dealt, client)]) for client in range(clients)]
        assert [len(h) for h in held] == [2] * clients
        assert len(np.unique(np.concatenate(held))) == classes
        assert dealt.statistics["unused"] == 0


def test_classes_that_nobody_holds_are_named(digits):
    dealt = partition_images(digits, "pflego-high", clients=3)
    held = set(digits.labels[np.concatenate([rows(dealt, client) for client in range(3)])])
    unused = [digits.classes[label] for label in range(CLASSES) if label not in held]
    assert len(unused) >= 4
    assert dealt.notes == (f"{len(unused)} of 10 classes have no holder and stay unused: {', '.join(unused)}",)


@pytest.mark.parametrize(("trained", "missing"), [(0, "training"), (700, "test")])
def test_a_lone_official_part_is_cut_in_the_official_ratio(trained, missing):
    sizes = [7, 70, 623]
    labels = np.repeat([0, 1, 2], sizes)
    dealt = partition_images(pool(labels, trained, share=1 / 7), "pflego-none", clients=2)
    tested = np.bincount(labels[np.concatenate([rows(dealt, c, "test") for c in range(2)])])
    assert tested.tolist() == [1, 10, 89]
    assert dealt.notes[0].startswith(f"the official {missing} part is not used: 0.143 of each class")


def test_validation_comes_from_training_and_leaves_the_test_set_alone(digits):
    plain, held = (partition_images(digits, "pflego-high", clients=10, validation=v) for v in (0.0, 0.2))
    for client in range(10):
        np.testing.assert_array_equal(plain.test.client(client), held.test.client(client))
        np.testing.assert_array_equal(plain.train.client(client), np.sort(rows(held, client, "train", "validation")))
        size = len(plain.train.client(client))
        assert len(held.validation.client(client)) == round(0.2 * size)
    assert len(plain.validation.index) == 0


def test_as_published_each_client_has_a_problem_of_its_own(digits, tmp_path):
    data = from_images(digits, "pflego-high", clients=10, normalisation="unit")
    assert data.own_labels
    assert data.num_outputs == 2
    assert set(data.train.outputs) == {2}
    shared = from_images(digits, "pflego-high", clients=10, normalisation="unit", labels="global")
    assert not shared.own_labels
    assert shared.classes == digits.classes
    np.testing.assert_array_equal(data.train.x, shared.train.x)
    held = [np.unique(shared.train.client(i)[1]) for i in range(10)]
    for i, classes in enumerate(held):
        np.testing.assert_array_equal(classes[data.test.client(i)[1]], shared.test.client(i)[1])
    assert audit(data).clean
    partition_images(digits, "pflego-high", clients=10).save(tmp_path / "p.npz")
    again = from_images(digits, str(tmp_path / "p.npz"), normalisation="unit")
    assert again.fingerprint == data.fingerprint
    assert Partition.load(tmp_path / "p.npz").name == "pflego-high"


def test_says_what_is_impossible(digits):
    for bad, error, message in (
        ({"clients": 0}, ConfigError, "clients must be at least 1"),
        ({"clients": 800}, DataError, r"client \d+ gets no test image of its 2 classes; use fewer clients"),
        ({"validation": 1.0}, ConfigError, "validation fraction"),
        ({"test": 0.2}, ConfigError, "unknown key of partition 'pflego-high' 'test'"),
        ({"level": "none"}, ConfigError, "unknown key of partition 'pflego-high' 'level'"),
    ):
        with pytest.raises(error, match=message):
            partition_images(digits, "pflego-high", **{"clients": 20, **bad})
    with pytest.raises(ConfigError, match="needs two classes or more, there are 1"):
        partition_images(pool(np.zeros(50), 25), "pflego-high", clients=2)
