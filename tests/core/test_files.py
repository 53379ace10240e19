import errno
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError, DivergedError, StoreError
from idiolect.core.files import (
    DEEPEST,
    alone,
    atomic_write,
    cache_folder,
    file_name,
    file_names,
    json_of,
    no_empty_folders,
    path_of,
    toml_of,
    write_text,
)


def test_atomic_write_replaces_and_leaves_no_other_file(tmp_path):
    target = tmp_path / "a.bin"
    for content in (b"old", b"new"):
        with atomic_write(target) as file:
            file.write(content)
            assert not target.exists() or target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_text_is_written_as_utf_8_for_its_owner_or_for_all(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # what is shared follows its folder
    for name, shared in (("own", False), ("all", True)):
        write_text(tmp_path / name, "Zürich\n", shared=shared)
        assert (tmp_path / name).read_bytes() == "Zürich\n".encode()
        assert ((tmp_path / name).stat().st_mode & 0o077 == 0) is not shared
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "own", "\ud800")
    assert (tmp_path / "own").read_bytes() == "Zürich\n".encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "own"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x"), OSError(errno.EIO, "x", "other")])
def test_atomic_write_keeps_the_old_file_and_passes_other_errors_on(tmp_path, error):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def half():
        with atomic_write(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        half()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("call", "code"), [("fsync", errno.ENOSPC), ("replace", errno.EACCES)])
