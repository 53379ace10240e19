import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from idiolect.cli import main
from idiolect.cli.inputs import division_of
from idiolect.study.run.resolve import Workbench
from tests.conftest import Call


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
    assert run(monkeypatch, "advise", str(table), "--out", str(out), "--baselines", "tree") == 2
    assert "regressions" in capsys.readouterr().err
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


SMALL = ("--splits", "2", "--rounds", "1", "--methods", "fedavg")


@pytest.mark.second
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(
    table: Path, monkeypatch: pytest.MonkeyPatch, commandline: Call
) -> None:
    monkeypatch.chdir(table.parent)
    assert commandline("advise", "t.csv", *SMALL, "--out", "whole")[0] == 0
    typed = ("advise", "t.csv", *SMALL, "--out", "in two")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for name, code in (("regressions", "nothing was kept; begin again"), ("trees", "resume")):
        with monkeypatch.context() as patched:
            patched.setattr(f"idiolect.study.advice.advise.{name}", interrupted)
            stopped = commandline(*typed)
        assert stopped[:2] == (130, "")
        assert stopped[2].endswith(f"stopped; {code} with: {shlex.join(['idiolect', *typed])}\n")
        assert Path("in two").exists() == (name == "trees")
    for command in (("report", "in two"), ("show", "in two"), ("resume", "in two")):
        code, out, err = commandline(*command)
        assert (code, out) == (1, "")
        again = shlex.join(["idiolect", *typed])
        assert err == f"error: the advice in 'in two' is not finished; continue with: {again}\n"
    assert commandline(*typed)[0] == 0
    whole, in_two = (json.loads(Path(name, "advice.json").read_text())["advice"] for name in ("whole", "in two"))
    for advice in (whole, in_two):
        assert advice.pop("command").startswith("idiolect advise t.csv")
        advice["made"].pop("time")
    assert in_two == whole
    for name in ("advice.md", "advice.csv", "clients.csv"):
        assert Path("in two", name).read_bytes() == Path("whole", name).read_bytes()


def test_a_folder_of_an_advice_has_its_page_and_no_runs(
    table: Path, monkeypatch: pytest.MonkeyPatch, commandline: Call
) -> None:
    monkeypatch.chdir(table.parent)
    code, told, _ = commandline("advise", "t.csv", *SMALL, "--out", "a", "--json")
    assert code == 0
    made = Path("a", "report.html").read_bytes()
    assert commandline("report", "a", "-o", "page.html", "--json") == (0, '{\n  "page": "page.html"\n}\n', "")
    assert Path("page.html").read_bytes() == made
    assert commandline("show", "a", "--json") == (0, told, "")
    shown = commandline("show", "a")
    assert shown[0] == 0
    assert "Who gains, who loses" in shown[1]
    assert shown[1].endswith(f"HTML page: {Path('a', 'report.html')}\n")
    (table.parent / "runs").mkdir()
    for command, words in {
        ("watch", "a"): "holds an advice, which has no runs to watch; see: idiolect show a",
        ("resume", "a"): "the advice in 'a' is finished; see: idiolect show a",
        ("report", "runs", "a"): "'a' holds an advice, which has its own page; name no other folder with it",
        ("advise", "t.csv", *SMALL[:-1], "ditto", "--out", "a"): "another question (changed: methods)",
        ("advise", "t.csv", *SMALL, "--baselines", "none", "--out", "a"): "another question (changed: baselines)",
    }.items():
        code, out, err = commandline(*command)
        assert (code, out) == (1, "")
        assert words in err
    Path("a", "advice.json").write_text("{")
    code, out, err = commandline("report", "a", "-o", "other.html")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "is damaged" in err
    assert not Path("other.html").exists()
