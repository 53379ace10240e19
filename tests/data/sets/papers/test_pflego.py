import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, ImageSet, Partition, audit, from_images, partition_images

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
