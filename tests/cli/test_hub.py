"""idiolect hub: a folder made, its sites changed; every bad input is one line that leaves nothing."""

import json

import pytest

from idiolect.data import from_table
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.revoked import revoke
from idiolect.deploy.study import Study
from tests.cli.bad_inputs import Bad
from tests.cli.test_many_bad_inputs import complaints
from tests.deploy.nvflare.made import site_kit
from tests.deploy.schema.tables import hospitals

TOML = """
name = "four"
[[cells]]
id = "c"
data = { name = "table", path = "elsewhere.csv", ignore = ["number"] }
model = { name = "mlr" }
rounds = 2
eval_every = 1
methods = [{ name = "fedavg" }]
"""
POOLED = TOML.replace("fedavg", "global")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text(TOML)
    return tmp_path


def test_a_hub_is_made_and_its_sites_join_and_leave(folder, commandline):
    code, out, err = commandline("hub", "init", "hub", "e.toml", "--sites", "north, south", "--agree", "--quorum", 2)
    assert (code, "class_allow_list" in out, "not read" in out) == (0, True, True), err
    config = HubConfig.load(folder / "hub")
    assert (config.sites, config.kind, config.quorum) == (("north", "south"), None, 2)
    assert config.table == {"ignore": ["number"]}
    code, out, _ = commandline("hub", "add", "hub", "east", "--json")
    told = json.loads(out)
    assert (code, told["added"], told["sites"]) == (0, "east", ["north", "south", "east"])
    assert told["digest"] == Study.load(folder / "hub" / "study.json").digest
    assert commandline("hub", "remove", "hub", "north")[0] == 0
    config = HubConfig.load(folder / "hub")
    assert (config.sites, config.left, config.present) == (("north", "south", "east"), ("north",), ("south", "east"))
    for words, message in {
        ("add", "hub", "east"): "in the federation already",
        ("add", "hub", "north"): "has left for good",
        ("remove", "hub", "north"): "has left already",
        ("remove", "hub", "west"): "there is no site 'west'",
    }.items():
        code, _, err = commandline("hub", *words)
        assert (code, message in err, err.count("\n")) == (1, True, 1), err
    assert HubConfig.load(folder / "hub") == config


def test_a_site_without_which_no_round_has_its_quorum_does_not_leave(folder, commandline):
    """Three sites, of which a round needs three."""
    assert commandline("hub", "init", "hub", "e.toml", "--sites", "a,b,c", "--agree", "--quorum", 3)[0] == 0
    code, _, err = commandline("hub", "remove", "hub", "c")
    assert (code, err.count("\n")) == (1, 1)
    assert "a round needs 3 answers, and without 'c' there are 2 sites; first lower quorum in hub/hub.json" in err
    assert HubConfig.load(folder / "hub").left == ()


@pytest.mark.parametrize(
    ("quorum", "cohort", "message"),
    [
        (3, "cohort = 2", "cell 'c': --quorum 3: a round asks 2 sites (cohort); a round needs at most all of them"),
        (2, "cohort = 2", ""),
        (3, 'cohort = 1.5\nsampling = "binomial"', ""),  # a round asks up to four
    ],
)
def test_a_quorum_above_the_cohort_is_refused(folder, commandline, quorum, cohort, message):
    (folder / "e.toml").write_text(TOML.replace("rounds", f"{cohort}\nrounds"))
    code, _, err = commandline("hub", "init", "hub", "e.toml", "--sites", "a,b,c,d", "--agree", "--quorum", quorum)
    assert (code, (folder / "hub").exists()) == ((1, False) if message else (0, True)), err
    assert message in err


def test_a_schema_s_file_is_the_kind(folder, commandline):
    schema = from_table(hospitals(rows=20)[["client", "age", "sex", "label"]]).schema
    schema.save("schema.json")
    code, _, err = commandline("hub", "init", "hub", "e.toml", "--sites", "a,b", "--schema", "schema.json")
    assert code == 0, err
    assert HubConfig.load(folder / "hub").agreed.schema == schema.to_dict()


