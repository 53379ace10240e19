"""docs/tutorial.md runs as it stands there: every command, every block of Python, in order."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
FILES = ROOT / "docs" / "tutorial"
PENGUINS, SCHOOL = (ROOT / "docs" / "tutorial.md").read_text().split("## A larger federation")
# The page's numbers come from its own counts; that every command works, and what it writes, does not depend on them.
SMALLER = {
    "--splits 4": "--splits 2",
    "--splits 3": "--splits 2",
    "--rounds 20": "--rounds 5",
    "--rounds 50": "--rounds 5",
}
# One process on one device: the other tests have the other cores, and what is compiled is compiled once.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "120", "JAX_NUM_CPU_DEVICES": "1"}


def execute(folder: Path, *command: str) -> str:
    words = (sys.executable, *(("-m", *command) if command[0] == "idiolect" else command[1:]))
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def run(text: str, folder: Path) -> dict[str, str]:
    """Run every shell and Python block in order; what each command, or 'python' for the blocks, has printed."""
    printed: dict[str, str] = {}
    for count, smaller in SMALLER.items():
        text = text.replace(count, smaller)
    for language, block in re.findall(r"```(sh|python)\n(.*?)```", text, re.S):
        if language == "python":
            (folder / "block.py").write_text(block)
            printed["python"] = execute(folder, "python", "block.py")
            continue
        for line in block.strip().splitlines():
            words = shlex.split(line)
            if words[0] != "pip":
                printed[words[1]] = execute(folder, *words)
    return printed


@pytest.mark.second
def test_penguins(tmp_path: Path) -> None:
    for name in ("penguins.csv", "colonies.py"):
        shutil.copy(FILES / name, tmp_path)
    printed = run(PENGUINS, tmp_path)
    sizes = {name: len(pd.read_csv(tmp_path / f"{name}.csv")) for name in ("colonies", "unknown", "later")}
    assert sizes == {"colonies": 265, "unknown": 9, "later": 68}  # with 2 unmeasured birds all 344
    shown = re.search(r"to compare methods: (.*)", PENGUINS)
    assert shown is not None
    assert shown[0] in printed["inspect"]
    files = ("advice/advice.md", "advice/clients.csv", "mine/report.md", "newcomer/report.md", "gentoo.json")
    for name in (*files, "newcomer/own-samples.csv", "schema.json"):
        assert (tmp_path / name).is_file(), name
    assert list((tmp_path / "newcomer" / "models" / "personal").iterdir())

    sexes = pd.read_csv(tmp_path / "sexes.csv")
    unknown = pd.read_csv(tmp_path / "unknown.csv")
    assert sexes["client"].tolist() == unknown["colony"].tolist()
    assert set(sexes["prediction"]) == {"female", "male"}
    np.testing.assert_allclose(sexes["P(female)"] + sexes["P(male)"], 1, atol=2e-6)
    guessed, later = pd.read_csv(tmp_path / "guessed.csv"), pd.read_csv(tmp_path / "later.csv")
    accuracy = 100 * float(np.mean(guessed["prediction"].to_numpy() == later["sex"].to_numpy()))
    assert f"accuracy {accuracy:.4g} %" in printed["predict"]

    with np.load(tmp_path / "gentoo.npz") as arrays:
        assert arrays["linear.weight"].shape == (2, 4)


@pytest.mark.second
def test_school(tmp_path: Path) -> None:
    beside = ROOT.parent / "shared" / "data"
    folder = os.environ.get("IDIOLECT_DATA") or str(beside)
    if not any((Path(folder) / name / "school.mat").is_file() for name in ("school", "mtl-small")):
        pytest.skip("school.mat is not here")
    run(SCHOOL.replace("DIR", shlex.quote(folder)), tmp_path)
    assert (tmp_path / "school-advice" / "advice.md").is_file()
    table = pd.read_csv(tmp_path / "school" / "table.csv")
    assert set(table["method"]) == {"ditto", "fedavg", "local"}
