import json
import os
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.nvflare.jobs import End, clean_jobs, hub_folder, obstacle, read_end, write_end, write_job
from idiolect.deploy.nvflare.kits import ALLOWED, Kit


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


def test_a_job_is_three_files_without_code_that_name_the_allowed_classes(tmp_path: Path) -> None:
    job = write_job(tmp_path, "run-1", {"folder": "run"}, 2)
    files = sorted(path.relative_to(job).as_posix() for path in job.rglob("*") if path.is_file())
    assert files == ["app/config/config_fed_client.json", "app/config/config_fed_server.json", "meta.json"]
    text = "".join((job / file).read_text() for file in files)
    paths = {word for word in text.split('"') if word.count(".") > 2}
    assert paths == set(ALLOWED)
    assert json.loads((job / "meta.json").read_text())["min_clients"] == 2
    assert json.loads((job / files[1]).read_text())["components"][0]["args"] == {"folder": "run"}


@pytest.mark.parametrize(("name", "least"), [("a b", 1), ("", 1), ("../x", 1), ("ok", 0)])
def test_bad_jobs_are_refused_and_nothing_is_written(tmp_path: Path, name: str, least: int) -> None:
    with pytest.raises(ConfigError):
        write_job(tmp_path, name, {}, least)
    assert not list(tmp_path.iterdir())


def test_the_newest_job_folders_stay_and_all_else(tmp_path: Path) -> None:
    jobs = [f"{i:08x}-0000-4000-8000-000000000000" for i in range(5)]
    for i, name in enumerate([*jobs, "idiolect", "startup"]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.txt").write_text("x")
        os.utime(tmp_path / name, (i, i))
    assert clean_jobs(Kit(tmp_path, "client", "a", "h", 1, "h"), keep=2) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*jobs[3:], "idiolect", "startup"])