INIT = ("hub", "init", "hub", "e.toml", "--sites", "a,b")
FILES = {"e.toml": TOML, "pooled.toml": POOLED, "own.csv": "client,x,label\na,1,y\n"}
SITE = ("site", "init", "kit", "--data", "own.csv")
BAD = [
    (INIT, "--agree"),
    ((*INIT, "--agree", "--schema", "own.csv"), "--agree"),
    ((*INIT, "--schema", "absent.json"), "absent.json"),
    ((*INIT, "--schema", "own.csv"), "own.csv"),
    ((*INIT, "--agree", "--quorum", "3"), "--quorum 3"),
    ((*INIT, "--agree", "--deadline", "nan"), "deadline"),
    ((*INIT, "--agree", "--deadline", "0"), "deadline"),
    ((*INIT[:3], "absent.toml", *INIT[4:], "--agree"), "absent.toml"),
    ((*INIT[:3], "pooled.toml", *INIT[4:], "--agree"), "cannot run at sites"),
    ((*INIT[:5], "a,a", "--agree"), "two sites"),
    ((*INIT[:5], "a,", "--agree"), "site ''"),
    ((*INIT[:5], "../a", "--agree"), "site '../a'"),
    (("hub", "init", "own.csv", *INIT[3:], "--agree"), "own.csv"),
    (("hub", "add", "absent", "a"), "hub init"),
    (("hub", "remove", "absent", "a"), "hub init"),
    (("hub", "status", "absent", "--admin", "kit"), "hub init"),
    (("hub", "status", "absent"), "hub init"),
    (("hub", "audit", "absent", "-o", "x"), "hub init"),
    (("hub", "revoke", "absent", "a", "--kit", "kit", "--admin", "kit"), "a hub's"),
    (("hub", "run", "absent", "--kit", "kit", "--admin", "kit", "--metrics", "0"), "--metrics"),
    (("hub", "renew", "kit", "--request", "r"), "a hub's"),
    (("hub", "sign", "absent.request", "--ca", "nowhere", "-o", "x.crt"), "nowhere"),
    (("site", "renew", "kit"), "--request"),
    (("site", "renew", "kit", "--install", "absent.crt"), "absent.crt"),
    (("hub", "run", "absent", "--kit", "kit", "--admin", "kit"), "hub init"),
    (("hub", "stop", "--kit", "kit"), "a hub's"),
    (("hub", "stop", "--kit", "absent"), "no kit"),
    ((*SITE[:2], "absent", *SITE[3:]), "no kit"),
    ((*SITE[:4], "absent.csv"), "absent.csv"),
    ((*SITE, "--schema", "absent.json"), "absent.json"),
    ((*SITE, "--allow-methods", "fedvg"), "fedavg"),
    ((*SITE, "--test", "2"), "--test"),
    ((*SITE, "--validation", "nan"), "--validation"),
    ((*SITE, "--smallest-count", "0"), "smallest-count"),
    (("site", "log", "absent"), "no kit"),
    (("site", "log", "kit", "--round", "0"), "round"),
    (("site", "summary", "kit"), "site init"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=lambda value: " ".join(value)[-50:])
def test_one_clear_line_and_nothing_left(arguments, words, commandline, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    site_kit(tmp_path / "kit")
    told = complaints(commandline, tmp_path, Bad(arguments, FILES, words=words))
    assert not told, "; ".join(told)


def test_status_audit_and_revocation_need_no_network(folder, commandline):
    pytest.importorskip("rocrate")
    assert commandline("hub", "init", "hub", "e.toml", "--sites", "north,south,east", "--agree")[0] == 0
    code, out, err = commandline("hub", "status", "hub", "--json")
    assert (code, json.loads(out)["rounds"]) == (0, {"done": 0, "total": 2, "runs": {}}), err
    revoke(folder / "hub", "north")
    code, out, err = commandline("hub", "remove", "hub", "north")
    assert (code, "its certificate stays valid" in out) == (0, True), err
    code, out, _ = commandline("hub", "status", "hub")
    assert (code, "north (left, revoked)" in out, "rounds done: 0 of 2" in out) == (0, True, True)
    code, out, err = commandline("hub", "audit", "hub", "-o", "audit", "--json")
    assert (code, json.loads(out)["compared"]) == (0, []), err
    assert "north" in (folder / "audit" / "report.md").read_text()
    code, _, err = commandline("hub", "audit", "hub", "-o", "audit")
    assert (code, "is not empty" in err, err.count("\n")) == (1, True, 1)
    text = (folder / "hub" / "revoked.json").read_text()
    (folder / "hub" / "revoked.json").write_text(text.replace("north", "south"))
    code, _, err = commandline("hub", "audit", "hub", "-o", "again")
    assert (code, "does not match its hash" in err, (folder / "again").exists()) == (1, True, False)
