import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data import audit, fashion_mnist, mnist, read_fashion_mnist
from idiolect.data.sets.fashion_mnist import CLASSES


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
