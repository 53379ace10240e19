import errno
import os
from pathlib import Path

import pytest

from idiolect.core import files
from idiolect.core.errors import DivergedError, StoreError
from idiolect.core.files import alone, atomic_write, file_name, file_names


def test_complete_or_as_before(tmp_path: Path):
    target = tmp_path / "a"
    with atomic_write(target) as file:
        file.write(b"one")
    with pytest.raises(ZeroDivisionError), atomic_write(target) as file:
        file.write(b"two" * (1 // 0))
    assert target.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_full_or_read_only_disk_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch, code):
    def fail(_):
        raise OSError(code, os.strerror(code))

    target = tmp_path / "a"
    target.write_bytes(b"old")
    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(StoreError, match=f"cannot write {target}: {os.strerror(code)}"), atomic_write(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_below_a_regular_file(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Not a directory"), atomic_write(tmp_path / "file" / "a"):
        pass


def test_file_names_never_agree():
    assert file_name("fedavg-ft_2.0") == "fedavg-ft_2.0"
    names = ["a b", "a_b", "a/b", "A_B", "..", ".", "", "/", "ä", "ö", "x" * 300, "x" * 301, "plain"]
    single, together = [file_name(n) for n in names], file_names(names)
    for found in (single, together):
        assert all(set(n) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") for n in found)
        assert all(0 < len(n) < 200 and n.strip(".") for n in found if n not in (".", ".."))
        assert len(set(found)) == len(names)
    assert len({n.lower() for n in together}) == len(names)
    assert together[-1] == "plain"
    assert file_names(["Hospital 1", "Hospital 2"]) == ["Hospital_1", "Hospital_2"]
    first = file_names(["a b", "a/b"])[0]
    assert len({*file_names(["a b", "a/b", first])}) == 3


def test_alone_until_the_other_ends(tmp_path: Path):
    first, second = alone(tmp_path / "lock", "nobody"), alone(tmp_path / "lock", "busy")
    with first, pytest.raises(StoreError, match="busy"), second:
        pass
    with alone(tmp_path / "lock", "nobody"):
        pass
    with pytest.raises(StoreError, match="cannot write"), alone(tmp_path / "absent" / "lock", "busy"):
        pass


def test_divergence_survives_the_way_between_processes():
    import pickle

    error = pickle.loads(pickle.dumps(DivergedError("bad", round=3, client="c", stage="s")))
    assert (str(error), error.round, error.client, error.stage) == ("bad", 3, "c", "s")
