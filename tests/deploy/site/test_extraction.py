"""What a hub could take out of a site by its settings: with floors no call is answered, without them rows come out.

The attacks are those that were measured on real sites: batches of one row in a fixed order, and sites of one row or
one class. Each must succeed without floors, so that the refusals say something.
"""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from idiolect.data import from_arrays
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.plan import study_of
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message
from idiolect.deploy.site.approvals import Approvals, approve
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.study import Study
from tests.deploy.federation import LOOSE, experiment_of, site_of
from tests.deploy.site.test_site import Nobody

FEATURES, ROWS, RATE = 30, 178, 0.002


def federation(rows=275, seed=0):
    """Three sites; of 275 rows 178 are for training."""
    rng, parts = np.random.default_rng(seed), {}
    for name in ("west", "north", "south"):
        x = rng.normal(size=(rows if name == "west" else 275, FEATURES)).astype("f4")
        parts[name] = x, (x @ rng.normal(size=(FEATURES, 2))).argmax(axis=1)
    return from_arrays(parts)


def labelled(data, labels):
    """The federation with other labels of the training rows of west."""
    split, west = data.stored("train"), data.clients.index("west")
    y, rows = split.y.copy(), slice(int(split.offsets[west]), int(split.offsets[west + 1]))
    y[rows] = labels(y[rows])
    return replace(data, train=type(split)(split.x, y, split.offsets, split.outputs))


DATA = federation()
VIEW = {"linear/weight": np.zeros((2, FEATURES), np.float32), "linear/bias": np.zeros(2, np.float32)}
S2 = {"name": "fedavg", "rate": RATE, "batch_size": 1, "local_steps": 1, "batches": "cyclic"}


@cache
def planned(method, kind):
    """A study of 200 rounds of this method at the three sites."""
    experiment = experiment_of([json.loads(method)["name"]], rounds=200).model_dump(mode="json")
    values = {"experiment": experiment, "kind": json.loads(kind), "sites": ("west", "north", "south")}
    made = study_of(HubConfig(study="attack-00000001", **values))
    (traffic,) = made.travels.values()
    (run,) = (one.model_dump() for one in made.runs)
    run |= {"run": "r", "method": run["method"] | json.loads(method)}
    return Study.model_validate({**made.model_dump(), "runs": [run], "travels": {"": traffic.model_dump()}})


def call(site, task, data=DATA, method=None, vectors=None, number=1, **header):
    """A hub's call of a study that the site's administrator has approved, whatever it says."""
    study = planned(json.dumps(method or S2), json.dumps(Kind.of(data).to_dict()))
    known = Approvals.load(site.folder).of(study.id)
    if known is None or known.digest != study.digest:
        approve(site.folder, "west", study)
    place = {"id": 0, "clients": 3, "samples": 600, "cohort": 3.0}
    head = {"task": task, "job": 1, "call": number, "used": -1, "run": "r", "place": place}
    head |= {"terms": study.terms("r", Kind.of(data).to_dict()).model_dump(mode="json"), **header}
    named = {f"{'params' if task == 'begin' else 'view'}/{name}": v for name, v in (vectors or VIEW).items()}
    return site.answer(Message(head, {} if task == "join" else named), "hub", Nobody())


def inverted(answer, rate=RATE):
    """x = dW / db of each output, from one step on one row, and the row's label."""
    weight = (VIEW["linear/weight"] - answer.vectors["linear/weight"]).astype(np.float64) / rate
    bias = (VIEW["linear/bias"] - answer.vectors["linear/bias"]).astype(np.float64) / rate
    return weight[0] / bias[0], int(bias.argmin())


