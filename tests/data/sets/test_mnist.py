import gzip
import json
import shutil

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import audit, emnist, fashion_mnist, load, mnist, mnist_partition, read_emnist, read_fashion_mnist
from idiolect.data.sets.mnist import CLASSES
from tests.data.conftest import total_sizes


def test_deals_the_tiny_files(tiny_mnist, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(tiny_mnist))
    data = mnist(verify=False, normalisation="unit")
    assert data.num_clients == 20
    assert data.feature_shape == (16,)
    assert data.classes == tuple("0123456789")
    assert np.unique(data.train.client(13)[1]).tolist() == [3, 4]
    assert 0 <= data.train.x.min() < data.train.x.max() <= 1
    assert audit(data).clean


def test_image_shape_holds_the_same_pixels(tiny_mnist):
    flat, image = (mnist(tiny_mnist, verify=False, shape=shape) for shape in ("flat", "image"))
    assert image.feature_shape == (4, 4, 1)
    np.testing.assert_array_equal(image.test.x.reshape(-1, 16), flat.test.x)
    with pytest.raises(ConfigError, match="unknown shape 'round'"):
        mnist(tiny_mnist, verify=False, shape="round")


@pytest.mark.parametrize("partition", ["clean", "paper-2020", "iid", "dirichlet", "labels_per_client"])
def test_equal_arguments_equal_bits(tiny_mnist, partition):
    first, again = (mnist(tiny_mnist, partition, verify=False) for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.provenance == again.provenance
    assert first.provenance["partition"]["name"] == partition


def test_overlap_is_told(tiny_mnist):
    data = mnist(tiny_mnist, "paper-2020", verify=False, normalisation="pixel-zscore-all")
    found = audit(data)
    assert f"{found.test_in_other_train / found.test:.1%} of the test samples" in data.notes[0]
    assert f"{found.distinct:,} distinct" in data.notes[0]
    assert found.test_in_other_train > 0
    assert found.test_in_own_train == 0
    assert found.fitted_on == "all"
    assert not found.clean
    assert any("nested prefixes" in line for line in found.lines())


def test_partition_arguments_reach_the_partitioner(tiny_mnist):
    data = mnist(tiny_mnist, "labels_per_client", clients=5, k=4, verify=False)
    assert [len(np.unique(data.train.client(i)[1])) for i in range(5)] == [4] * 5
    for bad, message in (
        ({"partition": "cleen"}, "did you mean 'clean'"),
        ({"partition": "dirichlet", "k": 3}, "unknown key of partition 'dirichlet' 'k'"),
        ({"partition": "clean", "k": 3}, "unknown key of partition 'clean' 'k'"),
        ({"partition": "clean", "clients": 10}, "'clean' has 20 clients, not 10"),
    ):
        with pytest.raises(ConfigError, match=message):
            mnist(tiny_mnist, verify=False, **bad)


def test_a_saved_partition_gives_the_same_data(tiny_mnist, tmp_path):
    path = tmp_path / "mine.npz"
    mnist_partition(tiny_mnist, "dirichlet", seed=4, concentration=0.7, verify=False).save(path)
    made = mnist(tiny_mnist, "dirichlet", seed=4, concentration=0.7, verify=False)
    assert mnist(tiny_mnist, str(path), verify=False).fingerprint == made.fingerprint
    with pytest.raises(ConfigError, match="leave out k, clients"):
        mnist(tiny_mnist, str(path), clients=5, k=2, verify=False)


def test_bad_files(tiny_mnist, tmp_path, idx, monkeypatch):
    monkeypatch.delenv("IDIOLECT_DATA", raising=False)
    with pytest.raises(DataError, match=r"set IDIOLECT_DATA.*published at"):
        mnist()
    with pytest.raises(DataError, match=r"not the published file.*expected 6bbc9ace898e44ae57da46a324031adb"):
        mnist(tiny_mnist)
    copy = tmp_path / "copy"
    shutil.copytree(tiny_mnist, copy)
    labels = copy / "mnist" / "t10k-labels-idx1-ubyte"
    labels.write_bytes(idx(np.zeros(199, np.uint8)))
    with pytest.raises(DataError, match=r"200 images, .*199 labels"):
        mnist(copy, verify=False)
    labels.write_bytes(idx(np.full(200, 11, np.uint8)))
    with pytest.raises(DataError, match="label above 9"):
        mnist(copy, verify=False)
    labels.write_bytes(idx(np.zeros((200, 2), np.uint8)))
    with pytest.raises(DataError, match="must hold images and labels"):
        mnist(copy, verify=False)
    labels.unlink()
    with pytest.raises(DataError, match=r"missing file .*t10k-labels.*published at"):
        mnist(copy, verify=False)
    images = copy / "mnist" / "train-images-idx3-ubyte.gz"
    images.write_bytes(gzip.decompress(images.read_bytes()))
    labels.write_bytes(idx(np.zeros(200, np.uint8)))
    with pytest.raises(DataError, match="not a gzip file"):
        mnist(copy, verify=False)


@pytest.mark.second
def test_real_files_give_the_published_split(real_data):
    data = mnist(real_data, "paper-2020", validation=0.0, normalisation="pixel-zscore-all")
    assert total_sizes(data).sum() == 69970
    assert (data.train.sizes.min(), data.train.sizes.max()) == (1165, 3834)
    found = audit(data)
    assert found.distinct == 23537
    assert 0.88 < found.test_in_other_train / found.test < 0.91


@pytest.mark.second
def test_real_files_clean(real_data):
    data = mnist(real_data)
    found = audit(data)
    assert found.clean
    assert found.distinct == found.samples == 69970
    assert abs(data.train.x.mean()) < 1e-4


def test_it_is_read_as_mnist_from_its_own_folder(tiny_mnist):
    data = fashion_mnist(tiny_mnist, "iid", clients=4, verify=False, normalisation="unit")
    assert data.name == "fashion-mnist/iid"
    assert data.classes == CLASSES
    assert data.feature_shape == (16,)
    other = mnist(tiny_mnist, "iid", clients=4, verify=False, normalisation="unit")
    np.testing.assert_array_equal(data.train.y, other.train.y)
    assert not np.array_equal(data.train.x, other.train.x)
    pool = read_fashion_mnist(tiny_mnist, verify=False)
    assert (pool.trained, len(pool.labels), pool.test_share) == (1000, 1200, 1 / 6)


def test_its_own_md5s_are_asked_for(tiny_mnist):
    with pytest.raises(DataError, match="expected f4a8712d7a061bf5bd6d2ca38dc4d50a"):
        fashion_mnist(tiny_mnist)


def test_parts_of_different_shapes_are_refused(tmp_path, tiny_mnist, idx):
    files = tmp_path / "fashion-mnist"
    files.mkdir()
    for path in (tiny_mnist / "fashion-mnist").iterdir():
        (files / path.name).write_bytes(path.read_bytes())
    (files / "t10k-images-idx3-ubyte.gz").unlink()
    (files / "t10k-images-idx3-ubyte").write_bytes(idx(np.zeros((200, 4, 5), np.uint8)))
    with pytest.raises(DataError, match=r"differ in shape: \[\(4, 4\), \(4, 5\)\]"):
        fashion_mnist(tmp_path, verify=False)


def test_real_files(real_set):
    data = fashion_mnist(real_set("fashion-mnist"), "pflego-high", normalisation="unit")
    assert data.num_clients == 100
    assert data.train.sizes.sum() + data.validation.sizes.sum() == 60000
    assert data.test.sizes.sum() == 10000
    assert audit(data).test_in_own_train == 0


RNG = np.random.default_rng(4)
IMAGES = {part: RNG.integers(0, 256, (n, 3, 4), dtype=np.uint8) for part, n in (("train", 360), ("test", 60))}
DIGITS = "".join(f"{label} {48 + label}\r\n" for label in range(10))
LETTERS = "".join(f"{label} {64 + label} {96 + label}\n" for label in range(1, 27))


def write(folder, variant, mapping, idx, first=0, classes=10, parts=("train", "test")):
    where = folder / "emnist"
    where.mkdir(exist_ok=True)
    (where / f"emnist-{variant}-mapping.txt").write_text(mapping)
    for part in parts:
        labels = np.resize(np.arange(first, first + classes, dtype=np.uint8), len(IMAGES[part]))
        stem = f"emnist-{variant}-{part}"
        (where / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(IMAGES[part])))
        (where / f"{stem}-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


def test_images_are_turned_upright_and_the_training_part_comes_first(tmp_path, idx):
    pool = read_emnist(write(tmp_path, "digits", DIGITS, idx), variant="digits", verify=False)
    assert pool.shape == (4, 3, 1)
    np.testing.assert_array_equal(pool.images[5].reshape(4, 3), IMAGES["train"][5].T)
    np.testing.assert_array_equal(pool.images[360 + 7].reshape(4, 3), IMAGES["test"][7].T)
    assert (pool.trained, len(pool.labels)) == (360, 420)
    assert pool.classes == tuple("0123456789")
    assert pool.labels[:12].tolist() == [*range(10), 0, 1]
    assert pool.notes == ()
    assert pool.test_share == 40_000 / 280_000


def test_letters_are_numbered_from_0_and_named_by_both_cases(tmp_path, idx):
    write(tmp_path, "letters", LETTERS, idx, first=1, classes=26)
    data = emnist(tmp_path, "iid", variant="letters", clients=3, verify=False, shape="image")
    assert data.classes[0] == "Aa"
    assert data.classes[25] == "Zz"
    assert set(data.train.y) <= set(range(26))
    assert data.train.y.max() == 25
    assert data.feature_shape == (4, 3, 1)


def test_one_part_alone_only_by_name(tmp_path, idx):
    write(tmp_path, "digits", DIGITS, idx, parts=("test",))
    with pytest.raises(DataError, match=r'missing file .*digits-train-images.*published.*here: parts=\["test"\]'):
        emnist(tmp_path, variant="digits", verify=False)
    pool = read_emnist(tmp_path, variant="digits", parts=["test"], verify=False)
    assert (pool.trained, len(pool.labels)) == (0, 60)
    assert pool.notes == ("incomplete: the official train part of EMNIST digits (240,000 images) is left out",)
    data = emnist(tmp_path, "pflego-high", variant="digits", parts=["test"], clients=5, verify=False)
    assert "0.143 of each class" in data.notes[0]
    arguments = json.loads(json.dumps(data.provenance["arguments"]))
    assert arguments["parts"] == ["test"]
    again = load({"name": "emnist", "folder": str(tmp_path), "verify": False, **arguments})
    assert again.fingerprint == data.fingerprint
    assert data.test.sizes.sum() == 10  # a seventh of six images, of each of ten classes


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (DIGITS[:-7], "must map 10 labels to ASCII codes"),
        (DIGITS.replace("9 57", "9"), "must map 10 labels"),
        (DIGITS.replace("9 57", "8 57"), "must map 10 labels"),
        (DIGITS.replace("57", "x"), "is not a mapping"),
        (DIGITS.replace("57", "-1"), "is not a mapping"),
        (DIGITS.replace("9 57", "12 57"), "has the label 9, which the mapping file does not name"),
    ],
)
def test_a_bad_mapping_is_named(tmp_path, idx, mapping, message):
    write(tmp_path, "digits", mapping, idx)
    with pytest.raises(DataError, match=message):
        read_emnist(tmp_path, variant="digits", verify=False)


