import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import ImageSet, audit, from_images, partition_images
from idiolect.data.sets.images import fixed

RNG = np.random.default_rng(2)
IMAGES = RNG.integers(0, 256, (400, 2 * 3 * 3), dtype=np.uint8)
LABELS = np.resize(np.arange(4, dtype=np.int32), 400)


def nested(labels):
    """Two clients that share a quarter of the pool."""
    return [np.arange(0, 200), np.arange(100, 300)]


POOL = ImageSet(
    "tiny",
    IMAGES,
    LABELS,
    (2, 3, 3),
    tuple("wxyz"),
    trained=300,
    test_share=0.25,
    partitions={"nested": fixed("nested", nested, 2, seed=7, notes=lambda groups: [f"{len(groups)} groups"])},
    leaks={"nested": "they overlap"},
    notes=("of the pool",),
    arguments={"size": 3},
)


def test_features_are_images_or_rows_of_the_same_numbers():
    flat, image = (
        from_images(POOL, "iid", clients=4, normalisation="unit", shape=shape) for shape in ("flat", "image")
    )
    assert flat.feature_shape == (18,)
    assert image.feature_shape == (2, 3, 3)
    np.testing.assert_array_equal(image.train.x.reshape(-1, 18), flat.train.x)
    rows = partition_images(POOL, "iid", clients=4).train.index
    np.testing.assert_array_equal(flat.train.x, IMAGES[rows] / np.float32(255))


def test_channels_are_normalised_over_all_places():
    data = from_images(POOL, "iid", clients=4, normalisation="channel-zscore-train", shape="image")
    x = data.train.x.astype(np.float64)
    np.testing.assert_allclose(x.mean(axis=(0, 1, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(x.std(axis=(0, 1, 2)), 1, atol=1e-4)
    assert data.provenance["normalisation"] == {"name": "channel-zscore-train", "fitted_on": "train"}


def test_a_fixed_partition_is_its_papers():
    first, again = (partition_images(POOL, "nested", seed=seed) for seed in (0, 1))
    assert first.fingerprint == again.fingerprint
    assert first.seed == 7
    assert first.notes[0] == "2 groups"
    np.testing.assert_array_equal(
        np.sort(np.concatenate([first.rows(s).client(1) for s in ("train", "validation", "test")])),
        np.arange(100, 300),
    )
    with pytest.raises(ConfigError, match="'nested' has 2 clients, not 3"):
        partition_images(POOL, "nested", clients=3)
    with pytest.raises(ConfigError, match="unknown key of partition 'nested' 'k'"):
        partition_images(POOL, "nested", k=3)


def test_what_clients_share_is_told():
    data = from_images(POOL, "nested", normalisation="unit")
    found = audit(data)
    assert "400 samples are 300 distinct images" in data.notes[1]
    assert f"{found.test_in_other_train / found.test:.1%} of the test samples" in data.notes[1]
    assert data.notes[2] == "of the pool"
    assert found.leaks == ("they overlap",)
    assert not found.clean


def test_provenance_says_how_to_make_it_again():
    data = from_images(POOL, "dirichlet", clients=3, concentration=2.0, keyword="split")
    assert data.provenance["source"] == "tiny"
    assert data.provenance["arguments"] == {
        "size": 3,
        "split": "dirichlet",
        "normalisation": "pixel-zscore-train",
        "shape": "flat",
        "labels": None,
        "clients": 3,
        "concentration": 2.0,
    }
    assert data.provenance["leaks"] == []


def test_labels_of_any_partition_can_be_the_clients_own():
    data = from_images(POOL, "labels_per_client", clients=4, k=2, labels="client")
    assert data.train.outputs.tolist() == [2] * 4
    assert set(data.train.y) == {0, 1}
    assert not from_images(POOL, "labels_per_client", clients=4, k=2).own_labels


def test_down_sampling_works_for_any_partition():
    whole, part = (partition_images(POOL, "pflego-none", clients=4, downsample=d) for d in (None, 0.5))
    fewer = part.train.sizes < whole.train.sizes
    assert fewer.sum() == 2
    np.testing.assert_array_equal(part.test.index, whole.test.index)


def test_a_saved_partition_belongs_to_its_pool(tmp_path):
    path = str(tmp_path / "p.npz")
    partition_images(POOL, "dirichlet", clients=3).save(path)
    assert from_images(POOL, path).fingerprint == from_images(POOL, "dirichlet", clients=3).fingerprint
    small = ImageSet("small", IMAGES[:40], LABELS[:40], (2, 3, 3), tuple("wxyz"), 30, 0.25)
    with pytest.raises(DataError, match="made for another pool"):
        from_images(small, path)
    with pytest.raises(ConfigError, match=r"fixes everything: leave out seed, downsample$"):
        partition_images(POOL, path, seed=3, downsample=0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partition": "nestd"}, "unknown partition 'nestd'; did you mean 'nested'"),
        ({"partition": "pflego-low"}, "did you mean 'pflego-"),
        ({"partition": "iid", "k": 3}, "unknown key of partition 'iid' 'k'"),
        ({"partition": "iid", "shape": "cube"}, "unknown shape 'cube'"),
        ({"partition": "iid", "labels": "own"}, "unknown labels 'own'; known: client, global"),
        ({"partition": "iid", "normalisation": "units"}, "did you mean 'unit'"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ConfigError, match=message):
        from_images(POOL, **arguments)


def test_a_set_may_forbid_partitions_that_know_nothing_of_it():
    alone = ImageSet("tiny", IMAGES, LABELS, (2, 3, 3), tuple("wxyz"), 300, 0.25, POOL.partitions, common=False)
    partition_images(alone, "nested")
    for common in ("iid", "pflego-high"):
        with pytest.raises(ConfigError, match=f"unknown partition '{common}'; known: nested"):
            partition_images(alone, common)