def test_a_full_disk_or_read_only_folder_is_one_clear_line(tmp_path, monkeypatch, call, code):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, call, fail)
    message = rf"cannot write .*a\.bin: {os.strerror(code)}"
    with pytest.raises(StoreError, match=message), atomic_write(target) as file:
        file.write(b"x")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_and_a_folder_in_the_way_are_named(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*No such file"), atomic_write(tmp_path / "no" / "a"):
        pytest.fail("there is no file to write to")
    (tmp_path / "b").mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*b: "), atomic_write(tmp_path / "b") as file:
        file.write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_below_a_regular_file(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Not a directory"), atomic_write(tmp_path / "file" / "a"):
        pass


def test_file_names_never_agree():
    assert file_name("fedavg-ft_2.0") == "fedavg-ft_2.0"
    names = ["a b", "a_b", "a/b", "A_B", "..", ".", "", "/", "ä", "ö", "x" * 300, "x" * 301, "plain"]
    single, together = [file_name(n) for n in names], file_names(names)
    for found in (single, together):
        assert all(c.isalnum() or c in "._-" for n in found for c in n)
        assert all(0 < len(n) < 200 and n.strip(".") for n in found if n not in (".", ".."))
        assert len(set(found)) == len(names)
    assert len({n.lower() for n in together}) == len(names)
    assert together[-1] == "plain"
    assert file_names(["Hospital 1", "Hospital 2"]) == ["Hospital_1", "Hospital_2"]
    first = file_names(["a b", "a/b"])[0]
    assert len({*file_names(["a b", "a/b", first])}) == 3


def test_names_keep_the_letters_of_any_script(tmp_path):
    names = [
        "北京协和医院",
        "Charité Berlin",
        "больница 1",
        "हिन्दी",
        "مستشفى",
        "Straße",
        "STRASSE",
        "é",
        "e\u0301",
        "北" * 90,
        "🏥",
    ]
    files = file_names(names)
    assert files[:3] == ["北京协和医院", "Charité_Berlin", "больница_1"]
    assert files[3] == "हिन्दी"
    for file in files:
        (tmp_path / f"{file}.safetensors").touch(exist_ok=False)
    assert len({file.casefold() for file in files}) == len(names)
    assert file_name("北京协和医院") == "北京协和医院"
    assert file_name("e\u0301") != file_name("é")  # the same to the eye, and to some file systems


def test_where_the_file_system_has_no_such_letters_the_hash_stands_for_them(monkeypatch):
    def ascii_only(text):
        return text.encode("ascii")

    monkeypatch.setattr("idiolect.core.files.os.fsencode", ascii_only)
    first, second = file_names(["北京", "上海"])
    assert first != second
    assert first.isascii()
    assert second.isascii()


def test_new_folders_that_an_error_leaves_empty_are_removed(tmp_path: Path):
    (tmp_path / "there").mkdir()

    def fails(folder: Path, name: str) -> None:
        with no_empty_folders(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if name:
                (folder.parent / name).touch()
            raise KeyboardInterrupt

    for folder, name in (("there/a/b", ""), ("there", ""), ("there/c/d", "kept")):
        with pytest.raises(KeyboardInterrupt):
            fails(tmp_path / folder, name)
    assert sorted(tmp_path.rglob("*")) == [tmp_path / part for part in ("there", "there/c", "there/c/kept")]
    with no_empty_folders(tmp_path / "new"):
        (tmp_path / "new").mkdir()
    assert (tmp_path / "new").is_dir()


def test_alone_until_the_other_ends(tmp_path: Path):
    first, second = alone(tmp_path / "lock", "nobody"), alone(tmp_path / "lock", "busy")
    with first, pytest.raises(StoreError, match="busy"), second:
        pass
    with alone(tmp_path / "lock", "nobody"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot write .*file/lock: "):
        alone(tmp_path / "file" / "lock", "busy").__enter__()


def test_alone_again_when_the_other_was_killed(tmp_path):
    lock = tmp_path / "lock"
    script = (
        "import sys, time; from idiolect.core.files import alone\n"
        "with alone(sys.argv[1], 'busy'): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="busy"):
            alone(lock, "busy").__enter__()
        other.kill()
    with alone(lock, "nobody"):
        pass


@pytest.mark.parametrize(("code", "held"), [(errno.ENOLCK, True), (errno.EACCES, False), (errno.EROFS, False)])
def test_a_file_system_without_locks_is_used_and_one_that_cannot_be_written_is_refused(
    tmp_path, monkeypatch, code, held
):
    def fail(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("idiolect.core.files.FileLock.acquire", fail)
    if held:
        with alone(tmp_path / "lock", "busy"):
            return
    with pytest.raises(StoreError, match=f"cannot write {tmp_path / 'lock'}: {os.strerror(code)}"):
        alone(tmp_path / "lock", "busy").__enter__()


def test_divergence_survives_the_way_between_processes():
    import pickle

    error = pickle.loads(pickle.dumps(DivergedError("bad", round=3, client="c", stage="s")))
    assert (str(error), error.round, error.client, error.stage) == ("bad", 3, "c", "s")


def test_the_cache_folder_is_the_users_unless_a_variable_names_another_or_none(tmp_path, monkeypatch):
    for name in ("IDIOLECT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "idiolect" / "xla"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "idiolect" / "xla"
    monkeypatch.setenv("IDIOLECT_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("IDIOLECT_CACHE", "")
    assert cache_folder() is None


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("content", ["", "{", "1" * 5000, b"\xff", DEEP, DEEP.encode()])
def test_every_fault_of_json_is_a_value_error(content) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_of(content)
    assert json_of('{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize("content", ["a", "a = ", f"a = {DEEP}"])
def test_every_fault_of_toml_is_of_one_kind(content: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=r"."):
        toml_of(content)
    assert toml_of("a = [1]") == {"a": [1]}


def test_a_nesting_that_is_too_deep_is_named() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        json_of(DEEP)
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        toml_of(f"a = {DEEP}")


@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a": ', "}"), ('[{"b": 1, "a": ', "}]")])
@pytest.mark.parametrize("extra", [0, 1, 800])
def test_a_nesting_that_python_could_just_read_is_refused_too(start: str, end: str, extra: int) -> None:
    """What reads a value, compares it and writes it has a deeper stack than the parser."""
    each = start.count("[") + start.count("{")
    levels = (DEEPEST + extra) // each + (extra > 0 and each > 1)
    text = start * levels + "1" + end * levels
    if extra == 0:
        assert json.dumps(json_of(text)).replace(" ", "") == text.replace(" ", "")
        return
    with pytest.raises(ValueError, match="nested too deeply"):
        json_of(text)


def test_toml_has_the_same_limit() -> None:
    assert toml_of(f"a = {'[' * (DEEPEST - 1)}{']' * (DEEPEST - 1)}")["a"]
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        toml_of(f"a = {'[' * DEEPEST}{']' * DEEPEST}")


@pytest.mark.parametrize(("value", "shown"), [(None, "None"), (3, "an int"), (b"x", "a bytes"), ([], "a list")])
def test_what_is_no_path_is_named(value, shown: str) -> None:
    with pytest.raises(ConfigError, match=f"^a model is the path of its file, not {shown}$"):
        path_of(value, "a model is the path of its file")
    assert path_of("a/b", "") == path_of(Path("a/b"), "") == Path("a/b")
