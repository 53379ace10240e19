"""idiolect hub and idiolect site: the whole sequence with real processes, and each command by itself."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest

from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.processes import free_port, stop
from idiolect.deploy.nvflare.provision import provision
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.outbox import Outbox
from tests.deploy.nvflare.federation import SOURCE
from tests.deploy.nvflare.made import site_kit
from tests.deploy.schema.tables import hospitals

EXPERIMENT = """
name = "four"
[[cells]]
id = "c"
data = { name = "table", path = "elsewhere.csv", ignore = ["number"] }
model = { name = "mlr" }
rounds = 2
eval_every = 1
methods = [{ name = "fedavg" }]
"""
NAMES = ("north", "south")


@pytest.fixture
def kit(tmp_path):
    return site_kit(tmp_path / "kit", "north")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "own.csv"
    hospitals(rows=20)[["client", "age", "sex", "number", "split", "label"]].to_csv(path, index=False)
    return path


def test_init_hardens_and_writes_what_is_allowed_and_copies_no_data(kit, table, commandline):
    code, out, err = commandline(
        "site", "init", kit, "--data", table, "--allow-methods", "fedavg,pfedme", "--no-evaluation", "--neighbours",
        "south", "--test", "0.5",
    )  # fmt: skip
    assert (code, "resources.json" in out) == (0, True), err
    config = SiteConfig.load(kit / "idiolect")
    assert config.name == "north"
    assert config.data == {"table": "../../own.csv", "test": 0.5}
    allow = config.allow
    assert (allow.methods, allow.neighbours) == (("fedavg", "pfedme"), ("south",))
    assert (allow.evaluation, allow.summaries) == (False, False)
    assert [path.name for path in (kit / "idiolect").iterdir()] == ["site.toml"]


def test_the_log_lists_what_has_left_and_its_totals(kit, table, commandline):
    outbox = Outbox(kit / "idiolect" / "sent.jsonl")
    assert "this site has sent nothing" in commandline("site", "log", kit)[1]
    outbox.write("hub", "join", Message({"samples": {"train": 3}}), run="r", job=1, call=1)
    for round in (0, 1):
        outbox.write("hub", "round", Message({}), run="r", round=round, job=1, call=2)
    out = commandline("site", "log", kit)[1]
    assert "samples" in out
    assert "round: 2 messages, 0 bytes" in out
    lines = json.loads(commandline("site", "log", kit, "--round", "2", "--json")[1])["messages"]
    assert [line["round"] for line in lines] == [1]


def test_the_log_shows_the_settings_that_a_hub_asked_for(kit, commandline):
    assert "no hub has asked" in commandline("site", "log", kit, "--terms")[1]
    outbox = Outbox(kit / "idiolect" / "sent.jsonl")
    terms = {"run": "c/fedavg/seed0", "method": {"name": "fedavg", "batch_size": 1}, "model": {"name": "mlr"}}
    digest = outbox.record({**terms, "kind": {"classes": ["ill"]}, "seed": 3, "rounds": 9})
    for round in (0, 1):
        outbox.write("server", "round", Message({}), run="c/fedavg/seed0", round=round, terms=digest)
    out = commandline("site", "log", kit, "--terms")[1]
    for told in (
        digest[:12],
        "c/fedavg/seed0",
        "messages: 2",
        'name = "fedavg", batch_size = 1',
        "seed = 3, rounds = 9",
    ):
        assert told in out
    assert "ill" not in out
    (found,) = json.loads(commandline("site", "log", kit, "--terms", "--json")[1])["terms"]
    assert (found["sha256"], found["messages"], found["terms"]["kind"]) == (digest, 2, {"classes": ["ill"]})
    assert commandline("site", "log", kit, "--terms", "--round", "1")[0] == 1


def test_the_summary_is_what_would_be_sent(kit, table, commandline):
    assert commandline("site", "init", kit, "--data", table)[0] == 0
    code, out, err = commandline("site", "summary", kit)
    assert code == 0, err
    assert "column 'age'" in out
    assert "--allow-summaries" in out
    assert not (kit / "idiolect" / "sent.jsonl").exists()


@pytest.fixture
def kits(tmp_path):
    made = provision(tmp_path / "kits", "fed", NAMES, free_port())
    yield made
    for kit in (made.hub, *made.sites.values()):
        stop(kit)


@pytest.mark.second
def test_the_whole_sequence(tmp_path, kits, table):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)}

    def call(*arguments):
        command = [sys.executable, "-m", "idiolect", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout, done.stderr

    (tmp_path / "e.toml").write_text(EXPERIMENT)
    hub, of_hub, admin = tmp_path / "hub", kits.hub.folder, kits.lead.folder
    code, out, err = call("hub", "init", hub, tmp_path / "e.toml", "--sites", ",".join(NAMES), "--agree")
    assert (code, "class_allow_list" in out) == (0, True), err
    running = []
    for name in NAMES:
        folder = kits.sites[name].folder
        told = call("site", "init", folder, "--data", table, "--allow-summaries", "--rarest", "1")
        assert told[0] == 0, told
        told = call("site", "approve", hub / "study.json", folder, "--yes")
        assert (told[0], "Study four-" in told[1]) == (0, True), told
        command = [sys.executable, "-m", "idiolect", "site", "run", str(folder)]
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
    try:
        sent = ["--tensorboard", tmp_path / "events"] if find_spec("tensorboardX") else []
        code, out, err = call("hub", "run", hub, "--kit", of_hub, "--admin", admin, *sent)
        assert code == 0, err
        assert (hub / "report.md").is_file()
        assert "counted in the messages between real sites" in (hub / "report.html").read_text()
        marks = [path.relative_to(tmp_path / "events") for path in tmp_path.glob("events/**/idiolect.json")]
        assert [str(mark.parent) for mark in marks] == (["four/c/fedavg/seed0"] if sent else [])
        assert (hub / "schema.json").is_file()
        code, out, err = call("hub", "status", hub, "--admin", admin, "--json")
        told = json.loads(out)
        assert (told["rounds"], told["of"], told["sites"]) == (2, 2, {"north": True, "south": True}), err
        code, out, err = call("site", "check", kits.sites["north"].folder)
        assert (code, out.count("✓")) == (0, 7), (out, err)
        (row,) = json.loads(call("site", "approvals", kits.sites["north"].folder, "--json")[1])["approvals"]
        assert (row["rounds"], row["of"], row["state"]) == (2, 2, "approved")
        assert call("hub", "stop", "--kit", of_hub)[1] == "stopped\n"
        code, out, err = call("site", "check", kits.sites["north"].folder)
        assert (code, "nothing listens" in out) == (1, True)
        assert err == "error: site 'north' is not ready: connection\n"
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(timeout=120)
