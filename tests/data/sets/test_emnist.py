import gzip
import json

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import audit, emnist, load, read_emnist

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


def test_bad_files(tmp_path, idx):
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


def test_real_files(real_set):
    data = emnist(real_set("emnist"), "pflego-medium", parts=["test"], normalisation="unit")
    assert data.num_clients == 100
    assert set(data.train.outputs) == {31}
    assert data.train.sizes.sum() + data.validation.sizes.sum() + data.test.sizes.sum() == 116_323
    assert audit(data).clean
