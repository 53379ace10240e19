"""idiolect federate: real trainer processes, and what a user meets."""

import json

import pytest

from tests.report.trackers.made import Made
from tests.rights import loose, umask

EXPERIMENT = """
name = "three"
[[cells]]
id = "c"
data = { name = "synthetic", clients = 3, max_size = 40 }
model = { name = "mlr" }
rounds = 2
eval_every = 1
methods = [{ name = "ditto" }]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "three.toml"
    path.write_text(EXPERIMENT)
    return path


def test_a_quick_federation_is_a_run_folder_as_any_and_goes_on(file, tmp_path, commandline, monkeypatch):
    out, sent = tmp_path / "out", Made()
    monkeypatch.setattr("idiolect.report.trackers.tracking.trackers_of", lambda *_: [sent])
    with umask(0):
        code, printed, err = commandline("federate", file, "--quick", "--out", out)
    assert loose(out) == []  # also the reports, which name every site
    assert (code, "ditto" in printed) == (0, True), err
    report = (out / "report.md").read_text()
    assert "trained at real sites" in report
    assert (sent.taken[-1], sent.finished) == (("c/ditto/seed0", [0, 1, 2], True), [(out, "three")])
    assert sent.report == report
    assert "counted in the messages between real sites" in (out / "report.html").read_text()
    assert f"idiolect federate {file} --quick --out {out}" in report
    assert (out / "figures" / "c-curves.png").is_file()
    for site in ("site-1", "site-2", "site-3"):
        held = {path.name for path in (out / "sites" / site).iterdir()}
        assert {"models", "sent.jsonl", "site.toml", "state"} <= held
        assert "own.data" not in held
    assert json.loads(commandline("show", out, "--json")[1])["cells"][0]["id"] == "c"
    began = (out / "participation.jsonl").read_text()
    assert commandline("federate", file, "--quick", "--out", out)[0] == 0  # nothing is left to do
    assert (out / "participation.jsonl").read_text() == began


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.toml"], "error: no such experiment file: nowhere.toml"),
        (["FILE", "--sites", "9", "--quick"], "error: --sites 9: synthetic(0.5, 0.5) has 3 clients; name at"),
        (["FILE", "--set", "new_splits=true", "--quick"], "leave new_splits out"),
        (["FILE", "--set", "model.class_weights=balanced", "--quick"], "counts the labels of all clients"),
        (["FILE", "--quick", "--deadline", "0"], "--deadline"),
        (["FILE", "--quick", "--quorum", "0"], "--quorum"),
        (["FILE", "--quick", "--quorum", "99"], "--quorum 99: there are 3 sites; a round needs at most all"),
        (["FILE", "--sites", "2", "--quorum", "3"], "--quorum 3: there are 2 sites"),
        (["FILE", "--quick", "--only", "fedavg"], "unknown cell or method 'fedavg'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, told, file, tmp_path, commandline):
    out = tmp_path / "out"
    given = [file if argument == "FILE" else argument for argument in arguments]
    code, _, err = commandline("federate", *given, "--out", out)
    assert code in (1, 2)
    assert told in err
    assert len(err.strip().splitlines()) == 1
    assert not out.exists()
