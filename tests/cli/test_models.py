"""idiolect personalize: models for the clients of a new table, by a finished run."""

import hashlib
import json
import shlex
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from idiolect.models.client_model import load_model

RUN = ["--client", "ward", "--label", "outcome", "--rounds", "2", "--eval-every", "2", "--jobs", "1"]


def table(path: Path, sizes: dict[str, int], seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    owners = np.repeat(list(sizes), list(sizes.values()))
    x = rng.normal(size=(len(owners), 2))
    label = np.where(x[:, 0] > 0, "ill", "well")
    pd.DataFrame({"ward": owners, "u": x[:, 0], "v": x[:, 1], "outcome": label}).to_csv(path, index=False)
    return str(path)


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.fixture
def idiolect(commandline, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return commandline


def test_new_clients_of_a_finished_folder(idiolect, monkeypatch, tmp_path):
    known = table(tmp_path / "known.csv", {"w0": 20, "w1": 24})
    new = table(tmp_path / "new.csv", {"n0": 12, "n1": 1}, seed=1)
    assert (
        idiolect("compare", "--data", known, "--methods", "fedavg-ft,fedavg", *RUN, "--out", "run", "--json")[0] == 0
    )
    before = hashes(tmp_path / "run")
    arguments = ["personalize", "run", "--data", new]

    def refused(*more: str) -> str:
        code, out, err = idiolect(*arguments, *more)
        assert (code, out) == (1, "")
        assert "Traceback" not in err
        return err

    assert "holds several methods (fedavg-ft, fedavg)" in " ".join(refused().split()).replace("known/", "")
    assert "no finished run of method fedprox" in refused("--method", "fedprox")
    assert "is in the run's folder" in refused("--method", "fedavg", "--out", "run/new")
    assert "no label column 'result'" in refused("--method", "fedavg", "--label", "result")
    for rounds in ("0", "-1"):
        assert f"rounds = {rounds} must be at least 1" in refused("--method", "fedavg", "--rounds", rounds)
    assert "no such file" in idiolect("personalize", "run", "--data", "missing.csv")[2]
    assert not (tmp_path / "run-new").exists()

    code, out, _ = idiolect(*arguments, "--method", "fedavg-ft", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["out"] == "run-new"
    assert {(row["model"], row["client"], row["used"], row["n"]) for row in told["clients"]} == {
        (model, *client) for model in ("adapted", "global") for client in (("n0", 9, 3), ("n1", 1, 0))
    }
    assert all((row["accuracy"] is None) == (row["client"] == "n1") for row in told["clients"])
    assert hashes(tmp_path / "run") == before
    folder = tmp_path / "run-new"
    assert told["files"] == sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert {
        "report.md",
        "report.json",
        "report.html",
        "clients.csv",
        "own-samples.csv",
        "figures/own-samples.png",
    } < {*told["files"]}
    page, said = (folder / "report.md").read_text(), json.loads((folder / "report.json").read_text())
    score = next(row["accuracy"] for row in told["clients"] if (row["client"], row["model"]) == ("n0", "adapted"))
    assert said["headline"] == f"2 new clients: mean test accuracy {100 * score:.2f} % with the adapted model."
    assert f"**{said['headline']}**\n\n{said['numbers']}\n" in page
    assert said["cells"][0]["clients"]["scores"]["m0"] == [score, None]
    assert said["cells"][0]["clients"]["train"] == [9, 1]
    code, out, _ = idiolect("report", "run-new", "-o", "again.html")
    assert (code, out.strip()) == (0, "page: again.html")
    assert Path("again.html").read_bytes() == (folder / "report.html").read_bytes()
    code, _, err = idiolect("figure", "run-new", "clients")
    assert (code, "can be drawn: newcomers" in err) == (1, True)
    assert "| n1 | 1 | — | — |" in page
    assert "without test samples, hence without a score: n1" in page
    assert "- made by: `idiolect personalize run --data " in page
    curve = pd.read_csv(folder / "own-samples.csv")
    assert sorted(set(curve["samples"])) == [1, 2, 5, 9]
    model = load_model(folder / "models" / "adapted" / "n1.safetensors")
    assert model(jnp.zeros(2)).shape == (2,)
    assert "is not empty; use another --out" in refused("--method", "fedavg")

    # Names that are known already are told; a run whose own table has changed is no longer that run.
    code, out, _ = idiolect(
        "personalize", "run", "--data", known, "--method", "fedavg", "--no-curve", "--out", "again"
    )
    assert code == 0
    assert "2 of them have names of clients that trained, and are served as new: w0, w1" in out
    assert not (tmp_path / "again" / "own-samples.csv").exists()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    # Ctrl-C, while models are made and while they are written: nothing is left.
    typed = [*arguments, "--method", "fedavg", "--out", "new folder/third"]
    for place in ("study.run.personalized.personalize", "report.newcomers.newcomers_text"):
        with monkeypatch.context() as patched:
            patched.setattr(f"idiolect.{place}", interrupted)
            stopped = idiolect(*typed)
        told = f"stopped; nothing was kept; begin again with: {shlex.join(['idiolect', *typed])}\n"
        assert stopped == (130, "", told)
        assert not (tmp_path / "new folder").exists()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("idiolect.report.newcomers.newcomers_text", full)
        said = refused("--method", "fedavg", "--out", "new folder/third")
    assert "cannot write to 'new folder/third': No space left on device" in said
    assert not (tmp_path / "new folder").exists()
    table(tmp_path / "known.csv", {"w0": 20, "w1": 24}, seed=5)
    assert "have changed since it was started" in refused("--method", "fedavg", "--out", "third")


EXPERIMENT = """
name = "wards"
[[cells]]
id = "wards"
data = { name = "table", path = "known.csv", client = "ward", label = "outcome" }
model = "mlr"
rounds = 9
methods = [{ name = "boosted-intercept", trees = 1, leaves = 3, bins = 8 }]
"""


@pytest.mark.second
def test_boosted_trees_serve_a_new_client_and_its_file_predicts(idiolect, tmp_path):
    """A new ward with another rule gets an intercept of its own, and a file that predicts its rows."""
    table(tmp_path / "known.csv", {"w0": 60, "w1": 60})
    table(tmp_path / "new.csv", {"n0": 60}, seed=1)
    rows = pd.read_csv("new.csv").assign(outcome=lambda t: np.where(t.u > -1.0, "ill", "well"))
    rows.to_csv("new.csv", index=False)
    Path("wards.toml").write_text(EXPERIMENT)
    assert idiolect("run", "wards.toml", "-o", "run", "--jobs", "1")[0] == 0
    assert idiolect("personalize", "run", "new.csv", "--no-curve", "-o", "new")[0] == 0
    file = Path("new/models/personal/n0.safetensors")
    forest = load_model(file).module
    assert forest.done == 1
    assert abs(float(forest.intercept[0])) > 0.3
    for source in (file, file.parent):
        assert idiolect("predict", str(source), "new.csv", "-o", f"{source.name}.csv")[0] == 0
        said, others = pd.read_csv(f"{source.name}.csv").prediction, np.where(rows.u > 0, "ill", "well")
        assert (said == rows.outcome).mean() > (others == rows.outcome).mean() + 0.05
