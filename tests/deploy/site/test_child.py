"""A trainer in a process of its own: its death is a failed call, and the next call has a new one."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message
from idiolect.deploy.site.child import Child
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.data import save_arrays
from idiolect.deploy.site.site import open_site
from idiolect.deploy.site.trainer import placed, trainer_of
from tests.deploy.federation import LOOSE, data_of


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    save_arrays(folder / "own.data", data_of(), 0)
    floors = LOOSE.model_dump(mode="json")
    return {"folder": str(folder), "name": "site-1", "data": {"arrays": "own.data"}, "floors": floors}


def join(kind=None):
    kind = kind or Kind.of(data_of()).to_dict()
    terms = {"run": "r", "method": {"name": "fedavg"}, "model": {"name": "mlr"}, "kind": kind, "seed": 0, "rounds": 1}
    return Message({"task": "join", "terms": terms})


def test_it_answers_dies_and_answers_again(settings):
    child = Child(settings, {}, again=0)
    try:
        counts = child.call(join(), 120).header
        assert counts == {"samples": {"train": 10, "validation": 2, "test": 4}}
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        time.sleep(0.2)
        assert child.call(join(), 120).header == counts
        assert child.starts == 2
        refused = child.call(join({"task": "x"}), 120)
        assert "is of no kind" in refused.error
        assert "\n" not in refused.error
        assert child.call(Message({"task": "fly"}), 120).error == "unknown task 'fly'"
        assert child.starts == 2
        # Killed in the middle of a call: stopped first, so that the call cannot be over before.
        os.kill(child.pid, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (child.pid, signal.SIGKILL)).start()
        assert child.call(join(), 120).error == "the trainer died (SIGKILL, perhaps out of memory)"
    finally:
        child.close()
    assert child.pid is None


@pytest.mark.second
def test_a_call_is_sent_again_to_a_new_one_and_a_hanging_one_is_killed(settings):
    child = Child(settings, {}, again=1)
    try:
        first = child.call(join(), 120)
        os.kill(child.pid, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (child.pid, signal.SIGKILL)).start()
        assert child.call(join(), 120) == first
        pid = child.pid
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        assert child.call(join(), 0.5).error == "the trainer did not finish within 0.5 s"
        assert time.monotonic() - began < 60
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        starts = (
            child.starts
        )  # the new one has been started already, and goes on starting over calls that are too short
        assert child.call(join(), 0.01).error == "the trainer did not start within 0.01 s"
        assert child.call(join(), 120) == first
        assert child.starts == starts
    finally:
        child.close()


def test_one_that_compiles_is_left_at_it_and_its_late_answer_is_dropped(settings):
    child = Child(settings, {})
    try:
        assert child.call(Message({"task": "fly"}), 120).error == "unknown task 'fly'"
        os.kill(child.pid, signal.SIGSTOP)
        assert child.call(join(), 0.05).error == "the trainer did not finish within 0.05 s"
        assert child.call(Message({"task": "fly"}), 0.05).error == (
            "the trainer did not finish its first answer within 0.05 s"
        )
        os.kill(child.pid, signal.SIGCONT)
        assert child.call(Message({"task": "fly"}), 120).error == "unknown task 'fly'"
        assert child.starts == 1
        # A task that it has answered before has no such excuse.
        os.kill(child.pid, signal.SIGSTOP)
        assert "did not finish" in child.call(join(), 0.05).error
        assert child.starts == 2
    finally:
        child.close()


def test_it_inherits_the_environment_beside_its_own(settings, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    child = Child(settings, {"OWN": "1"})
    try:
        child.start()
        has = Path(f"/proc/{child.pid}/environ").read_text().split("\0")
    finally:
        child.close()
    assert "MALLOC_ARENA_MAX=2" in has
    assert "OWN=1" in has


def test_a_trainer_that_cannot_work_says_why(settings):
    child = Child({**settings, "data": {"arrays": "own.data", "color": "red"}}, {})
    try:
        assert "site.toml: data: color" in child.call(join(), 120).error
    finally:
        child.close()


def test_settings_of_data(settings, tmp_path):
    assert placed({"table": "a.csv", "label": "y"}, tmp_path) == {"table": str(tmp_path / "a.csv"), "label": "y"}
    assert placed({"table": "/a.csv"}, tmp_path)["table"] == "/a.csv"
    with pytest.raises(ConfigError, match="data: color"):
        trainer_of({**settings, "data": {"color": 1}})
    assert np.isfinite(trainer_of(settings)(join()).header["samples"]["train"])


def test_a_site_is_opened_from_its_folder(settings, tmp_path):
    with pytest.raises(ConfigError, match="is missing"):
        open_site(tmp_path)
    SiteConfig(name="site-1", data={"arrays": "own.data"}).save(tmp_path)
    site = open_site(tmp_path)
    assert site.trainer.environment["IDIOLECT_CACHE"] == str(tmp_path / "cache")
    assert site.trainer.pid is not None  # it starts before anything is asked of it
    site.trainer.start()
    assert site.trainer.starts == 1
    site.close()
