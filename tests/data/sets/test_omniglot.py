import json

import jax
import numpy as np
import pytest
from PIL import Image

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, audit, load, omniglot, omniglot_partition
from idiolect.data.sets.omniglot import read_drawings, read_omniglot
from tests.data.omniglot_data import CHARACTERS, CLIENTS, drawings, write

DRAWN = drawings()
INK = np.stack([DRAWN[archive][name] for archive in DRAWN for name in sorted(DRAWN[archive])])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data"), DRAWN)


def read(folder, size=105, antialias=False, verify=False):
    return read_drawings(folder, size=size, antialias=antialias, verify=verify)


def test_ink_is_255_in_the_order_of_names(folder):
    images, classes = read(folder)
    assert classes == tuple(
        f"{alphabet}/character{k + 1:02d}"
        for alphabet, count in zip(CLIENTS, CHARACTERS, strict=True)
        for k in range(count)
    )
    np.testing.assert_array_equal(images, INK * np.uint8(255))


@pytest.mark.parametrize("size", [28, 20, 105])
def test_plain_resizing_is_bilinear_between_pixel_centres(folder, size):
    images, _ = read(folder, size)
    expected = jax.image.resize(INK[:40].astype(np.float32), (40, size, size), "bilinear", antialias=False)
    np.testing.assert_allclose(images[:40], 255 * expected, atol=0.501)


def test_antialiased_resizing_is_pillows(folder):
    images, _ = read(folder, 28, antialias=True)
    for ink, image in zip(INK[:20], images, strict=False):
        theirs = Image.fromarray(ink * np.uint8(255)).resize((28, 28), Image.Resampling.BILINEAR)
        assert np.abs(image.astype(int) - np.asarray(theirs)).max() <= 1
    assert not np.array_equal(images, read(folder, 28)[0])


def test_bad_files(folder, tmp_path):
    first = min(DRAWN["images_background"])
    for files, message in (
        ({**DRAWN, "images_background": {}}, r"images_background\.zip has no <Alphabet>/characterNN"),
        ({**DRAWN, "images_background": DRAWN["images_evaluation"]}, "hold the same characters"),
    ):
        with pytest.raises(DataError, match=message):
            read(write(tmp_path, files))
    for change, message in (
        (None, "Greek/character01 has 19 drawings, not 20"),
        (b"\x89PNG\r\n\x1a\nnothing", "0004_01.png is not a readable PNG"),
        (INK[0][:100], r"0004_01.png has \(105, 100\) pixels, not 105 x 105"),
    ):
        changed = {name: change if name == first else ink for name, ink in DRAWN["images_background"].items()}
        if change is None:
            del changed[first]
        with pytest.raises(DataError, match=message):
            read(write(tmp_path, {**DRAWN, "images_background": changed}))
    path = tmp_path / "omniglot" / "images_evaluation.zip"
    write(tmp_path, DRAWN)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"images_evaluation\.zip is truncated, damaged or not a zip"):
        read(tmp_path)
    place = whole.index(b"IDAT") + 20
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    with pytest.raises(DataError, match="damaged or cannot be read"):
        read(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"lacks images_evaluation\.zip; .*published at"):
        read(tmp_path)


def test_published_numbers_and_sizes(folder):
    with pytest.raises(DataError, match="has 2 alphabets and 5 characters, the published file 30 and 964"):
        read(folder, verify=True)
    for size in (0, 106):
        with pytest.raises(ConfigError, match=f"size must lie between 1 and 105 pixels, it is {size}"):
            read(folder, size)


@pytest.fixture(scope="module")
def omniglot_folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data"), drawings())


def canonical(image):
    """The same for a drawing and its rotations."""
    return min(np.rot90(image.squeeze(), turn).tobytes() for turn in range(4))


def shared_drawings(data, i):
    """The share of client i's test samples whose drawing, turned or not, is in its training data."""
    trained = {canonical(x) for x in data.train.client(i)[0]}
    return np.mean([canonical(x) in trained for x in data.test.client(i)[0]])


def test_alphabets_are_clients_that_number_their_own_characters(omniglot_folder):
    data = omniglot(omniglot_folder, verify=False)
    assert data.clients == CLIENTS
    assert data.feature_shape == (28, 28, 1)
    assert data.classes == ("0", "1", "2", "3")
    for split in SPLITS:
        assert data.split(split).outputs.tolist() == list(CHARACTERS)
    for i, count in enumerate(CHARACTERS):
        assert np.bincount(data.test.client(i)[1]).tolist() == [20] * count
        assert np.bincount(data.validation.client(i)[1]).tolist() == [8] * count
        assert np.bincount(data.train.client(i)[1]).tolist() == [52] * count
    assert (data.train.x.min(), data.train.x.max()) == (0, 1)