@pytest.mark.parametrize("method", [S2, {**S2, "batches": "fresh"}, {**S2, "name": "fedsgd"} | {"rate": 1.0}])
def test_one_row_per_step_is_refused_before_anything_is_computed(method, tmp_path, caplog):
    """S1 and S2: whoever calls as the hub, by settings alone."""
    method = {k: v for k, v in method.items() if method["name"] == "fedavg" or k in ("name", "rate", "batch_size")}
    site = site_of(tmp_path, DATA, "west", Floors())
    site.trainer = None  # whoever computes now fails
    answers = [call(site, "round", method=method, round=round, number=round + 2) for round in range(ROWS)]
    assert [answer.vectors for answer in answers] == [{}] * ROWS
    line = (
        "site 'west' refuses: floors.rows_per_step = 10, but a gradient step has 1 row; raise batch_size, or take "
        "all rows (batch_size = 0), or let the site's administrator change floors.rows_per_step in site.toml"
    )
    assert {answer.error for answer in answers} == {line}
    logged = [line, f"{line} (10 times so far)", f"{line} (100 times so far)"]
    assert [record.message for record in caplog.records] == logged  # however often the hub asks
    assert len([*Outbox(tmp_path / "sent.jsonl").lines()]) == ROWS


def test_without_floors_the_hub_gets_every_row_with_its_label(tmp_path):
    site = site_of(tmp_path, DATA, "west", LOOSE)
    call(site, "begin")
    split = DATA.select(lambda index: DATA.clients[index] == "west").stored("train")
    got = [inverted(call(site, "round", round=round, number=round + 2, used=-1)) for round in range(ROWS)]
    assert len(split.y) == ROWS
    errors = [np.abs(x - row).max() for (x, _), row in zip(got, split.x, strict=True)]
    assert max(errors) < 0.01  # the features' deviation is 1
    assert [label for _, label in got] == split.y.tolist()


@pytest.mark.parametrize("name", ["fedavg", "ditto", "pfedme"])
def test_a_site_with_one_row_sends_nothing(name, tmp_path):
    """S3: x = dW / db from ordinary settings."""
    data = federation(rows=2)  # one of them for training
    method = {"name": name}
    loose = site_of(tmp_path, data, "west", LOOSE)
    call(loose, "begin", data, method)  # also a run that began before the floors were set
    site = site_of(tmp_path, data, "west", Floors())
    for task in ("join", "round", "evaluate"):
        answer = call(site, task, data, method, round=0, names=["global"])
        assert "floors.rows = 10, but the site has 1 training row" in answer.error, task
        assert answer.vectors == {}
    x, label = inverted(call(loose, "round", data, method, number=3, round=0))
    split = data.select(lambda index: data.clients[index] == "west").stored("train")
    np.testing.assert_allclose(x, split.x[0], atol=1e-4)
    assert label == split.y[0]


def test_a_site_with_one_class_sends_nothing(tmp_path):
    """S3: the mean of its rows."""
    data = labelled(federation(), lambda y: np.zeros_like(y))
    method = {"name": "fedsgd"}
    loose = site_of(tmp_path, data, "west", LOOSE)
    call(loose, "begin", data, method)
    site = site_of(tmp_path, data, "west", Floors())
    assert "floors.classes = 2, but its training rows have 1 label;" in call(site, "join", data, method).error
    assert "floors.classes = 2" in call(site, "round", data, method, round=0).error
    sent = call(loose, "round", data, method, number=3, round=0).vectors
    mean = sent["linear/weight"][0] / sent["linear/bias"][0]
    split = data.select(lambda index: data.clients[index] == "west").stored("train")
    np.testing.assert_allclose(mean, split.x.mean(axis=0), atol=1e-5)


def test_a_rare_class_is_given_away_by_the_hub_s_bias_and_refused(tmp_path):
    """A hub that sets a class's bias to -30 gets the sum of the class: of one row, the row."""
    data = labelled(federation(), lambda y: (np.arange(len(y)) == 0).astype(y.dtype))
    own = data.select(lambda index: data.clients[index] == "west").stored("train")
    method, view = {"name": "fedsgd"}, {**VIEW, "linear/bias": np.array([0, -30], np.float32)}
    site = site_of(tmp_path / "floors", data, "west", Floors())
    error = call(site, "join", data, method).error
    assert "floors.count = 5, but one class has fewer than 5 training rows" in error
    loose = site_of(tmp_path / "none", data, "west", LOOSE)
    call(loose, "begin", data, method)
    sent = call(loose, "round", data, method, view, number=2, round=0).vectors
    np.testing.assert_allclose(sent["linear/weight"][1] / sent["linear/bias"][1], own.x[0], atol=1e-4)
