import gzip
import io
import json
import pickle
import tarfile

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import audit, cifar10, load, read_cifar10
from idiolect.data.sets.cifar10 import ARCHIVE, BATCHES, FOLDER, META
from idiolect.data.sets.published import fedu_cifar
from tests.data.conftest import total_sizes
from tests.data.pickles import python2_pickle

COUNT = 60
RNG = np.random.default_rng(5)
IMAGES = {name: RNG.integers(0, 256, (COUNT, 3072), dtype=np.uint8) for name in BATCHES}
LABELS = {name: RNG.permutation(np.resize(np.arange(10), COUNT)).tolist() for name in BATCHES}
NAMES = [f"kind {k}" for k in range(10)]
FILES = {
    **{name: python2_pickle({"data": IMAGES[name], "labels": LABELS[name]}) for name in BATCHES},
    META: python2_pickle({"label_names": NAMES, "num_vis": 3072}),
}


def write(folder, files=FILES, packed=()):
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / (f"{name}.gz" if name in packed else name)
        path.write_bytes(gzip.compress(content) if name in packed else content)


def archive(path, files=FILES):
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{FOLDER}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    write(root / "cifar10" / FOLDER, packed=("data_batch_2", META))
    return root


def test_the_batches_in_their_order_with_the_channels_last(folder):
    pool = read_cifar10(folder, verify=False)
    assert pool.classes == tuple(NAMES)
    assert (pool.trained, len(pool.labels), pool.test_share) == (5 * COUNT, 6 * COUNT, 1 / 6)
    for number, name in enumerate(BATCHES):
        rows = slice(number * COUNT, (number + 1) * COUNT)
        assert pool.labels[rows].tolist() == LABELS[name]
        red_green_blue = pool.images[rows].reshape(COUNT, 32, 32, 3)
        np.testing.assert_array_equal(red_green_blue[7, :, :, 0].ravel(), IMAGES[name][7, :1024])
        np.testing.assert_array_equal(red_green_blue[7, :, :, 2].ravel(), IMAGES[name][7, 2048:])


def test_folder_archive_and_loose_files_are_the_same(folder, tmp_path):
    expected = read_cifar10(folder, verify=False)
    archive(tmp_path / "a" / "cifar10" / ARCHIVE)
    write(tmp_path / "b" / "cifar10")
    for root in (tmp_path / "a", tmp_path / "b"):
        found = read_cifar10(root, verify=False)
        np.testing.assert_array_equal(found.images, expected.images)
        np.testing.assert_array_equal(found.labels, expected.labels)
    assert [path.name for path in (tmp_path / "a" / "cifar10").iterdir()] == [ARCHIVE]


