"""Every script of examples/ is short and runs, with few rounds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
SAYS = {
    "compare_methods.py": ("ditto", "Highest test accuracy: "),
    "own_data.py": ("4 clients, 258 train", "outcome"),
    "own_method.py": ("fedmedian", "fedavg"),
    "own_model.py": ("fedper on synthetic", "personal"),
    "real_sites.py": ("site-1 sent ", "site-2 sent "),
}
LONGEST = 40


@pytest.mark.second
@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_runs_as_it_stands_there(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / name), "2"]
    environment = {**os.environ, "COLUMNS": "120"}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    assert [said for said in SAYS[name] if said not in ended.stdout] == []
    assert list(tmp_path.iterdir()) == []  # it leaves nothing behind


def test_each_is_short_and_has_its_line_in_the_readme() -> None:
    scripts = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.py")}
    assert scripts.keys() == SAYS.keys()
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name, text in scripts.items():
        assert len(text.splitlines()) < LONGEST, name
        assert f"Run: python examples/{name} [ROUNDS]\n" in text
        assert f"[{name}]({name})" in readme
    assert "(../examples/README.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
