import gzip
import hashlib

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.idx import read_idx

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
