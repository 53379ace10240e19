import jax
import numpy as np
import pytest
from PIL import Image

from idiolect.core.errors import ConfigError, DataError
from idiolect.data.sets.omniglot_files import read_drawings
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
