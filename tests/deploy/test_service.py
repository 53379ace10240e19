import shutil
import subprocess
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError
from idiolect.deploy.service import hub_unit, site_unit

ANALYZE = shutil.which("systemd-analyze")


def units(folder: Path) -> dict[str, str]:
    return {
        "idiolect-hub.service": hub_unit(folder / "study", folder / "hub", folder / "lead", "root"),
        "idiolect-site.service": site_unit(folder / "north", "root"),
    }


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", ["plain", 'with space, 50% of $HOME and "quotes" \\ here'])
def test_systemd_finds_nothing_wrong(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    for part in ("study", "hub", "lead", "north"):
        (folder / part).mkdir(parents=True)
    for unit, text in units(folder).items():
        (tmp_path / unit).write_text(text)
        done = subprocess.run([str(ANALYZE), "verify", str(tmp_path / unit)], capture_output=True, text=True)
        assert (done.returncode, unit in done.stderr) == (0, False), done.stderr


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_systemd_would_find_a_wrong_line(tmp_path: Path) -> None:
    text = site_unit(tmp_path, "root").replace("KillMode=mixed", "KillMode=gently").replace("Type=exec", "Tipe=exec")
    (tmp_path / "wrong.service").write_text(text)
    done = subprocess.run([str(ANALYZE), "verify", str(tmp_path / "wrong.service")], capture_output=True, text=True)
    assert "Tipe" in done.stderr


def test_a_failure_starts_it_again_and_memory_that_runs_out_ends_the_trainer_only(tmp_path: Path) -> None:
    for text in units(tmp_path).values():
        lines = text.splitlines()
        assert {"Restart=on-failure", "OOMPolicy=continue", "StartLimitIntervalSec=0", "UMask=0077"} <= {*lines}
    hub, site = units(tmp_path).values()
    assert "KillMode=process" in hub  # the engine's process may work for other studies
    assert "KillMode=mixed" in site
    assert f'"site" "run" "{tmp_path}/north"' in site
    assert f'"--kit" "{tmp_path}/hub" "--admin" "{tmp_path}/lead"' in hub


@pytest.mark.parametrize("name", ["a\nExecStart=/bin/sh", "tab\there"])
def test_a_name_that_could_add_lines_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rename the folder"):
        site_unit(tmp_path / name)
