"""What README.md shows runs as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_examples_run_one_after_the_other(tmp_path):
    rng = np.random.default_rng(0)
    x, hospitals = rng.normal(size=(360, 3)), [f"hospital {i}" for i in range(11)] + ["St. Mary"]
    table = pd.DataFrame(x, columns=["age", "dose", "score"])
    table["hospital"] = rng.choice(hospitals, len(table))
    table["outcome"] = np.where(x[:, 0] + 0.3 * rng.normal(size=len(table)) > 0, "well", "ill")
    table.to_csv(tmp_path / "patients.csv", index=False)
    examples = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(examples) == 2
    program = "\n".join([examples[0], "import equinox, jax", examples[1]])
    (tmp_path / "program.py").write_text(f"{program}\nassert model(data.train.x[0]).shape == (2,)\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "worst 10 %" in done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []  # nothing is kept unasked


def test_every_file_that_it_links_to_is_there():
    for folder, text in [(ROOT, README), *((ROOT / "docs", p.read_text()) for p in (ROOT / "docs").glob("*.md"))]:
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            assert link.startswith("http") or (folder / link).exists(), link
