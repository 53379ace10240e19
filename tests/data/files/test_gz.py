import gzip

import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.gz import find_gz, read_gz, require_gz

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
