"""Files and folders are their owner's, whatever the umask."""

import re
from pathlib import Path

import pytest

import idiolect.core.rights
from idiolect.core.files import alone, atomic_write
from idiolect.core.rights import create_file, make_folder, private, restrict
from tests.rights import loose, mode, umask


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_files_and_new_folders_are_their_owner_s_whatever_the_umask(tmp_path, mask):
    target = tmp_path / "new" / "deep" / "a.bin"
    with umask(mask):
        assert make_folder(target.parent) == target.parent
        with atomic_write(target) as file:
            file.write(b"x")
            (scratch,) = target.parent.iterdir()
            assert mode(scratch) == 0o600  # while it is written, too
        create_file(tmp_path / "created")
        with open(tmp_path / "opened", "ab", opener=private) as file:
            file.write(b"x")
        with alone(tmp_path / "lock", "busy"):
            pass
    assert [mode(target.parent), mode(target.parent.parent)] == [0o700, 0o700]
    for name in ("new/deep/a.bin", "created", "opened", "lock"):
        assert mode(tmp_path / name) == 0o600, name


def test_a_file_that_was_open_to_others_is_replaced_by_a_private_one(tmp_path):
    for name in ("written", "created"):
        (tmp_path / name).write_bytes(b"old")
        (tmp_path / name).chmod(0o666)
    with atomic_write(tmp_path / "written") as file:
        file.write(b"new")
    create_file(tmp_path / "created")
    assert (tmp_path / "created").read_bytes() == b"old"
    assert [mode(tmp_path / name) for name in ("written", "created")] == [0o600, 0o600]


@pytest.mark.parametrize(
    ("around", "mask", "folder", "file"),
    [
        (0o755, 0o022, 0o755, 0o644),
        (0o755, 0o077, 0o700, 0o600),
        (0o777, 0, 0o777, 0o666),
        (0o700, 0, 0o700, 0o600),
        (0o750, 0, 0o770, 0o660),
    ],
)
def test_what_is_shared_has_the_rights_of_the_umask_and_none_beyond_its_folder(tmp_path, around, mask, folder, file):
    tmp_path.chmod(around)
    with umask(mask):
        for place in (tmp_path, make_folder(tmp_path / "figures", shared=True)):
            with atomic_write(place / "a.csv", shared=True) as out:
                out.write(b"x")
            create_file(place / "b", shared=True)
            assert [mode(place / "a.csv"), mode(place / "b")] == [file, file]
    assert mode(tmp_path / "figures") == folder


def test_a_folder_that_is_there_keeps_its_rights_until_they_are_taken(tmp_path):
    (tmp_path / "kit" / "local").mkdir(parents=True)
    (tmp_path / "kit" / "start.sh").write_text("")
    (tmp_path / "data.csv").write_text("")
    (tmp_path / "kit" / "data.csv").symlink_to(tmp_path / "data.csv")
    for path, rights in (("kit", 0o755), ("kit/local", 0o777), ("kit/start.sh", 0o755), ("data.csv", 0o644)):
        (tmp_path / path).chmod(rights)
    make_folder(tmp_path / "kit")
    assert mode(tmp_path / "kit") == 0o755
    restrict(tmp_path / "kit")
    assert [mode(tmp_path / path) for path in ("kit", "kit/local", "kit/start.sh")] == [0o700, 0o700, 0o700]
    assert mode(tmp_path / "data.csv") == 0o644  # a link's target is not in the folder
    assert loose(tmp_path / "kit") == []


WRITERS = re.compile(
    r"\.mkdir\(|makedirs\(|\.write_(text|bytes)\(|open\([^)]*[\"'][wax]b?\+?[\"']|FileLock\(|\.touch\(\)"
)
ALLOWED = {
    "core/rights.py": "the one place",
    "runtime/xla_flags.py": "what XLA knows is no secret, and the module imports nothing of the package",
    "data/partition.py": "an index file is public",
    "deploy/site/child.py": "the kernel's file about the process",
    "report/live_page.py": "no file: the page's own method",
}


@pytest.mark.parametrize("shared", [False, True])
def test_a_path_through_a_file_is_no_folder(tmp_path, shared):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file" / "a" / "b", shared=shared)
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file", shared=shared)


def test_everything_is_written_by_the_functions_that_know_the_rights():
    """A file or folder that is made in another way has whatever rights the umask gives."""
    root = Path(idiolect.core.rights.__file__).parents[1]
    found = {
        path.relative_to(root).as_posix(): line.strip()
        for path in root.rglob("*.py")
        for line in path.read_text().splitlines()
        if WRITERS.search(line) and "opener=" not in line and "mode=0o600" not in line
    }
    assert found.keys() - ALLOWED.keys() == set(), found
    assert ALLOWED.keys() - found.keys() == set()
