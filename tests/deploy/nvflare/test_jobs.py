import json
import os
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError
from idiolect.deploy.nvflare.jobs import clean_jobs, write_job
from idiolect.deploy.nvflare.kits import Kit
from idiolect.deploy.nvflare.names import ALLOWED


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
