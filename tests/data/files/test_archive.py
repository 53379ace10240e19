import gzip
import io
import zipfile

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.archive import data_folder, find_gz, find_members, read_gz, read_numbers, require_gz


def test_argument_wins_over_the_environment(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name / "mnist").mkdir(parents=True)
    monkeypatch.setenv("IDIOLECT_DATA", str(tmp_path / "a"))
    assert data_folder(None, "mnist", "") == tmp_path / "a" / "mnist"
    assert data_folder(tmp_path / "b", "mnist", "") == tmp_path / "b" / "mnist"


def test_another_name_of_the_folder(tmp_path):
    (tmp_path / "mtl-small").mkdir()
    assert data_folder(tmp_path, "school", "", also="mtl-small") == tmp_path / "mtl-small"
    (tmp_path / "school").mkdir()
    assert data_folder(tmp_path, "school", "", also="mtl-small") == tmp_path / "school"


def test_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.delenv("IDIOLECT_DATA", raising=False)
    with pytest.raises(DataError, match=r"set IDIOLECT_DATA.*published there"):
        data_folder(None, "mnist", "published there")
    with pytest.raises(DataError, match=r"no folder .*mnist; published there"):
        data_folder(tmp_path, "mnist", "published there")


CONTENT = bytes(range(256)) * 4


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_reads_raw_and_gzip_by_the_same_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(CONTENT) if name.endswith(".gz") else CONTENT)
    assert require_gz(tmp_path, "a.txt", "") == find_gz(tmp_path, "a.txt") == path
    assert read_gz(path) == CONTENT


def test_refuses_broken_gzip(tmp_path):
    path = tmp_path / "x.gz"
    for broken in (gzip.compress(CONTENT)[:-9], gzip.compress(CONTENT)[:12] + bytes(30)):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"x\.gz is truncated or damaged"):
            read_gz(path)
    path.write_bytes(CONTENT)
    with pytest.raises(DataError, match=r"not a gzip file.*remove \.gz"):
        read_gz(path)


def test_missing_file_says_where_it_is_published(tmp_path):
    assert find_gz(tmp_path, "a.txt") is None
    with pytest.raises(DataError, match=r"missing file .*a\.txt.*published at somewhere"):
        require_gz(tmp_path, "a.txt", "published at somewhere")
    with pytest.raises(DataError, match="cannot read"):
        read_gz(tmp_path / "none")


FILES = {"set/a.txt": b"1 2\n3 4\n", "set/deep/b.txt": b"hello"}


def packed(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unpack(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("kind", ["zip", "zip in zip", "folder", "flat folder"])
def test_finds_the_files_however_they_lie(tmp_path, kind):
    if kind == "folder":
        unpack(tmp_path, FILES)
    elif kind == "flat folder":
        unpack(tmp_path, {name.removeprefix("set/"): content for name, content in FILES.items()})
    else:
        content = packed({"__MACOSX/set/a.txt": b"junk", **FILES})
        outer = packed({"__MACOSX/._set.zip": b"junk", "set.zip": content}) if kind == "zip in zip" else content
        (tmp_path / "download.zip").write_bytes(outer)
    members = find_members(tmp_path, "a.txt", "published there")
    assert members.read("a.txt", "") == FILES["set/a.txt"]
    assert members.read("deep/b.txt", "") == b"hello"
    assert "deep/b.txt" in members
    assert "b.txt" not in members
    with pytest.raises(DataError, match=r"has no file 'c\.txt'; published there"):
        members.read("c.txt", "published there")


def test_the_unpacked_folder_wins_over_the_zip(tmp_path):
    (tmp_path / "set.zip").write_bytes(packed(FILES))
    unpack(tmp_path, {"set/a.txt": b"mine"})
    assert find_members(tmp_path, "a.txt", "").read("a.txt", "") == b"mine"


def test_missing(tmp_path):
    with pytest.raises(DataError, match=r"neither a \.zip nor a folder with 'a\.txt'; published there"):
        find_members(tmp_path, "a.txt", "published there")
    (tmp_path / "other.zip").write_bytes(packed({"x": b""}))
    with pytest.raises(DataError, match=r"other\.zip: no file 'a\.txt' inside; published there"):
        find_members(tmp_path, "a.txt", "published there")


def test_damaged_archives(tmp_path):
    content = packed({"set/a.txt": np.random.default_rng(0).bytes(5000)})
    path = tmp_path / "set.zip"
    for broken in (content[: len(content) // 2], b"", b"not a zip"):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"set\.zip is truncated, damaged or not a zip file"):
            find_members(tmp_path, "a.txt", "")
    path.write_bytes(packed({"set.zip": b"PK broken"}))
    with pytest.raises(DataError, match=r"set\.zip, set\.zip is truncated"):
        find_members(tmp_path, "a.txt", "")
    flipped = bytearray(content)
    flipped[2000] ^= 255
    path.write_bytes(flipped)
    with pytest.raises(DataError, match=r"'a\.txt' is damaged or cannot be read"):
        find_members(tmp_path, "a.txt", "").read("a.txt", "")


def test_numbers():
    content = b"  2.5e+000 -1\r\n\t3   4.0000001e-001 \r\n"
    np.testing.assert_array_equal(read_numbers(content, "f", 2), [[2.5, -1], [3, 0.40000001]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "f is not a table of numbers: No columns"),
        (b"1 2\n3 x\n", "f is not a table of numbers: .*x"),
        (b"1 2\n3 4 5\n", "f is not a table of numbers: .*line 2, saw 3"),
        (b"1 2\n3\n", "too few numbers, NaN or infinity: row 2 .1 in all"),
        (b"1 nan\n3 4\n", "NaN or infinity: row 1"),
        (b"1 2\n3 inf\n5 -inf\n", "NaN or infinity: row 2 .2 in all"),
        (b"1 2 3\n3 4 5\n", "f has 3 columns, expected 2"),
        (b"1\n2\n", "f has 1 columns, expected 2"),
        (b"\xff\xfe\x00", "f is not a table of numbers"),
    ],
)
def test_refuses_what_is_no_table_of_numbers(content, message):
    with pytest.raises(DataError, match=message) as error:
        read_numbers(content, "f", 2)
    assert "\n" not in str(error.value)
