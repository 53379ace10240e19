"""The command line: its groups, its help without heavy imports, and what each command says of bad input."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from idiolect.cli import main as cli
from idiolect.cli.main import COMMANDS, Shell, app
from idiolect.models.client_model import load_model
from idiolect.study.store.store import Store
from tests.tiers import second

CODE = """
import sys
from idiolect.cli.main import main
sys.argv = ["idiolect", *sys.argv[1:]]
try:
    main()
finally:
    heavy = ("jax", "pandas", "numpy", "matplotlib", "sqlite3")
    print(*(name for name in heavy if name in sys.modules), file=sys.stderr)
"""
NAMES = [name for group in COMMANDS.values() for name in group]


@pytest.mark.parametrize("words", ["--help", "--version", "compare --help", "hub init --help", "site init --help"])
def test_help_imports_nothing_heavy(words):
    done = subprocess.run([sys.executable, "-c", CODE, *words.split()], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    if words == "--help":
        assert all(re.search(rf"│ {name} ", done.stdout) for name in NAMES)
        assert re.findall(r"─ (\w+) ─", done.stdout) == ["Options", *COMMANDS]


def test_every_command_is_in_the_group_that_lists_it():
    group: Any = typer.main.get_command(app)
    assert list(group.commands) == NAMES
    assert {"--data", "--methods"} <= {option for p in group.commands["compare"].params for option in p.opts}
    assert "run" in group.commands["hub"].commands
    assert [p.name for p in group.params if "install" in str(p.name)] == []


@pytest.mark.parametrize("shell", Shell)
def test_the_script_of_each_shell_asks_idiolect(commandline, shell):
    code, out, err = commandline("--show-completion", shell)
    assert (code, err) == (0, "")
    assert "_IDIOLECT_COMPLETE" in out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_accepts_the_script(commandline):
    _, out, _ = commandline("--show-completion", "bash")
    check = f"{out}\ncomplete -p idiolect"
    ended = subprocess.run(["bash", "-c", check], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "idiolect" in ended.stdout


@pytest.mark.parametrize(
    ("typed", "answers"),
    [
        ("idiolect res", {"resume"}),
        ("idiolect wa", {"watch"}),
        ("idiolect tr", {"track"}),
        ("idiolect watch --p", {"--page", "--port"}),
        ("idiolect compare --ml", {"--mlflow"}),
        ("idiolect site su", {"summary"}),
    ],
)
def test_what_may_follow_is_answered(commandline, monkeypatch, typed, answers):
    monkeypatch.setenv("_IDIOLECT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    code, out, _ = commandline()
    assert code == 0
    assert {*out.split()} == answers


def test_other_shells_are_refused_and_nothing_is_installed(commandline):
    code, _, err = commandline("--show-completion", "dos")
    assert (code, err.count("\n")) == (2, 1)
    assert "--install-completion" not in commandline("--help")[1]


SMALL = [
    "--set", "data.clients=5", "--set", "data.max_size=40", "--rounds", "4", "--eval-every", "2", "--jobs", "1",
    "--set", "local.local_steps=2", "--set", "local.batch_size=5",
]  # fmt: skip
COMPARE = ["compare", "--data", "synthetic", "--methods", "local", *SMALL]


@pytest.fixture
def idiolect(commandline, monkeypatch, tmp_path):
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return commandline


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished comparison."""
    out = tmp_path_factory.mktemp("cli") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["idiolect", *COMPARE, "--out", str(out), "--json"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert not ended.value.code
    return out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "local.local_steps=0"], "local: local_steps = 0 must be greater than 0"),
        (
            ["--methods", "local,pfedme", "--set", "pfedme.inner_steps=0"],
            "pfedme: inner_steps = 0 must be greater than 0",
        ),
        (
            ["--methods", "local,pfedme", "--set", "pfedme.server_step=0"],
            "pfedme: server_step = 0.0 must be greater than 0",
        ),
        (
            ["--methods", "local,pfedme", "--set", "pfedme.prox_weight=-1"],
            "pfedme: prox_weight = -1.0 must be greater than 0",
        ),
        (["--set", "local.rate=-0.1"], "local: rate = -0.1 must be greater than 0"),
        (["--set", "local.rate=NaN"], "--set: method 'local': rate = nan must be a finite number"),
        (["--set", "local.rate=Infinity"], "rate = inf must be a finite number"),
        (["--set", "local.local_steps=1e999"], "local_steps = inf must be a finite number"),
        (["--set", "local.rate=fast"], "local: rate = 'fast' must be a number"),
        (["--set", "local.rat=1"], "unknown key of method local 'rat'; did you mean 'rate'?"),
        (["--set", "rounds"], "--set rounds: write key=value"),
        (["--set", "ruonds=3"], "unknown key 'ruonds'; did you mean 'rounds'?"),
        (["--set", "data.clinets=3"], "unknown key of data set 'synthetic' 'clinets'; did you mean 'clients'?"),
        (["--set", "data.clients=many"], "data set 'synthetic': clients = 'many' must be a whole number"),
        (["--methods", "locl"], "unknown method 'locl'; did you mean 'local'?"),
        (["--methods", ""], "compare: methods = [] must have at least 1 entry"),
        (["--model", "mlpp"], "unknown model 'mlpp'; did you mean 'mlp'?"),
        (["--data", "mnsit"], "unknown data set 'mnsit'; did you mean 'mnist'?; or give the path"),
        (["--rounds", "0"], "compare: rounds = 0 must be at least 1"),
        (["--seeds", "0"], "seeds = 0"),
        (["--seed", "-1"], "first_seed = -1"),
        (["--cohort", "6"], "cohort = 6.0 is larger than the 5 clients"),
        (["--cohort", "nan"], "cohort = nan must be a finite number"),
        (["--sampling", "fixd"], "sampling = 'fixd'"),
        (["--select", "best-test"], "exists only in the protocol 'as-published'"),
        (["--select", "best-validation"], "no validation split"),
    ],
)
def test_a_wrong_setting_is_one_line_naming_the_key_and_leaves_no_folder(idiolect, tmp_path, arguments, words):
    code, out, err = idiolect(*COMPARE, *arguments, "--out", "here")
    assert code == 1
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["l2gd", "--cohort", "2"], "l2gd needs everyone: all 100 take part in every round, not 2; leave cohort out"),
        (["dfedu", "--set", "dfedu.graph=star"], "dfedu has no server, so its graph cannot have a hub"),
        second(["fedper", "--set", "fedper.head=lsat"], "head = 'lsat' is no part of the model"),
        second(["pflego", "--set", "pflego.head=lsat"], "head = 'lsat' is no part of the model"),
        second(["mocha", "--model", "mlp"], "mocha trains linear models"),
        second(["mmfl-fusion"], "mmfl-fusion needs a model with a fusion head"),
    ],
)
def test_what_only_the_method_can_refuse_leaves_no_folder(idiolect, tmp_path, arguments, words):
    code, out, err = idiolect("compare", "--data", "synthetic", "--methods", *arguments, "--out", "here")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "processes"),
    [
        (["compare", "--data", "synthetic", "--methods", "local"], 2),
        (["compare", "--data", "synthetic", "--methods", "local", "--debug"], 1),
        (["run", "tiny.toml"], 2),
        (["reproduce", "demo"], 2),
        (["sweep", "--data", "synthetic", "--methods", "local"], 2),
        (["sweep", "--data", "synthetic", "--methods", "local"], 1),
    ],
)
def test_private_states_in_a_file_are_refused_where_they_cannot_be(
    idiolect, tmp_path, monkeypatch, command, processes
):
    file = tmp_path / "tiny.toml"
    file.write_text('[[cells]]\nid = "a"\ndata = "synthetic"\nmodel = "mlr"\n[[cells.methods]]\nname = "local"\n')
    monkeypatch.setattr("jax.process_count", lambda: processes)
    code, out, err = idiolect(*command, "--set", "private=file", "--out", "here")
    assert code == 1
    assert out == ""
    assert ("in one process" if command[0] == "sweep" and processes == 2 else "private = 'file'") in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "method"], "unknown kind 'method'; did you mean 'methods'?"),
        (["run", "absent.toml"], "no such experiment file: absent.toml"),
        (["reproduce", "pfedme/tabel1"], "unknown experiment 'pfedme/tabel1'; did you mean 'pfedme/table1'?"),
        (["reproduce", "pfedme/table1", "--protocol", "as-publishd"], "did you mean 'as-published'?"),
        (["reproduce", "pfedme/table1", "--only", "mnist-claen-mlr"], "did you mean 'mnist-clean-mlr'?"),
        (["show", "absent"], "no runs in 'absent': there is no such folder; 'idiolect compare' and"),
        (["resume", "absent"], "no runs in 'absent': there is no such folder; 'idiolect compare' and"),
        (["compare", "--data", "absent.csv"], "absent.csv"),
    ],
)
def test_a_wrong_name_is_one_line_suggesting_the_nearest(idiolect, tmp_path, arguments, words):
    code, out, err = idiolect(*arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("error: ")
    assert words in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ("model.convolution=direct", "cifar10: there is no folder"),  # the other cells' models have no convolutions
        ("scaffold.rate=0.1", "unknown method 'scaffold'; known: fedu"),
    ],
)
def test_settings_are_of_the_chosen_cells_and_methods(idiolect, tmp_path, changed, words):
    options = ("--only", "cifar-cnn/fedu", "--set", changed, "--data-dir", tmp_path)
    code, out, err = idiolect("reproduce", "fedu/table1", *options)
    assert (code, out) == (1, "")
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_cannot_be(idiolect, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    code, out, err = idiolect(*COMPARE, "--out", "file/out")
    assert (code, out) == (1, "")
    assert "error: cannot write to 'file/out': Not a directory" in err


@pytest.mark.second
def test_a_disk_that_fills_up_is_one_line_and_resume_goes_on(idiolect, tmp_path, monkeypatch, folder):
    from idiolect.core import files

    fsync = os.fsync

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    code, out, err = idiolect(*COMPARE, "--out", "here")
    assert (code, out) == (1, "")
    last = err.strip().splitlines()[-1]
    assert last.startswith("error: cannot write here/checkpoints/")
    assert last.endswith("No space left on device")
    assert "Traceback" not in err
    assert not [f for f in Path("here").rglob("*") if f.name.endswith(".tmp")]
    monkeypatch.setattr(files.os, "fsync", fsync)
    code, out, err = idiolect("resume", "here", "--json")
    assert code == 0
    assert json.loads(out)["cells"][0]["lines"][0]["pooled"] == pooled(folder)


def pooled(folder: Path) -> dict[str, object]:
    """The finished comparison's number, as --json gives it."""
    scores = Store(folder, create=False).scores("synthetic/local/seed0", 4, "local", "test")
    mean = float((scores.values["accuracy"] * scores.count).sum() / scores.count.sum())
    return {"mean": pytest.approx(mean), "std": None, "half_width": None, "seeds": 1}


def test_json_is_one_document_and_progress_goes_to_stderr(idiolect, folder):
    for arguments in (
        [*COMPARE, "--out", folder, "--json"],
        ["show", folder, "--json"],
        ["resume", folder, "--json"],
        *(["list", kind, "--json"] for kind in ("methods", "data", "models", "experiments")),
    ):
        code, out, err = idiolect(*arguments)
        assert code == 0, err
        assert json.loads(out)
        assert "list" in arguments or json.loads(out)["runs"][0]["status"] == "done"
    code, out, err = idiolect("show", "absent", "--json")
    assert (code, out) == (1, "")


def test_a_finished_comparison_is_shown_without_running_again(idiolect, folder, monkeypatch):
    monkeypatch.setattr("idiolect.study.run.engine.fit", None)
    code, out, err = idiolect(*COMPARE, "--out", folder)
    assert code == 0
    assert "[100%] synthetic/local/seed0" in err
    assert "client models: " in out
    code, shown, err = idiolect("show", folder)
    assert (code, err) == (0, "")
    assert shown == out
    assert "not finished" not in shown
    file = next((folder / "models").rglob("*.safetensors"))
    assert callable(load_model(file))


def test_an_unfinished_folder_says_how_to_go_on(idiolect, folder, tmp_path):
    store = Store(folder)
    run = store.runs()[0]
    store._db.execute("UPDATE runs SET status = 'running', round = 2")
    try:
        code, out, _ = idiolect("show", folder)
        assert code == 0
        assert f"not finished: synthetic/local/seed0 at round 2; resume with: idiolect resume {folder}" in out
    finally:
        store.finish(run.id, "done")
        store._db.execute("UPDATE runs SET round = 4")


def test_a_diverging_method_ends_with_code_3_after_the_report(idiolect, tmp_path):
    wild = ["--set", "local.rate=3e38"]
    code, out, err = idiolect(*COMPARE, *wild, "--out", "here", "--json")
    assert code == 3
    document = json.loads(out)
    assert document["runs"][0]["status"] == "diverged"
    last = err.strip().splitlines()[-1]
    assert last.startswith(
        "diverged: synthetic/local/seed0: local diverged (NaN or infinity) in round 1, client 'client"
    )
    assert "stage: local training" in last
    assert (tmp_path / "here" / "report.md").is_file()
    assert list((tmp_path / "here" / "checkpoints").iterdir())
    code, out, err = idiolect("show", "here")
    assert code == 0
    assert "diverged" in out


@pytest.mark.parametrize("group", ["hub", "site"])
def test_a_group_alone_prints_its_help(idiolect, group):
    code, out, err = idiolect(group)
    assert (code, err) == (0, "")
    assert f"Usage: idiolect {group}" in out


def test_launch_needs_a_command(idiolect):
    code, _, err = idiolect("launch", "-n", "2")
    assert (code, err.count("\n")) == (2, 1)
    assert "name the command to run: idiolect launch -n 2 -- compare patients.csv" in err


def test_the_version_is_printed(idiolect):
    code, out, _ = idiolect("--version")
    assert (code, out.count(".")) == (0, 2)


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("3", "3")])
def test_products_take_one_thread_unless_the_user_says_otherwise(given, expected):
    """NumPy is not loaded yet where the variable is set, or it would come too late."""
    code = (
        "import os, sys, types\n"
        "module = types.ModuleType('idiolect.cli.main')\n"
        "module.main = lambda: print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)\n"
        "import idiolect.cli\n"
        "sys.modules['idiolect.cli.main'] = module\n"
        "from idiolect.__main__ import main\n"
        "main()\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    environment |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected, "False"]