def test_the_data_have_images_normalised_by_channel(folder):
    data = cifar10(folder, "iid", clients=4, verify=False)
    assert data.feature_shape == (32, 32, 3)
    assert data.train.x.dtype == np.float32
    x = data.train.x.astype(np.float64)
    np.testing.assert_allclose(x.mean(axis=(0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(x.std(axis=(0, 1, 2)), 1, atol=1e-3)
    unit = cifar10(folder, "iid", clients=4, verify=False, normalisation="unit", shape="flat")
    assert unit.feature_shape == (3072,)
    assert (unit.train.x.min(), unit.train.x.max()) == (0, 1)
    assert audit(data).clean


def test_fedu_20(folder):
    data = cifar10(folder, "fedu-20", verify=False)
    assert data.num_clients == 20
    assert all(len(np.unique(data.train.client(i)[1])) <= 3 for i in range(20))
    groups = fedu_cifar(read_cifar10(folder, verify=False).labels)
    assert total_sizes(data).tolist() == [len(group) for group in groups]
    assert "scaled to this smaller pool" in data.notes[0]


def test_a_part_only_by_name(tmp_path):
    write(tmp_path / "cifar10" / FOLDER, {name: FILES[name] for name in ("data_batch_1", META)})
    with pytest.raises(
        DataError, match=r"lacks data_batch_2, .*test_batch; .*published.*here: batches=\['data_batch_1'\]"
    ):
        cifar10(tmp_path, verify=False)
    data = cifar10(tmp_path, "pflego-high", batches=["data_batch_1"], clients=5, verify=False)
    assert total_sizes(data).sum() == COUNT
    assert data.test.sizes.sum() == 10  # one of six of each class
    assert "without data_batch_2, data_batch_3, data_batch_4, data_batch_5, test_batch" in data.notes[1]
    arguments = json.loads(json.dumps(data.provenance["arguments"]))
    assert arguments["batches"] == ["data_batch_1"]
    again = load({"name": "cifar10", "folder": str(tmp_path), "verify": False, **arguments})
    assert again.fingerprint == data.fingerprint


def test_the_order_in_which_batches_are_named_does_not_matter(folder):
    first, second = (read_cifar10(folder, batches=b, verify=False) for b in (BATCHES[3:], BATCHES[:2:-1]))
    np.testing.assert_array_equal(first.images, second.images)
    assert first.trained == second.trained == 2 * COUNT


def change(**values):
    plain = {"data": IMAGES["test_batch"], "labels": LABELS["test_batch"]}
    return python2_pickle({key: value for key, value in {**plain, **values}.items() if value is not None})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test_batch", change(labels=LABELS["test_batch"][1:]), "needs one label for each of its 60 images"),
        ("test_batch", change(labels=None), "needs one label"),
        ("test_batch", change(labels=[10] * COUNT), r"label outside 0\.\.9"),
        ("test_batch", change(labels=[-1] * COUNT), r"label outside 0\.\.9"),
        ("test_batch", change(data=IMAGES["test_batch"][:, :3071]), "3072 bytes an image"),
        ("test_batch", change(data="none"), "3072 bytes an image"),
        ("test_batch", change()[:-50], "truncated, damaged or not a pickle"),
        ("test_batch", b"cos\nsystem\nU\x04true\x85R.", "refused: it asks for os.system"),
        (META, python2_pickle({"label_names": NAMES[:9]}), "no 'label_names' of 10 classes"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    write(tmp_path / "cifar10", {**FILES, name: content})
    with pytest.raises(DataError, match=f"cifar10, {name}.*{message}"):
        read_cifar10(tmp_path, verify=False)


def test_numbers_of_images_bad_names_and_bad_archives(folder, tmp_path):
    with pytest.raises(DataError, match="data_batch_1 has 60 images, the published file 10,000"):
        cifar10(folder)
    with pytest.raises(ConfigError, match="did you mean 'data_batch_"):
        cifar10(folder, batches=["data_batch_7"])
    with pytest.raises(ConfigError, match="at least one"):
        cifar10(folder, batches=[])
    (tmp_path / "cifar10").mkdir()
    with pytest.raises(DataError, match=rf"lacks {META}, data_batch_1.*published") as caught:
        cifar10(tmp_path)
    assert "batches=" not in str(caught.value)
    path = tmp_path / "c" / "cifar10" / ARCHIVE
    archive(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DataError, match=rf"{ARCHIVE} is truncated or damaged"):
        cifar10(tmp_path / "c")


@pytest.mark.second
def test_real_files(real_set):
    folder = real_set("cifar10")
    pool = read_cifar10(folder, batches=["data_batch_1"])
    assert pool.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert pool.classes[6] == "frog"
    assert pool.images.shape == (10_000, 3072)
    raw = next(path for path in (folder / "cifar10").rglob("data_batch_1*"))
    content = gzip.decompress(raw.read_bytes()) if raw.suffix == ".gz" else raw.read_bytes()
    theirs = pickle.loads(content, encoding="latin1")["data"]
    np.testing.assert_array_equal(pool.images.reshape(-1, 1024, 3)[:, :, 1], theirs[:, 1024:2048])
