import gzip
import shutil

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import audit, mnist, mnist_partition
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


def test_real_files_give_the_published_split(real_data):
    data = mnist(real_data, "paper-2020", validation=0.0, normalisation="pixel-zscore-all")
    assert total_sizes(data).sum() == 69970
    assert (data.train.sizes.min(), data.train.sizes.max()) == (1165, 3834)
    found = audit(data)
    assert found.distinct == 23537
    assert 0.88 < found.test_in_other_train / found.test < 0.91


def test_real_files_clean(real_data):
    data = mnist(real_data)
    found = audit(data)
    assert found.clean
    assert found.distinct == found.samples == 69970
    assert abs(data.train.x.mean()) < 1e-4
