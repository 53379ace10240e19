import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from idiolect.cli import main
from idiolect.cli.advise import division_of
from idiolect.study.resolve import Workbench


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"client": np.repeat(["a", "b", "one row"], [12, 12, 1]), "v": rng.normal(size=25)})
    frame["label"] = 3 * frame["v"] + rng.normal(size=25)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr("sys.argv", ["idiolect", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return ended.value.code


def test_one_command_gives_the_advice(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = table.parent / "out"
    options = ["--splits", "2", "--rounds", "1", "--methods", "fedavg", "--out", str(out), "--json"]
    assert run(monkeypatch, "advise", str(table), *options) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "unclear"
    assert [client["name"] for client in told["clients"]] == ["a", "b"]
    assert any("one row" in note for note in told["notes"])
    text = (out / "advice.md").read_text()
    assert text.startswith("# Advice: t\n")
    assert str(table.parent) not in text  # who reads the page needs no path of this machine


def test_a_bad_setting_leaves_nothing_behind(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = table.parent / "out"
    for options in (["--splits", "1"], ["--methods", "dito"], ["--set", "rounds=3"], ["--rounds", "0"]):
        assert run(monkeypatch, "advise", str(table), "--out", str(out), *options) == 1
        assert capsys.readouterr().err.startswith("error: ")
        assert not out.exists()


def test_a_table_is_scaled_anew_in_each_division_and_its_own_split_is_drawn_from_again(table: Path) -> None:
    spec = {"name": "table", "path": str(table), "client": "client", "label": "label"}
    make = division_of(dict(spec), Workbench())
    for seed in range(2):
        train = make(seed).stored("train").x
        np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-6)
    frame = pd.read_csv(table).query("client != 'one row'")
    frame["split"] = np.tile(["train", "train", "validation", "test"], 6)
    frame.to_csv(table, index=False)
    make = division_of(dict(spec), Workbench())
    assert not np.array_equal(make(0).stored("test").y, make(1).stored("test").y)


def test_a_model_must_be_named_before_it_is_changed(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "advise", str(table), "--set", "model.l2=0.1") == 1
