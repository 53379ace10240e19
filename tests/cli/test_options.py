"""No command writes over what it reads: refused in one line, before anything is read or written."""

import json
import os
import shlex
from pathlib import Path

import pytest
import typer

from idiolect.cli import site
from idiolect.cli.execute import execute
from idiolect.cli.main import app
from idiolect.cli.options import FEDERATED, WRITTEN, assignments, check_output, seeding
from idiolect.core.errors import ConfigError
from idiolect.report.trackers.records import REPORT
from idiolect.study.spec.experiment import comparison_of
from idiolect.study.store.store import DATABASE

FILES = (
    *("model.safetensors", "new.csv", "hospitals.toml", "models/index.json", "models/a.safetensors"),
    *("run/idiolect.sqlite", "run/table.csv", "run/clients.csv", "run/report.md", "study/hub.json"),
    *("results/table.csv", "results/advice.csv", "results/models/new.csv", "results/sweep.csv", "other/x.csv"),
    *("results/report.md", "results/sites/north.csv"),
)
LINKS = {"link.csv": "new.csv", "loop/models": "models", "linked-run": "run"}
HARD = {"hard.csv": "new.csv"}
REFUSED = (
    "predict model.safetensors new.csv --out new.csv",
    "predict model.safetensors new.csv --out ./run/../new.csv",
    "predict model.safetensors new.csv --out link.csv",
    "predict model.safetensors link.csv --out new.csv",
    "predict model.safetensors new.csv --out hard.csv",
    "predict model.safetensors new.csv --out model.safetensors",
    "predict models new.csv --out models/index.json",
    "predict loop/models new.csv --out models/a.safetensors --json",
    "export model.safetensors --out model",
    "export model.safetensors --out model.safetensors",
    "export models/a.safetensors --format numpy --out models/index",
    "report run --out run/table.csv",
    "report run other -o other/x.csv",
    "report linked-run -o run/clients.csv",
    "figure run table --out run/table.csv",
    "figure run table --out run/idiolect.sqlite",
    "figure linked-run table --out run/report.md",
    "figure run curves --out run/clients.csv",
    "personalize run --data results/table.csv --out results",
    "compare --data results/table.csv --out results",
    "compare --data results/models/new.csv --out results",
    "sweep --data results/sweep.csv --methods fedavg --out results --set fedavg.rate=0.1,0.2",
    "advise results/advice.csv --out results",
    "run results/report.md --out results",
    "federate results/sites/north.csv --out results",
    "track run --tensorboard run",
    "track run --mlflow linked-run",
    "hub init study study/hub.json --sites a,b --agree",
    "hub init study hospitals.toml --sites a,b --schema study/hub.json",
)
NOTHING_READ = {"demo", "reproduce", "schema"}
"""Commands with --out that read no file that a user names."""
NEW_FOLDERS = {"encode"}
"""Commands with --out that write into new or empty folders only, see test_encode.py."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(f"content of {name}")
    for link, target in LINKS.items():
        Path(link).parent.mkdir(exist_ok=True)
        Path(link).symlink_to(tmp_path / target)
    for link, target in HARD.items():
        os.link(target, link)
    Path("hospitals.toml").write_text(
        'name = "h"\n[[cells]]\nid = "c"\ndata = { name = "synthetic" }\nmodel = "mlr"\nrounds = 1\n'
        'methods = [{ name = "fedavg" }]\n'
    )
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("line", REFUSED)
def test_what_a_command_reads_is_not_written_over(line, commandline, place):
    before = contents(place)
    code, out, err = commandline(*shlex.split(line))
    assert (code, out) == (1, ""), err
    assert "would overwrite" in err
    assert "which the command reads" in " ".join(err.split())
    assert len(err.strip().splitlines()) == 1
    assert contents(place) == before


def test_every_command_with_an_output_is_in_the_table():
    found = typer.main.get_command(app)
    tested = {line.split()[0] for line in REFUSED}
    with_output = {
        name
        for name, command in found.commands.items()  # pyright: ignore[reportAttributeAccessIssue]
        if {"out", "mlflow", "tensorboard"} & {one.name for one in command.params}
    }
    assert with_output - {"resume"} - NOTHING_READ - NEW_FOLDERS == tested - {"hub"}


def test_an_experiments_own_table_is_not_written_over(place):
    """Whatever command runs it: run, resume, compare, sweep."""
    experiment = comparison_of("t", {"name": "table", "path": "results/table.csv"}, {"name": "mlr"}, ["fedavg"])
    before = contents(place)
    with pytest.raises(ConfigError, match=r"would overwrite 'results/table\.csv'"):
        execute(experiment, Path("results"), as_json=False)
    assert contents(place) == before


def test_a_sites_configuration_is_not_made_of_itself(place, commandline, monkeypatch):
    class Kit:
        site, name, folder = Path("results"), "north", Path("results")

    monkeypatch.setattr(site, "site_kit", lambda folder: Kit)
    Path("results/site.toml").write_text("own")
    code, _, err = commandline("site", "init", "results", "--data", "results/site.toml")
    assert code == 1
    assert "would overwrite 'results/site.toml'" in err


@pytest.mark.parametrize(
    ("out", "inputs", "more"),
    [
        ("predictions.csv", ["model.safetensors", "new.csv"], {}),
        ("new-2.csv", ["new.csv"], {}),
        ("run/report.html", ["run"], {"unread": (".html",)}),
        ("run/new.tex", ["run"], {"unread": (".tex",)}),
        ("run/predictions.csv", ["run"], {}),  # not there yet
        (".", ["new.csv"], {}),
        ("results", ["new.csv"], {}),
        ("results", ["results/sites/north.csv"], {}),  # only a federation writes there
        ("other", ["other/x.csv"], {}),
        ("run/tb", ["run"], {}),
    ],
)
def test_other_outputs_are_allowed(out, inputs, more, place):
    check_output(Path(out), *map(Path, inputs), **more)


def test_the_names_are_those_that_are_written():
    assert {*REPORT, DATABASE, "figures", "report.html"} <= WRITTEN | {"participation.jsonl"}
    assert WRITTEN < FEDERATED
    assert all(name == name.casefold() for name in FEDERATED)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (None, {}),
        (["rounds=50", "pfedme.rate=0.02"], {"rounds": 50, "pfedme.rate": 0.02}),
        (["a=true", "b=null", "c=[1, 2]", 'd={"x": 1}'], {"a": True, "b": None, "c": [1, 2], "d": {"x": 1}}),
        ([" key = some text ", "x==1"], {"key": "some text", "x": "=1"}),
        (["rounds=1", "rounds=2"], {"rounds": 2}),
        (["path="], {"path": ""}),
        (
            ["a=['id', 'x']", "b=True", "c=None", "d='id'", "e=('a',)"],
            {"a": ["id", "x"], "b": True, "c": None, "d": "id", "e": ["a"]},
        ),
        (
            ["a=[id]", "b=__import__('os')", "c=" + "[" * 5000, "d=0x10", "e=007"],
            {"a": "[id]", "b": "__import__('os')", "c": "[" * 5000, "d": "0x10", "e": "007"},
        ),
    ],
)
def test_values_are_json_where_they_can_be(pairs: list[str] | None, expected: dict[str, object]) -> None:
    assert assignments(pairs) == expected


@pytest.mark.parametrize("pair", ["rounds", "=5", " =5", ""])
def test_an_assignment_needs_a_key_and_a_value(pair: str) -> None:
    with pytest.raises(ConfigError, match=f"^--set {pair}: write key=value$"):
        assignments([pair])


SMALL = ["--set", "data.clients=5", "--set", "data.max_size=40", "--rounds", "2", "--eval-every", "2", "--jobs", "1"]
COMPARE = ["compare", "--data", "synthetic", "--methods", "local", *SMALL, "--set", "local.local_steps=2"]


@pytest.fixture
def idiolect(commandline, monkeypatch, tmp_path):
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return commandline


def test_a_metric_is_chosen_and_others_stand_beside_it(idiolect):
    code, out, _ = idiolect(*COMPARE, "--metric", "log-loss,auroc", "--out", "here", "--json")
    assert code == 0
    (cell,) = json.loads(out)["cells"]
    (line,) = cell["lines"]
    assert (cell["metric"], line["metric"]) == ("log-loss", "log-loss")
    assert set(line["metrics"]) == {"log-loss", "auroc", "accuracy", "macro-f1"}
    assert line["pooled"] == line["metrics"]["log-loss"]
    header = Path("here/table.csv").read_text().splitlines()[0].split(",")
    assert {"log_loss", "auroc_ci95", "accuracy", "macro_f1_std"} <= {*header}
    assert Path("here/clients.csv").read_text().splitlines()[0].endswith("n,log_loss,auroc,accuracy,macro_f1,loss")
    report = Path("here/report.md").read_text()
    assert "test log-loss (lower is better), last round" in report
    assert "| method | model | log-loss | AUROC | accuracy | macro-F1 | client mean |" in report
    assert "- AUROC, the area under the ROC curve" in report


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("aurok", "unknown metric 'aurok'; did you mean 'auroc'"),
        ("accuracy,aurok", "unknown metric 'aurok'; did you mean 'auroc'"),
        ("rmse", "metric 'rmse' is for regression, but the data are for classification"),
    ],
)
def test_a_metric_that_cannot_be_is_refused_before_anything_runs(idiolect, metric, words):
    sweep = ["sweep", *COMPARE[1:5], "--rounds", "2", "--set", "local.rate=0.1,0.2"]
    for command in (COMPARE, sweep):
        code, out, err = idiolect(*command, "--metric", metric, "--out", "here")
        assert (code, out) == (1, "")
        assert words in err
        assert len(err.strip().splitlines()) == 1
        assert not Path("here").exists()


@pytest.mark.second
def test_splits_are_seeds_with_splits_of_their_own(idiolect):
    assert seeding(None, None) == {}
    assert seeding(3, None) == {"seeds": 3}
    assert seeding(None, 2) == {"seeds": 2, "new_splits": True}
    with pytest.raises(ConfigError, match="--seeds 3 and --splits 2: give one"):
        seeding(3, 2)
    code, out, _ = idiolect(*COMPARE, "--splits", 2, "--out", "here", "--json")
    assert code == 0
    assert [run["seed"] for run in json.loads(out)["runs"]] == [0, 1]
    report = Path("here/report.md").read_text()
    assert "Each seed draws its own split, too." in report
    assert "Every seed has the same split" not in report
    code, _, error = idiolect(*COMPARE, "--splits", 2, "--data", "synthetic-population", "--out", "there")
    assert code
    assert "new_splits needs data with a split_seed" in error
    assert not Path("there").exists()
