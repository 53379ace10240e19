"""idiolect combine: each client combines the models of a finished folder."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.tables import wards

RUN = ["--client", "ward", "--label", "label", "--rounds", "2", "--eval-every", "2", "--jobs", "1", "--out", "run"]


def test_from_a_table_to_predictions(commandline: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    wards().drop(columns="split").to_csv("known.csv", index=False)
    assert commandline("compare", "known.csv", "--methods", "local,fedavg", *RUN, "--json")[0] == 0
    before = sorted(str(path) for path in Path("run").rglob("*"))
    code, out, err = commandline("combine", "run", "--kind", "mean")
    assert (code, out) == (1, "")
    assert "must be one of blend, portfolio" in err
    assert sorted(str(path) for path in Path("run").rglob("*")) == before
    code, out, _ = commandline("combine", "run")
    assert code == 0
    assert "mean weights: local" in out
    code, text, _ = commandline("combine", "run", "--json")
    found = json.loads(text)
    assert code == 0
    assert found["rows"] > 0
    assert {*found["weights"]} == {"north", "south", "west"}
    assert [row["model"] for row in found["table"]] == ["local", "fedavg", "blend"]
    place = str(Path(found["combined"]).parent)
    assert place in out
    code, _, _ = commandline("predict", place, "known.csv", "-o", "said.csv")
    assert code == 0
    assert len(pd.read_csv("said.csv")) == 60


def test_a_folder_without_runs_is_named(commandline: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = commandline("combine", "gone")
    assert (code, out) == (1, "")
    assert "no runs in 'gone'" in err
