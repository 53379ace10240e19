from pathlib import Path

import numpy as np
import pytest

import idiolect
from idiolect.data import from_arrays


def test_python_writes_prints_and_returns_the_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    parts = {f"c{i}": (rng.normal(size=(12, 2)), rng.normal(size=12)) for i in range(2)}
    advice = idiolect.advise(
        from_arrays(parts, task="regression"), methods=(), splits=2, rounds=1, out=tmp_path / "a"
    )
    assert (tmp_path / "a" / "advice.md").is_file()
    assert "idiolect.advise(...)" in (tmp_path / "a" / "report.html").read_text()
    assert "Who gains" in capsys.readouterr().out
    assert advice.decision.outcome == "unclear"  # six test rows
