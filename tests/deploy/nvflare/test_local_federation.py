"""Real processes with mutual TLS on this machine: the numbers of a simulation, also over a death."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.nvflare.kits import HUB_FOLDER
from idiolect.deploy.nvflare.local_federation import FOLDER, hand_over, kits_here, run_here, supervised
from idiolect.deploy.nvflare.processes import running, start, stop
from idiolect.deploy.nvflare.supervisor import Limits
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.study import Study
from idiolect.deploy.this_machine import ARRAYS, SITES, prepare
from idiolect.study.run.launch import launch
from tests.deploy.federation import data_of, experiment_of, participation, scores_of
from tests.rights import loose, umask

DATA = data_of()


def read(path):
    """The start of a file."""
    with path.open("rb") as file:
        return file.read(4096)


def trainers(out):
    """The trainer processes of the federation in this folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line = process.info["cmdline"] or []
        if "idiolect.deploy.site.child" in line and str(out) in str(process.info["cwd"]):
            found.append(process.pid)
    return found


@pytest.mark.second
def test_star_and_ring_with_a_trainer_killed_are_the_simulation(tmp_path, monkeypatch):
    """And nobody but their owners may read any file, also of the engine, whatever the umask is."""
    out, killed, told, kept = tmp_path / "out", list[int](), list[str](), dict[str, list[str]]()

    def looked(kits, folder):
        kept["loose"] = loose(folder)
        kept["files"] = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
        kept["keys"] = [path.read_text() for path in folder.rglob("*") if path.is_file() and b"PRIVATE" in read(path)]
        hand_over(kits, folder)

    monkeypatch.setattr("idiolect.deploy.nvflare.local_federation.hand_over", looked)
    methods = ["scaffold", {"name": "dfedu", "graph": "ring"}]
    experiment = experiment_of(methods, rounds=6, eval_every=3)
    with umask(0):
        names = prepare(out, experiment, DATA)

    def kill():
        while not killed:
            if any(line["round"] >= 2 for line in participation(out)) and (found := trainers(out)):
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])
            time.sleep(0.02)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    with umask(0):
        assert run_here(out, names, DATA, told.append) == 1, told
    thread.join(5)
    assert kept["loose"] == loose(out) == []
    # A hub, three sites and who submits jobs have one key each, in one place; the root's is nowhere.
    assert len(kept["keys"]) == len(set(kept["keys"])) == 5
    for name in ("log.txt", "console.txt", "kept.msg", "sent.jsonl", ".safetensors", ".key", "participation.jsonl"):
        assert any(path.endswith(name) for path in kept["files"]), name
    assert len(killed) == 1
    launch(experiment, tmp_path / "simulated", data=DATA, jobs=1)
    for run in ("t/scaffold/seed0", "t/dfedu/seed0"):
        real, simulated = scores_of(out, run), scores_of(tmp_path / "simulated", run)
        assert real.keys() == simulated.keys() != set()
        for key, expected in simulated.items():
            np.testing.assert_allclose(real[key].loss, expected.loss, atol=1e-6)
    lines = participation(out)
    assert len(lines) == 12
    assert not any(line["missing"] or line["neighbours_missing"] for line in lines)  # the death was a slow call
    assert not (out / FOLDER).exists()
    assert not trainers(out)
    for name in names:
        held = {path.name for path in (out / SITES / name).iterdir()}
        assert {"models", "sent.jsonl", "state"} <= held
        assert ARRAYS not in held


def test_kits_are_made_once_and_handed_over(tmp_path):
    names = prepare(tmp_path, experiment_of(["fedavg"]), DATA)
    kits = kits_here(tmp_path, names, DATA)
    again = kits_here(tmp_path, names, DATA)
    assert again == kits
    assert all(running(kit) is None for kit in kits.sites.values())
    own = kits.sites["site-2"].folder / "idiolect"
    assert (own / ARRAYS).is_file()
    hand_over(kits, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hub.json", SITES, "study.json"]
    left = sorted(path.name for path in (tmp_path / SITES / "site-2").iterdir() if path.suffix != ".lock")
    assert left == ["approvals.json", "site.toml"]
    with pytest.raises(StoreError, match="cannot write"):
        hand_over(kits, tmp_path)


# Loaded by the hub's processes: its file says what the sites have approved, and its calls ask for a row per step.
GREEDY = """
import idiolect.deploy.study as study

honest = study.Study.terms


def terms(self, run, kind):
    made = honest(self, run, kind)
    evil = {"batch_size": 1, "local_steps": 1, "batches": "cyclic"}
    return made.model_copy(update={"method": {**made.method, **evil}})


study.Study.terms = terms
"""


@pytest.mark.second
def test_a_hub_that_asks_for_other_terms_than_approved_gets_nothing(tmp_path):
    """Attack S2: the batch of one row, after the sites have approved batches of twenty."""
    out, greedy = tmp_path / "out", tmp_path / "greedy"
    greedy.mkdir()
    (greedy / "sitecustomize.py").write_text(GREEDY)
    names = prepare(out, experiment_of(["fedavg"], rounds=2), DATA)
    kits = kits_here(out, names, DATA)
    try:
        start(
            kits.hub, {HUB_FOLDER: str(out), "PYTHONPATH": f"{greedy}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        )
        for kit in kits.sites.values():
            start(kit)
        watch = replace(supervised(kits, out, names, lambda _: None), limits=Limits(fruitless=1))
        with pytest.raises(StoreError) as error:
            watch.run()
    finally:
        for kit in (kits.hub, *kits.sites.values()):
            stop(kit)
    for name, kit in kits.sites.items():
        line = f"site '{name}' refuses: study {Study.load(out / 'study.json').id}, run t/fedavg/seed0: "
        line += "method.batch_size: approved 20, asked 1; ask the hub's administrator why"
        sent = [*Outbox(kit.site / "sent.jsonl").lines()]
        assert [line["task"] for line in sent] == ["hello", "join"]
        assert sent[-1]["header"]["error"].startswith(line)
        assert line in "".join(path.read_text() for path in kit.folder.rglob("log.txt"))
        assert not (kit.site / "state").exists() or not [*(kit.site / "state").rglob("*.msg")]
    assert "site 'site-1' refuses: study " in str(error.value)
    assert "method.batch_size: approved 20, asked 1" in str(error.value)
