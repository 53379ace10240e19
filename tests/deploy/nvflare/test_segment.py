from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.nvflare.segment import End, hub_folder, obstacle, read_end, write_end


def test_how_a_job_ended_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_end(tmp_path) is None
    write_end(tmp_path, "j1", None)
    assert read_end(tmp_path) == End("j1", "", False)
    write_end(tmp_path, "j2", StoreError("too few\nlines"))
    assert read_end(tmp_path) == End("j2", "too few", False)
    write_end(tmp_path, "j3", ConfigError("bad"))
    assert read_end(tmp_path) == End("j3", "bad", True)
    for text in ("{", "[" * 100_000):
        (tmp_path / "segment.json").write_text(text)
        assert read_end(tmp_path) is None


def test_a_folder_in_which_nothing_can_be_written_is_one_line(tmp_path: Path) -> None:
    assert obstacle(tmp_path) == ""
    assert not list(tmp_path.iterdir())
    line = obstacle(tmp_path / "gone")
    assert (
        line == f"cannot write {tmp_path / 'gone'}: No such file or directory; make room there, or make it writable"
    )


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    write_end(tmp_path / "gone", "j1", None)
    assert not (tmp_path / "gone").exists()


def test_a_job_stays_inside_the_folder_that_the_hub_s_owner_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDIOLECT_HUB", str(tmp_path))
    assert hub_folder("") == tmp_path.resolve()
    assert hub_folder("run") == tmp_path.resolve() / "run"
    for outside in ("..", "/etc", "a/../../b"):
        with pytest.raises(ConfigError, match="outside IDIOLECT_HUB"):
            hub_folder(outside)
    monkeypatch.delenv("IDIOLECT_HUB")
    assert hub_folder(str(tmp_path)) == tmp_path
    with pytest.raises(ConfigError, match="the hub has no folder"):
        hub_folder("run")