def test_global_labels_tell_all_characters_apart(omniglot_folder):
    own, data = (omniglot(omniglot_folder, labels=labels, verify=False) for labels in ("client", "global"))
    assert not data.own_labels
    assert len(data.classes) == sum(CHARACTERS)
    assert data.classes[2] == "Tengwar/character01"
    np.testing.assert_array_equal(own.train.x, data.train.x)
    starts = np.cumsum([0, *CHARACTERS])
    np.testing.assert_array_equal(data.train.y, own.train.y + starts[own.train.owners])


def test_each_drawing_is_there_in_four_directions(omniglot_folder):
    pool = read_omniglot(omniglot_folder, size=105, verify=False)
    ink = drawings()["images_background"]["images_background/Greek/character02/0005_03.png"]
    first = (20 + 2) * 4
    for turn in range(4):
        found = pool.images[first + turn].reshape(105, 105)
        np.testing.assert_array_equal(found, 255 * np.rot90(ink, turn))
        assert pool.labels[first + turn] == 1
    plain = read_omniglot(omniglot_folder, size=105, rotations=False, verify=False)
    np.testing.assert_array_equal(plain.images, pool.images[::4])


def test_clean_divides_drawings(omniglot_folder):
    data = omniglot(omniglot_folder, verify=False)
    assert audit(data).clean
    for i in range(3):
        assert shared_drawings(data, i) == 0
        held = {canonical(x) for x in data.validation.client(i)[0]}
        assert not held & {canonical(x) for x in data.train.client(i)[0]}
    whole = omniglot(omniglot_folder, verify=False, validation=0.0)
    assert np.bincount(whole.train.client(0)[1]).tolist() == [60, 60]
    np.testing.assert_array_equal(whole.test.x, data.test.x)


def test_as_published_leaks_and_says_so(omniglot_folder):
    data = omniglot(omniglot_folder, "as-published", verify=False, validation=0.0)
    for i, count in enumerate(CHARACTERS):
        assert np.bincount(data.train.client(i)[1]).tolist() == [60] * count
        assert np.bincount(data.test.client(i)[1]).tolist() == [20] * count
    found = audit(data)
    assert found.leaks == ("rotations of one drawing are in training and in test data",)
    assert not found.clean
    share = np.average([shared_drawings(data, i) for i in range(3)], weights=data.test.sizes)
    assert share > 0.9
    assert f"so it is for {share:.1%} of the test samples" in data.notes[0]
    upright = omniglot(omniglot_folder, "as-published", verify=False, rotations=False)
    assert audit(upright).clean
    assert not any("rotations" in note for note in upright.notes)


def test_a_drawing_that_repeats_another_is_left_out_of_clean(tmp_path):
    drawn = drawings()
    name = "images_background/Tengwar/character01/0001_{:02d}.png"
    files = drawn["images_background"]
    files[name.format(7)] = files[name.format(2)]
    files[name.format(9)] = np.rot90(files[name.format(2)])
    omniglot_folder = write(tmp_path, drawn)
    data = omniglot(omniglot_folder, verify=False)
    assert data.notes[0] == "drawings that equal another one of their character are left out: 2"
    assert audit(data).clean
    assert total(data, 1, label=0) == 18 * 4
    assert total(data, 1, label=1) == 20 * 4
    upright = omniglot(omniglot_folder, verify=False, rotations=False)
    assert upright.notes[0].endswith(": 1")


def total(data, client, label):
    return sum(int((data.split(split).client(client)[1] == label).sum()) for split in SPLITS)


def test_the_split_seed_divides_and_a_partition_can_be_saved(omniglot_folder, tmp_path):
    first, again, other = (omniglot(omniglot_folder, verify=False, split_seed=seed) for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    path = tmp_path / "p.npz"
    omniglot_partition(omniglot_folder, split_seed=1, verify=False).save(path)
    assert omniglot(omniglot_folder, str(path), verify=False).fingerprint == other.fingerprint


def test_its_provenance_makes_it_again(omniglot_folder):
    data = omniglot(
        omniglot_folder, "as-published", size=20, antialias=True, rotations=False, labels="global", verify=False
    )
    arguments = json.loads(json.dumps(data.provenance["arguments"]))
    again = load({"name": "omniglot", "folder": str(omniglot_folder), "verify": False, **arguments})
    assert again.fingerprint == data.fingerprint
    assert again.provenance == data.provenance


def test_refuses(omniglot_folder):
    for bad, message in (
        ({"split": "cleen"}, "unknown partition 'cleen'; did you mean 'clean'"),
        ({"split": "iid"}, "known: as-published, clean"),
        ({"labels": "own"}, "unknown labels 'own'"),
        ({"test": 1.0}, "test fraction"),
    ):
        with pytest.raises(ConfigError, match=message):
            omniglot(omniglot_folder, verify=False, **bad)


@pytest.mark.second
def test_real_files(real_set):
    data = omniglot(real_set("omniglot"))
    outputs = data.train.outputs
    assert (data.num_clients, outputs.sum(), outputs.min(), outputs.max()) == (50, 1623, 14, 55)
    assert data.test.sizes.sum() == 32_460
    assert audit(data).clean
    ink = data.train.x.mean()
    assert 0.02 < ink < 0.2  # strokes are bright on black
