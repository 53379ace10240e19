"""A survey of bad input: every command ends with one line that says what was wrong, and leaves nothing behind."""

import re
import sqlite3

import pytest

from idiolect.cli import main as cli
from idiolect.core.errors import ConfigError, DataError

TABLE = "client,x,label\n" + "".join(f"{'ab'[i % 2]},{i / 7},{'yn'[i % 3 == 0]}\n" for i in range(40))
SMALL = ["--set", "data.clients=5", "--set", "data.max_size=40"]
LOCAL = ["--data", "synthetic", "--methods", "local", *SMALL]
COMPARE, SWEEP = ["compare", *LOCAL], ["sweep", *LOCAL, "--set", "data.validation=0.2"]
OWN = ["compare", "--data", "own.csv", "--methods", "local"]


@pytest.fixture
def idiolect(commandline, monkeypatch, tmp_path):
    """The command line in a folder that holds one table alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text(TABLE)
    return commandline


def refused(idiolect, folder, arguments, words, code=1):
    before = sorted(folder.rglob("*"))
    assert_line(idiolect(*arguments), words, code)
    assert sorted(folder.rglob("*")) == before


def assert_line(ended, words, code=1):
    exit_code, out, err = ended
    assert (exit_code, out, err.count("\n")) == (code, "", 1), err
    assert err.startswith("error: ")
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "No such command 'nosuch'; see: idiolect --help"),
        (["--bogus"], "No such option"),
        (
            ["compare"],
            "error: name your table, for example patients.csv, or a data set: --data synthetic; see: idiolect com",
        ),
        (["compare", "own.csv", "--data", "mnist"], "give the data once: own.csv or --data mnist, not both"),
        (["sweep", "--data", "synthetic"], "name the methods to sweep: --methods ditto,pfedme"),
        (["personalize", "run"], "name your table"),
        (["run"], "Missing argument 'EXPERIMENT'"),
        (["resume"], "Missing argument 'RUN'"),
        (["reproduce"], "Missing argument 'NAME'"),
        (["show"], "Missing argument 'RUN'"),
        (["list"], "Missing argument 'KIND': methods, data, models, metrics or experiments; see: idiolect list"),
        (["demo", "surplus"], "surplus"),
        ([*COMPARE, "--round", "5"], "No such option"),
        ([*COMPARE, "--rounds"], "--rounds needs a value; see: idiolect compare --help"),
        (["hub", "run", "study", "--kit"], "--kit needs a value; see: idiolect hub run --help"),
        ([*COMPARE, "--rounds", "ten"], "Invalid value for '--rounds': it must be a whole number; see"),
        ([*COMPARE, "--cohort", "few"], "Invalid value for '--cohort': it must be a number; see"),
        ([*COMPARE, "--roudns", "3"], "No such option: --roudns; did you mean --rounds?; see"),
        (["compar"], "No such command: compar; did you mean compare?; see: idiolect --help"),
        (["figure", "run", "curvs"], "did you mean 'curves'?; see: idiolect figure --help"),
        (["show", "a", "b"], "too many arguments: b; see: idiolect show --help"),
        (
            ["hub", "run", "study", "--kit", "kit"],
            "Missing option '--admin': The kit of the person who submits jobs; see",
        ),
        ([*COMPARE, "--rounds", "1.5"], "Invalid value for '--rounds'"),
        ([*COMPARE, "--cohort", "half"], "Invalid value for '--cohort'"),
        ([*COMPARE, "--jobs", "0"], "Invalid value for '--jobs': it must be at least 1; see"),
        ([*COMPARE, "--save-models", "some"], "Invalid value for '--save-models'"),
        ([*COMPARE, "--out", ""], "Invalid value for '--out': it must name a folder"),
        ([*SWEEP, "--out", " "], "Invalid value for '--out': it must name a folder"),
        ([*SWEEP, "--eta", "x"], "Invalid value for '--eta'"),
        ([*SWEEP, "--batch", "0"], "Invalid value for '--batch'"),
        (["reproduce", "demo", "--seeds", "0"], "Invalid value for '--seeds'"),
    ],
)
def test_a_command_that_cannot_be_read_is_one_line_and_code_2(idiolect, tmp_path, arguments, words):
    refused(idiolect, tmp_path, arguments, words, code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*COMPARE, "--seeds", "100000000"], "seeds = 100000000"),
        ([*COMPARE, "--seed", "4294967296"], "first_seed = 4294967296"),
        ([*COMPARE, "--set", "data.seed=-1"], "seed must lie between 0 and 2^32 - 1"),
        ([*COMPARE, "--set", "data.clients=1000000000"], "GB are needed for 1,000,000,000 clients"),
        ([*COMPARE, "--set", "data.clients=0"], "clients must be at least 1"),
        ([*COMPARE, "--set", "data.test=1"], "test fraction must lie between 0 and 1"),
        ([*COMPARE, "--set", "eval_clients=6"], "eval_clients = 6 is more than the 5 clients"),
        ([*COMPARE, "--set", "eval_clients=0"], "eval_clients = 0"),
        ([*COMPARE, "--set", 'draw=["persnal"]'], "unknown model to draw 'persnal'"),
        ([*COMPARE, "--eval-every", "0"], "eval_every = 0"),
        ([*COMPARE, "--metric", "acuracy"], "did you mean 'accuracy'?"),
        ([*COMPARE, "--metric", "rmse"], "rmse"),
        ([*COMPARE, "--cohort", "1.5"], "must be a whole number of clients"),
        ([*COMPARE, "--cohort", "0"], "cohort = 0"),
        ([*COMPARE, "--set", "methods=[]"], "methods"),
        ([*COMPARE, "--set", "splits=[]"], "splits must contain 'test'"),
        ([*COMPARE, "--set", "=3"], "write key=value"),
        ([*COMPARE, "--model", "lstm"], "lstm"),
        (["compare", "--data", "synthetic", "--methods", "local,local"], "two methods are labelled 'local'"),
        (["compare", "--data", "mnist", "--data-dir", "absent", "--methods", "local"], "absent"),
    ],
)
def test_a_value_out_of_range(idiolect, tmp_path, arguments, words):
    refused(idiolect, tmp_path, arguments, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--search", "halving", "--eta", "1"], "eta = 1 must be at least 2"),
        (["--eta", "0"], "eta = 0 must be at least 2"),
        (["--search", "cv", "--folds", "1"], "folds = 1 must lie between 2 and 100"),
        (["--search", "cv", "--folds", "99"], "folds = 99 is more than any client has training samples"),
        (["--search", "cv", "--folds", "9999"], "folds = 9999 must lie between 2 and 100"),
        (["--memory", "nan"], "--memory nan must be a number of GB greater than 0"),
        (["--memory", "inf"], "--memory inf"),
        (["--memory", "0"], "--memory 0.0"),
        (["--memory", "-3"], "--memory -3.0"),
        (["--search", "gird"], "did you mean 'grid'?"),
        (["--search", "random"], "needs a budget"),
        (["--budget", "0"], "budget = 0 must be at least 1"),
        (["--set", "local.rate=log(0,1,3)"], "a logarithmic scale starts above 0"),
        (["--set", "local.rate=log(1,2)"], "write log(a,b,n) with numbers"),
        (["--set", "local.rate=0.1,0.1"], "a value is given twice"),
        (["--set", "local.rate=0.1,fast"], "rate = 'fast' must be a number"),
        (["--set", "local.rate="], "write key=value"),
        (["--set", "local.rat=1"], "did you mean 'rate'?"),
        (["--set", "model.l2=-1"], "model.l2 = -1"),
        (["--set", "pfedme.rate=1"], "'pfedme' is given values to try, but it is not swept"),
        (["--set", "fedper.head=lsat", "--methods", "fedper"], "fedper: head = 'lsat' is no part of the model"),
        (
            ["--set", "mmfl.decoder=modle", "--methods", "mmfl"],
            "decoder = 'modle' is no part of the model; did you mean 'm",
        ),
        (["--set", "select=last-10"], "a sweep compares last rounds"),
        (["--set", "data.validation=0"], "no validation split"),
        (["--rounds", "0"], "rounds = 0"),
        (["--seeds", "100000000"], "seeds = 100000000"),
    ],
)
def test_a_sweep_is_refused_before_it_begins(idiolect, tmp_path, arguments, words):
    refused(idiolect, tmp_path, [*SWEEP, *arguments], words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--client", "label"], "column 'label' is named for two of client, label and split"),
        (["--set", "data.split=label"], "column 'label' is named for two"),
        (["--client", "clinet"], "did you mean 'client'?"),
        (["--label", "lable"], "did you mean 'label'?"),
        (["--set", 'data.ignore=["y"]'], "no column 'y'"),
        (["--set", 'data.ignore=["x"]'], "no feature column"),
        (["--set", "data.task=regresion"], "did you mean 'regression'?"),
        (["--set", "data.task=regression"], "regression needs numbers"),
        (["--set", "data.minimum=1000"], "1000"),
        (["--set", "data.partition=absent"], "absent"),
        (["--model", "linear"], "linear"),
    ],
)
def test_a_table_that_is_asked_for_what_it_has_not(idiolect, tmp_path, arguments, words):
    refused(idiolect, tmp_path, [*OWN, *arguments], words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "own.csv"),
        ("client,x,label\n", "the table has no rows"),
        ("client,x,x,label\na,1,2,y\n", "own.csv"),
        ("client;x;label\na;1;y\n", "all labels are 'y'"),
        (TABLE + "a,inf,y\n", "'x'"),
        (TABLE + "a,1,\n", "label"),
        (TABLE + ",1,y\n", "client"),
        (TABLE + "c,1,y\n", "'c'"),
        (TABLE.replace(",n", ",y"), "classification needs at least two classes"),
        ("client,x,label\na,1,y\na,2,n\n", "own.csv"),
        ("\x00\x01\x02", "own.csv"),
    ],
)
def test_a_table_that_cannot_be_used(idiolect, tmp_path, text, words):
    (tmp_path / "own.csv").write_text(text)
    refused(idiolect, tmp_path, OWN, words)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        *((command, kind) for command in (["show"], ["resume"]) for kind in ("another program's", "text", "empty")),
        # An empty file is one that a killed process left: a run makes its tables in it.
        *(([*command, "--out"], kind) for command in (COMPARE, SWEEP) for kind in ("another program's", "text")),
    ],
)
def test_a_database_of_another_program_is_not_touched(idiolect, tmp_path, command, kind):
    file = tmp_path / "here" / "idiolect.sqlite"
    file.parent.mkdir()
    if kind == "another program's":
        with sqlite3.connect(file) as db:
            db.execute("CREATE TABLE birds (name TEXT)")
        db.close()
    else:
        file.write_bytes(b"not a database, but sixteen bytes and more" if kind == "text" else b"")
    before = file.read_bytes()
    refused(idiolect, tmp_path, [*command, "here"], "here")
    assert file.read_bytes() == before


@pytest.mark.parametrize("error", [ConfigError, DataError])
@pytest.mark.parametrize("command", [COMPARE, SWEEP])
def test_what_is_found_only_while_running_leaves_no_new_folder(idiolect, tmp_path, monkeypatch, command, error):
    def refuse(*_, **__):
        raise error("found late")

    monkeypatch.setattr("idiolect.study.run.engine.fit", refuse)
    monkeypatch.setattr("idiolect.study.search.engine.run_together", refuse)
    last = [*command, "--out", "new/here", *(["--jobs", "1"] if command is COMPARE else [])]
    ended = idiolect(*last)
    assert ended[0] == 1
    assert ended[2].splitlines()[-1] == "error: found late"
    assert [path.name for path in tmp_path.iterdir()] == ["own.csv"]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine.txt").touch()
    idiolect(*last)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine.txt"]  # what was there stays


def test_no_command_at_all_shows_the_help(idiolect):
    code, out, err = idiolect()
    assert (code, err) == (0, "")
    assert "Usage: idiolect" in out
    assert cli.app.info.no_args_is_help


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["compare", "hospitals.toml"],
            "'hospitals.toml' is an experiment file; run it with: idiolect run hospitals.toml",
        ),
        (["run", "own.csv"], "'own.csv' is a table; to compare methods on it: idiolect compare own.csv"),
        (["run", "demo"], "no such experiment file: demo; 'demo' is packaged: idiolect reproduce demo"),
        (["run", "hospital.toml"], "no such experiment file: hospital.toml; did you mean 'hospitals.toml'?"),
        (["federate", "site"], "no such experiment file: site; did you mean 'sites'?"),
        (["reproduce", "own.toml"], "to run a file: idiolect run own.toml"),
        (["inspect", "mnist"], "'mnist' is a named data set; inspect reads a table's file"),
        (["show", "run/penguin"], "no runs in 'run/penguin': there is no such folder; did you mean 'run/penguins'?"),
        (
            ["resume", "own.csv"],
            "no runs in 'own.csv': it is a file; 'idiolect compare' and 'idiolect run' write such",
        ),
        (["personalize", "run", "own.csv"], "no runs in 'run'; folders with runs: run/penguins"),
        (["export", "run"], "'run' is a folder; name one model file in it, it holds none"),
    ],
)
def test_what_is_meant_is_named(idiolect, tmp_path, arguments, words):
    (tmp_path / "hospitals.toml").touch()
    (tmp_path / "run" / "penguins").mkdir(parents=True)
    (tmp_path / "run" / "penguins" / "idiolect.sqlite").touch()
    refused(idiolect, tmp_path, arguments, words)


NAMES = re.compile(r"\b(cells\.\d|Value error|instance of|FederatedData|NoneType|pydantic|Traceback|[a-z]+Error\b)")


@pytest.mark.parametrize(
    "arguments",
    [
        [*COMPARE, "--set", "methods=3"],
        [*COMPARE, "--set", "methods=[3]"],
        [*COMPARE, "--set", "splits=3"],
        [*COMPARE, "--set", "tune=perhaps"],
        [*COMPARE, "--set", "draw=3"],
        [*COMPARE, "--set", "gaps=[{}]"],
        [*COMPARE, "--set", "title=3"],
        [*COMPARE, "--set", "data=3"],
        [*COMPARE, "--set", "model=3"],
        [*OWN, "--set", "data.path=3"],
        [*OWN, "--label", "x y"],
        [*SWEEP, "--set", "local.rate=a,b"],
        ["advise", "own.csv", "--set", "model.l2=x", "--model", "mlr"],
        ["figure", "own.csv", "curves"],
        ["report", "own.csv"],
        ["predict", "own.csv", "own.csv"],
    ],
)
def test_no_message_has_an_internal_name(idiolect, tmp_path, arguments):
    code, out, err = idiolect(*arguments)
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert not NAMES.search(err), err
