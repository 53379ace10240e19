import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.idx import MNIST_FILES, joined, read_idx, read_mnist_like, read_part

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


@pytest.mark.parametrize("name", ["a-idx3-ubyte", "a-idx3-ubyte.gz"])
def test_reads_raw_and_gzip(tmp_path, idx, name):
    content = idx(ARRAY)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    np.testing.assert_array_equal(read_idx(path), ARRAY)


@pytest.mark.parametrize(("code", "dtype"), [(0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"), (0x0E, ">f8")])
def test_reads_other_types_in_native_order(tmp_path, code, dtype):
    values = np.array([-3, 0, 7], dtype=dtype)
    path = tmp_path / "x"
    path.write_bytes(bytes([0, 0, code, 1]) + np.array([3], ">u4").tobytes() + values.tobytes())
    found = read_idx(path)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    assert found.tolist() == [-3, 0, 7]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c[:-1], "truncated.*needs 40 bytes, it has 39"),
        (lambda c: c[:9], "truncated: its header has 16 bytes, the file 9"),
        (lambda c: c + b"x", "trailing bytes"),
        (lambda c: b"\x01" + c[1:], "not an idx file: it starts with the bytes 01000803"),
        (lambda c: c[:2] + b"\x07" + c[3:], "not an idx file"),
        (lambda c: b"", "not an idx file"),
    ],
)
def test_refuses_a_broken_file(tmp_path, idx, change, message):
    path = tmp_path / "broken"
    path.write_bytes(change(idx(ARRAY)))
    with pytest.raises(DataError, match=message) as error:
        read_idx(path)
    assert str(path) in str(error.value)


def test_checks_the_md5_of_the_uncompressed_content(tmp_path, idx):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(idx(ARRAY), mtime=5))
    read_idx(path, md5=hashlib.md5(idx(ARRAY)).hexdigest())
    known = hashlib.md5(path.read_bytes()).hexdigest()
    with pytest.raises(DataError, match=f"expected {known}.*verify=False"):
        read_idx(path, md5=known)


RNG = np.random.default_rng(0)
IMAGES = {"train": RNG.integers(0, 256, (5, 2, 3), np.uint8), "test": RNG.integers(0, 256, (3, 2, 3), np.uint8)}
LABELS = {"train": np.array([0, 1, 2, 1, 0], np.uint8), "test": np.array([2, 0, 1], np.uint8)}
NO_MD5 = ((None, None), (None, None))

Idx = Callable[[np.ndarray], bytes]


@pytest.fixture
def folder(tmp_path: Path, idx: Idx) -> Path:
    """A data folder with a tiny set; its test images are packed."""
    (tmp_path / "tiny").mkdir()
    for part, (images, labels) in zip(("train", "test"), MNIST_FILES, strict=True):
        (tmp_path / "tiny" / labels).write_bytes(idx(LABELS[part]))
        if part == "train":
            (tmp_path / "tiny" / images).write_bytes(idx(IMAGES[part]))
        else:
            (tmp_path / "tiny" / f"{images}.gz").write_bytes(gzip.compress(idx(IMAGES[part])))
    return tmp_path


def test_the_training_part_comes_first(folder: Path) -> None:
    pool = read_mnist_like("tiny", folder, "abc", "published there", NO_MD5, verify=True)
    np.testing.assert_array_equal(pool.images, np.concatenate([*IMAGES.values()]).reshape(8, 6))
    np.testing.assert_array_equal(pool.labels, np.concatenate([*LABELS.values()]))
    assert (pool.images.dtype, pool.labels.dtype) == (np.uint8, np.int32)
    assert (pool.name, pool.shape, pool.classes) == ("tiny", (2, 3, 1), ("a", "b", "c"))
    assert (pool.trained, pool.test_share) == (5, 3 / 8)
    assert (pool.partitions, pool.leaks) == ({}, {})


