"""idiolect hub score and describe, and what a site's administrator reads before approving them."""

import json
import os
import signal
import subprocess
import sys

import pytest

from idiolect.deploy.nvflare.processes import free_port, stop
from idiolect.deploy.nvflare.provision import provision
from idiolect.deploy.query import load_study
from tests.deploy.nvflare.federation import SOURCE
from tests.deploy.nvflare.made import site_kit
from tests.deploy.queries import NAMES, hub_of, model_of, table_of

TABLE = table_of(rows=120)


@pytest.fixture
def hub(tmp_path):
    return hub_of(tmp_path / "hub")


@pytest.fixture
def model(tmp_path):
    return model_of(tmp_path / "m.safetensors", TABLE)


@pytest.fixture
def kit(tmp_path, commandline):
    folder = site_kit(tmp_path / "kit", "north")
    TABLE.to_csv(tmp_path / "own.csv", index=False)
    assert commandline("site", "init", folder, "--data", tmp_path / "own.csv")[0] == 0
    return folder


def file_of(commandline, *arguments):
    code, out, err = commandline("hub", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)["file"]


def test_score_writes_what_sites_must_approve(hub, model, commandline):
    code, out, err = commandline("hub", "score", model, hub, "--metric", "accuracy", "--splits", "test,train")
    assert code == 0, err
    (path,) = hub.glob("queries/*/study.json")
    query = load_study(path)
    assert f"digest {query.digest}" in out
    assert (query.splits, query.sites, query.metric) == (("test", "train"), NAMES, "accuracy")
    assert (path.parent / "model.safetensors").read_bytes() == model.read_bytes()
    again = file_of(commandline, "score", model, hub, "--metric", "accuracy", "--splits", "test,train")
    assert again == str(path)


def test_a_site_reads_what_a_score_is_before_it_approves(hub, model, kit, commandline):
    file = file_of(commandline, "score", model, hub, "--metric", "accuracy")
    query = load_study(hub / file)
    code, out, err = commandline("site", "approve", file, kit, "--yes")
    assert code == 0, err
    for told in (
        "nothing is trained",
        query.digest,
        query.model.sha256,
        "mlr",
        "this one (north), and south, west",
        "Sent per split (test): the number of rows, the sum of their losses, and the sums of accuracy",
        "fewer than 5 rows (floors.count)",
        "has scored 0 models so far, and scores at most 20 (floors.models)",
    ):
        assert told in out, told
    (row,) = json.loads(commandline("site", "approvals", kit, "--json")[1])["approvals"]
    assert (row["purpose"], row["rounds"], row["of"], row["state"]) == ("score", 0, 3, "approved")
    other = file_of(commandline, "score", model, hub, "--metric", "auroc")
    code, _, err = commandline("site", "approve", other, kit, "--yes")
    assert (code, "is approved already" in err) == (1, True), err
    assert commandline("site", "revoke", kit, query.id)[0] == 0
    assert commandline("site", "approve", other, kit, "--yes")[0] == 0


def test_a_site_reads_what_a_description_is(hub, kit, commandline):
    file = file_of(commandline, "describe", hub)
    code, out, err = commandline("site", "approve", file, kit, "--yes", "--changed-rows")
    assert code == 0, err
    for told in (
        "Describe the columns of the training rows",
        "No count of 1 to 4 rows is sent",
        "allow.per_site, which is false",
        "site.toml sends no sums of columns (allow.summaries): calls are refused",
        "may learn how rows have changed",
    ):
        assert told in out, told


def test_mistakes_are_one_line(tmp_path, hub, model, commandline):
    for arguments, words in (
        (("score", tmp_path / "none", hub), "no such file"),
        (("score", model, tmp_path / "none"), "make it with 'idiolect hub init'"),
        (("score", model, hub, "--metric", "acuracy"), "accuracy"),
        (("score", model, hub, "--splits", "tests"), "--splits tests"),
        (("score", model, hub, "--splits", ","), "--splits"),
        (("score", model, hub, "--sites", "east"), "there is no site 'east'"),
        (("describe", hub, "--kit", tmp_path), "name both kits"),
        (("describe", hub, "--kit", tmp_path, "--admin", tmp_path), "error"),
    ):
        code, out, err = commandline("hub", *arguments)
        assert code in (1, 2), (arguments, out)
        assert words in err, err
        assert err.count("\n") == 1, err


@pytest.fixture
def kits(tmp_path):
    made = provision(tmp_path / "kits", "fed", NAMES, free_port())
    yield made
    for kit in (made.hub, *made.sites.values()):
        stop(kit)


@pytest.mark.second
def test_both_commands_with_real_processes(tmp_path, hub, model, kits):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)}

    def call(*arguments):
        command = [sys.executable, "-m", "idiolect", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
        return done.returncode, done.stdout, done.stderr

    asked = {"score": ("score", model, hub, "--metric", "accuracy"), "describe": ("describe", hub)}
    files = {name: json.loads(call("hub", *command, "--json")[1])["file"] for name, command in asked.items()}
    running = []
    for name in NAMES:
        folder = kits.sites[name].folder
        TABLE[TABLE.client == name].to_csv(tmp_path / f"{name}.csv", index=False)
        made = call("site", "init", folder, "--data", tmp_path / f"{name}.csv", "--allow-summaries")
        assert made[0] == 0, made
        for what, file in files.items():
            if (what, name) != ("score", "west"):
                made = call("site", "approve", file, folder, "--yes")
                assert made[0] == 0, made
        command = [sys.executable, "-m", "idiolect", "site", "run", str(folder)]
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
    with_kits = ("--kit", kits.hub.folder, "--admin", kits.lead.folder)
    try:
        code, out, err = call("hub", *asked["score"], *with_kits, "--json")
        assert code == 0, err
        rows = {row["where"]: row for row in json.loads(out)["rows"]}
        assert [*rows] == ["north", "south", "all rows", "mean over sites"]
        test = TABLE[(TABLE.split == "test") & (TABLE.client != "west")]
        assert rows["all rows"]["rows"] == len(test)
        assert "no study with this id" in json.loads(out)["missing"]["west"]
        code, out, err = call("hub", *asked["describe"], *with_kits)
        assert code == 0, err
        assert "result: " in out
        (place,) = hub.glob("queries/describe-*")
        values = json.loads((place / "description.json").read_text())
        train = TABLE[TABLE.split == "train"]
        (sex,) = [column for column in values["columns"] if column["name"] == "sex"]
        assert (values["rows"], sex["categories"]) == (len(train), train.sex.value_counts().to_dict())
        (age,) = [column for column in values["columns"] if column["name"] == "age"]
        assert len(age["quantiles"]) == 5
        log = json.loads(call("site", "log", kits.sites["north"].folder, "--json")[1])["messages"]
        assert [line["task"] for line in log] == ["score", "describe", "histograms"]
        assert not (kits.sites["north"].folder / "idiolect" / "state").exists()
        assert not (kits.sites["north"].folder / "idiolect" / "models").exists()
    finally:
        call("hub", "stop", "--kit", kits.hub.folder)
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(timeout=120)