def test_bad_files_emnist(tmp_path, idx):
    write(tmp_path, "digits", DIGITS, idx)
    with pytest.raises(DataError, match=r"train part of EMNIST digits has 360 images, the published one 240,000"):
        read_emnist(tmp_path, variant="digits")
    path = tmp_path / "emnist" / "emnist-digits-test-labels-idx1-ubyte"
    path.write_bytes(idx(np.full(60, 10, np.uint8)))
    with pytest.raises(DataError, match="label above 9"):
        read_emnist(tmp_path, variant="digits", verify=False)
    (tmp_path / "emnist" / "emnist-digits-mapping.txt").unlink()
    with pytest.raises(DataError, match=r"missing file .*mapping\.txt.*published"):
        read_emnist(tmp_path, variant="digits", verify=False)
    for bad, message in (
        ({"variant": "byclas"}, "did you mean 'byclass'"),
        ({"parts": ["tests"]}, "unknown part of EMNIST 'tests'; did you mean 'test'"),
        ({"parts": []}, "parts must name"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_emnist(tmp_path, **bad)


@pytest.mark.second
def test_real_files_emnist(real_set):
    data = emnist(real_set("emnist"), "pflego-medium", parts=["test"], normalisation="unit")
    assert data.num_clients == 100
    assert set(data.train.outputs) == {31}
    assert data.train.sizes.sum() + data.validation.sizes.sum() + data.test.sizes.sum() == 116_323
    assert audit(data).clean