def test_partitions_and_leaks_are_kept(folder: Path) -> None:
    extra = {"partitions": {"mine": lambda pool: None}, "leaks": {"mine": "all"}}
    pool = read_mnist_like("tiny", folder, "abc", "", NO_MD5, verify=True, **extra)
    assert {"partitions": pool.partitions, "leaks": pool.leaks} == extra


@pytest.mark.parametrize("place", range(4))
def test_each_file_must_be_the_published_one_unless_told_otherwise(folder: Path, idx: Idx, place: int) -> None:
    arrays = [IMAGES["train"], LABELS["train"], IMAGES["test"], LABELS["test"]]
    known = [hashlib.md5(idx(array)).hexdigest() for array in arrays]
    read_mnist_like("tiny", folder, "abc", "", (tuple(known[:2]), tuple(known[2:])), verify=True)
    known[place] = "0" * 32
    wrong = tuple(known[:2]), tuple(known[2:])
    with pytest.raises(DataError, match=f"{MNIST_FILES[place // 2][place % 2]}.*expected 0000"):
        read_mnist_like("tiny", folder, "abc", "", wrong, verify=True)
    assert len(read_mnist_like("tiny", folder, "abc", "", wrong, verify=False).images) == 8


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        ((3, 2, 3), [0, 3, 1], "labels has a label above 2; it is another data set; see there"),
        ((2, 2, 3), [0, 2, 1], r"images has 2 images, .*labels has 3 labels"),
        ((3, 2), [0, 2, 1], r"must hold images and labels as bytes, their shapes are \(3, 2\) and \(3,\); see there"),
        ((3, 2, 3), [[0, 2, 1]], r"their shapes are \(3, 2, 3\) and \(1, 3\)"),
    ],
)
def test_parts_that_do_not_fit(
    tmp_path: Path, idx: Idx, images: tuple[int, ...], labels: list[int], message: str
) -> None:
    (tmp_path / "images").write_bytes(idx(np.zeros(images, np.uint8)))
    (tmp_path / "labels").write_bytes(idx(np.array(labels, np.uint8)))
    with pytest.raises(DataError, match=message):
        read_part(tmp_path, ("images", "labels"), "see there", highest=2)


def test_numbers_of_another_type_are_refused(tmp_path: Path, idx: Idx) -> None:
    header = bytes([0, 0, 0x0C, 1]) + np.array([3], ">u4").tobytes()
    (tmp_path / "images").write_bytes(idx(np.zeros((3, 2, 2), np.uint8)))
    (tmp_path / "labels").write_bytes(header + np.zeros(3, ">i4").tobytes())
    with pytest.raises(DataError, match="must hold images and labels as bytes"):
        read_part(tmp_path, ("images", "labels"), "", highest=2)


def test_a_part_without_images_and_a_file_that_is_missing(tmp_path: Path, idx: Idx) -> None:
    (tmp_path / "images").write_bytes(idx(np.zeros((0, 2, 2), np.uint8)))
    with pytest.raises(DataError, match=r"labels.*see there"):
        read_part(tmp_path, ("images", "labels"), "see there", highest=2)
    (tmp_path / "labels").write_bytes(idx(np.zeros(0, np.uint8)))
    images, labels = read_part(tmp_path, ("images", "labels"), "see there", highest=0)
    assert (images.shape, labels.shape) == ((0, 2, 2), (0,))


def test_parts_are_joined_only_if_their_images_are_alike() -> None:
    parts = [(IMAGES[part], LABELS[part].astype("i4")) for part in ("test", "train")]
    images, labels = joined(parts, Path("there"))
    np.testing.assert_array_equal(images, np.concatenate([IMAGES["test"], IMAGES["train"]]))
    np.testing.assert_array_equal(labels, np.concatenate([LABELS["test"], LABELS["train"]]))
    with pytest.raises(
        DataError, match=r"there: the images of the official parts differ in shape: \[\(2, 3\), \(3, 2\)"
    ):
        joined([parts[0], (parts[1][0].swapaxes(1, 2), parts[1][1])], Path("there"))
