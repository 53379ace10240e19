"""The command `idiolect sweep`: what it writes, and what it says of bad input."""

import json

import pytest

from idiolect.cli.sweep import divided
from idiolect.report.view.folder import view_of_folder
from idiolect.study.spec.experiment import load_experiment
from idiolect.study.store.recorded import traffic_key
from idiolect.study.store.store import Store
from tests.report.html.made import page_of
from tests.report.trackers.made import Made

SMALL = ["sweep", "--data", "synthetic", "--methods", "fedavg", "--rounds", "2", "--set", "data.clients=4",
         "--set", "data.max_size=30", "--set", "data.validation=0.2", "--set", "fedavg.local_steps=2"]  # fmt: skip


@pytest.mark.second
def test_a_sweep_prints_json_and_writes_its_files(commandline, tmp_path, monkeypatch):
    sent = Made()
    monkeypatch.setattr("idiolect.report.trackers.tracking.trackers_of", lambda *_: [sent])
    more = ["--set", "fedavg.rate=log(0.01,0.1,2)", "--json", "--out", tmp_path]
    code, out, _ = commandline(*SMALL, *more)
    assert code == 0
    said = json.loads(out)
    assert [row["rate"] for row in said["settings"]] == [0.01, 0.1]
    best = max(said["settings"], key=lambda row: row["validation"])
    assert [row["chosen"] for row in said["settings"]].count(True) == 1
    assert best["chosen"] or best["validation"] == next(r["validation"] for r in said["settings"] if r["chosen"])
    chosen = load_experiment(tmp_path / "chosen.toml").cells[0]
    spec = chosen.methods[0].spec
    assert spec["rate"] == next(r["rate"] for r in said["settings"] if r["chosen"])
    assert chosen.data["clients"] == 4
    assert (tmp_path / "sweep.csv").is_file()
    assert (tmp_path / "sweep.png").is_file()
    # The chosen setting alone is in the page's table, and alone has its bytes recorded.
    with Store(tmp_path, create=False) as store:
        bytes_of = {row.label: store.fact(traffic_key(row.cell, row.label)) for row in store.runs()}
        page = page_of(view_of_folder(tmp_path))["cells"][0]["table"]
    labels = {rate: f"fedavg local_steps=2, rate={rate}" for rate in (0.01, 0.1)}
    assert bytes_of == {labels[rate]: [2440, 2440] if rate == spec["rate"] else None for rate in labels}
    titles = [column["title"] for column in page["columns"]]
    assert page["rows"][0]["cells"][titles.index("bytes up")]["text"] == "2.44 kB"
    assert sent.report == (tmp_path / "report.md").read_text()
    assert ({run for run, _, _ in sent.taken}, sent.finished) == (
        {f"synthetic/{label}/seed0" for label in bytes_of},
        [(tmp_path, "sweep-synthetic")],
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "fedavg.raet=1,2"], "did you mean 'rate'"),
        (["--set", "fedavg.rate=0.1,-1"], "rate = -1.0 must be greater than 0"),
        (["--set", "pfedme.rate=0.1,1"], "'pfedme' is given values to try, but it is not swept"),
        (["--search", "gird"], "did you mean 'grid'"),
        (["--search", "random"], "needs a budget"),
        (["--set", "fedavg.rate="], "write key=value"),
        (["--memory", "-1"], "--memory -1.0"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(commandline, tmp_path, arguments, words):
    out = tmp_path / "out"
    code, _, err = commandline(*SMALL, *arguments, "--out", out)
    assert code == 1
    assert words in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_l2_is_tried_with_every_method():
    spaces, rest = divided(["model.l2=0,1", "pfedme.rate=1", "data.clients=3"], ["pfedme", "fedavg"])
    assert spaces == {"pfedme": {"model.l2": "0,1", "rate": "1"}, "fedavg": {"model.l2": "0,1"}}
    assert rest == ["data.clients=3"]
