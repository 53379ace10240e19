"""A site as the hub and its neighbours meet it."""

import json
import time
from functools import partial
from itertools import count

import numpy as np
import pytest

from idiolect.algorithms.fedu import DFedU
from idiolect.deploy.hub.revoked import revoke as revoke_site
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message, read_message
from idiolect.deploy.site.approvals import Approvals, approve
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.site.site import Site
from idiolect.deploy.terms import PROTOCOL, VERSION
from idiolect.deploy.transport import InProcess, QuorumError, Replies
from tests.deploy.federation import (
    data_of,
    experiment_of,
    hub_of,
    kept_file,
    message_of,
    site_of,
    sites_of,
    study_of_run,
)

DATA = data_of()
VIEW = {"view/linear/weight": np.zeros((2, 3), np.float32), "view/linear/bias": np.zeros(2, np.float32)}
PARAMS = {name.replace("view", "params"): vector for name, vector in VIEW.items()}


class Nobody:
    """Neighbours of whom none answers, or each with what is given."""

    def __init__(self, **answers):
        self.answers, self.sent, self.expected = answers, {}, None

    def expect(self, run, neighbours):
        self.expected = run, sorted(neighbours)

    def exchange(self, round, messages, *, deadline):
        self.sent = dict(messages)
        return Replies(dict(self.answers), {name: "late" for name in messages if name not in self.answers})


def call(site, task, vectors=None, peer=None, method="scaffold", neighbours=None, late=(), **header):
    """A hub's call of the study of this method, which the site's administrator approves first."""
    study = study_of_run(method, neighbours, late)
    if not any(one.digest == study.digest for one in Approvals.load(site.folder).approved):
        approve(site.folder, "site-1", study)
    message = message_of(study, task, vectors, neighbours, **header)
    return site.answer(message, "hub", peer or Nobody())


def begun(folder):
    """A site that has begun a run of SCAFFOLD, and whose administrator approves nothing by itself."""
    made = site_of(folder / "site-1", DATA, "site-1", kind=Site)
    assert call(made, "begin", PARAMS, call=1).header == {"begun": True}
    return made


@pytest.fixture
def site(tmp_path):
    return begun(tmp_path)


def control(site):
    """The private control variate of SCAFFOLD as it is kept."""
    return kept_file(site.folder, "r")


VIEWS = {
    **{name.replace("view/", "view/params/"): vector for name, vector in VIEW.items()},
    **{name.replace("view/", "view/control/"): vector for name, vector in VIEW.items()},
}


def test_hello_and_join(site):
    assert call(site, "hello").header == {"name": "site-1", "protocol": PROTOCOL, "version": VERSION}
    joined = call(site, "join").header
    assert joined["samples"] == {"train": 10, "validation": 2, "test": 4}
    assert len(bytes.fromhex(joined["rows"])) == 32


def test_a_round_is_prepared_and_committed_when_its_answer_was_used(site):
    before = control(site).read_bytes()
    first = call(site, "round", VIEWS, call=2)
    assert {*first.vectors} == {
        f"{part}/linear/{leaf}" for part in ("params", "control") for leaf in ("weight", "bias")
    }
    assert control(site).read_bytes() == before
    again = call(site, "round", VIEWS, call=3)  # the hub's checkpoint was lost: the same call, answered again
    assert all((again.vectors[name] == vector).all() for name, vector in first.vectors.items())
    second = call(site, "round", VIEWS, call=4, round=1, used=0)
    assert control(site).read_bytes() != before
    # With a control variate of its own, the next round's message differs from the first one's.
    assert any((second.vectors[name] != vector).any() for name, vector in first.vectors.items())


def test_a_retried_round_is_not_computed_twice(site):
    first = call(site, "round", VIEWS, call=2)
    site.trainer.call = None  # whoever computes now fails
    assert call(site, "round", VIEWS, call=3).vectors.keys() == first.vectors.keys()


def test_a_request_that_differs_is_computed_anew(site, monkeypatch):
    ask = partial(call, site, "round", VIEWS, late=("site-4",))  # a study in which three or four sites may take part
    call(site, "begin", PARAMS, late=("site-4",))
    ask(call=2)
    calls, compute = [], site.trainer.call
    monkeypatch.setattr(site.trainer, "call", lambda *given: calls.append(1) or compute(*given))
    ask(call=3, job=2, seconds=9.0)
    assert calls == []
    place = {"id": 0, "clients": 4, "samples": 48, "cohort": 4.0, "neighbours": None}
    ask(call=4, job=2, place=place)
    assert calls == [1]
    ask(call=5, job=2, place=place)
    ask(call=6, job=2, place=place, names=["something new"])
    assert calls == [1, 1]
    unknown = ask(call=7, job=2, place=place, said="something new")
    assert "said: Extra inputs" in unknown.error  # what no site reads cannot be left out of the digest


def test_an_answer_that_was_not_used_leaves_no_trace(site, tmp_path):
    other = site_of(tmp_path / "other" / "site-1", DATA, "site-1")
    call(other, "begin", PARAMS)
    call(site, "round", VIEWS, call=2)  # dropped at the deadline
    late = call(site, "round", VIEWS, call=3, round=1, used=-1)
    plain = call(other, "round", VIEWS, call=2, round=1, used=-1)
    assert all((late.vectors[name] == vector).all() for name, vector in plain.vectors.items())


def test_an_older_call_changes_nothing(site):
    call(site, "round", VIEWS, job=2, call=1)
    before = sorted((path.name, path.read_bytes()) for path in control(site).parent.iterdir())
    assert "is late" in call(site, "round", VIEWS, job=1, call=9).error
    assert sorted((path.name, path.read_bytes()) for path in control(site).parent.iterdir()) == before


def test_what_the_site_does_not_allow_is_refused(tmp_path):
    site = site_of(tmp_path / "site-1", DATA, "site-1", methods=("pfedme",), evaluation=False, neighbours=())
    assert call(site, "join").error == "method 'scaffold' is not allowed here (allowed: pfedme)"
    assert call(site, "fly").error == "task 'fly' is not known here"
    small = site_of(tmp_path / "small", DATA, "site-1", largest=40)
    assert "has 64 bytes; at most 40 are allowed" in call(small, "round", VIEWS).error
    assert "has 32 bytes" in call(site_of(tmp_path / "s", DATA, "site-1", largest=31), "begin", PARAMS).error


def test_evaluation_can_be_kept_at_the_site(tmp_path):
    for allowed in (True, False):
        site = site_of(tmp_path / str(allowed), DATA, "site-1", evaluation=allowed)
        call(site, "begin", PARAMS, method="fedavg")
        answer = call(site, "evaluate", VIEW, method="fedavg", names=["global"], call=2)
        assert bool(answer.header["scores"]) == allowed == bool(answer.vectors)


def test_a_message_that_does_not_fit_is_one_line(site):
    name = "view/params/linear/weight"
    for vector, told in (
        (np.full((2, 3), np.nan, np.float32), "holds NaN or infinity"),
        (np.zeros((3, 2), np.float32), "has shape"),
    ):
        error = call(site, "round", {**VIEWS, name: vector}, call=2).error
        assert told in error
        assert "params/linear/weight" in error
    assert (
        "'control/linear/bias' is missing"
        in call(site, "round", {n: v for n, v in VIEWS.items() if n != "view/control/linear/bias"}, call=3).error
    )


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ({"job": "x"}, "the hub's call cannot be read: job: Input should be a valid integer"),
        ({"call": -1}, "the hub's call cannot be read: call: Input should be greater than or equal to 0"),
        ({"used": 1.5}, "the hub's call cannot be read: used: Input should be a valid integer"),
        ({"seconds": float("nan")}, "the hub's call cannot be read: seconds: Input should be a finite number"),
        ({"names": "global"}, "the hub's call cannot be read: names: Input should be a valid tuple"),
        ({"usd": 3}, "the hub's call cannot be read: usd: Extra inputs are not permitted"),
        ({"place": {"id": 0}}, "the hub's call cannot be read: place.clients: Field required"),
        ({"place": None}, "the call 'round' names no place of the site"),
        ({"terms": None}, "the call 'round' names no terms of a run"),
    ],
)
def test_a_call_that_cannot_be_read_says_what_is_wrong(site, header, error):
    before = sorted((path.name, path.read_bytes()) for path in control(site).parent.iterdir())
    assert call(site, "round", VIEWS, **{"call": 2, **header}).error == error
    assert sorted((path.name, path.read_bytes()) for path in control(site).parent.iterdir()) == before
    assert [*Outbox(site.folder / "sent.jsonl").lines()][-1]["header"] == {"error": error}


def test_a_state_that_was_lost_is_told(site):
    assert "has used this site's answer of round 3" in call(site, "round", VIEWS, call=2, round=3, used=2).error
    assert (
        "has no private state of run 'r'"
        in call(site_of(site.folder.parent / "new", DATA, "site-1"), "round", VIEWS).error
    )


def test_an_error_does_not_say_where_the_site_s_folder_lies(site):
    control(site).write_bytes(b"x")
    error = call(site, "round", VIEWS, call=2).error
    assert error == f"{control(site).relative_to(site.folder)} is no message file of idiolect"
    (site.folder / "sent.jsonl").unlink()
    (site.folder / "sent.jsonl").mkdir()
    assert call(site, "hello", call=3).error == "cannot write sent.jsonl, so nothing is sent: Is a directory"


def test_among_neighbours_the_missing_are_left_out_and_counted(tmp_path):
    options = {"method": "dfedu", "neighbours": {"b": 0.5, "c": 2.0, "d": 1.0}}
    site = site_of(tmp_path / "site-1", DATA, "site-1")
    call(site, "begin", PARAMS, **options)
    model = {"linear/weight": np.ones((2, 3), np.float32), "linear/bias": np.ones(2, np.float32)}
    wrong = {**model, "linear/bias": np.array([np.nan, 0], np.float32)}
    peer = Nobody(b=Message({}, model), d=Message({}, wrong))
    answer = call(site, "round", peer=peer, call=2, **options)
    assert answer.vectors == {}  # a hub sees no model
    assert answer.header["missing"] == {"c": "late", "d": "its message holds NaN or infinity"}
    sent = peer.sent["b"].vectors
    prepared = control(site).with_name("prepared.msg")
    assert prepared.is_file()
    call(site, "evaluate", call=3, round=1, used=0, names=["personal"], **options)
    kept = read_message(control(site))
    # w - mu R eta a (w - w_b), dFedU's line 12 with the one neighbour whose message came
    step = float(DFedU().step) * 0.5
    for name, own in sent.items():
        expected = own - np.float32(step) * (own - model[name])
        np.testing.assert_allclose(kept.vectors[f"view/{name}"], expected, rtol=1e-6, atol=1e-7)


def test_a_neighbour_must_be_allowed(tmp_path):
    site = site_of(tmp_path / "site-1", DATA, "site-1", neighbours=("b",))
    options = {"method": "dfedu", "neighbours": {"b": 1.0, "c": 1.0}}
    call(site, "begin", PARAMS, **options)
    peer = Nobody()
    assert "site 'c' is not allowed" in call(site, "round", peer=peer, call=2, **options).error
    assert peer.sent == {}


def test_messages_are_expected_from_allowed_neighbours_of_the_run_in_progress(tmp_path):
    site, peer = site_of(tmp_path / "site-1", DATA, "site-1", neighbours=("b",)), Nobody()
    ring = {"method": "dfedu", "neighbours": {"b": 1.0, "c": 1.0}}
    call(site, "hello", peer=peer)
    call(site, "join", peer=peer)
    assert peer.expected is None
    call(site, "begin", PARAMS, peer=peer, **ring)
    assert peer.expected == ("r", ["b"])
    call(site, "begin", PARAMS, peer=peer, call=2)  # a star has no neighbours
    assert peer.expected == ("r", [])
    call(site, "round", peer=peer, call=3, **ring)
    assert peer.expected == ("r", ["b"])
    call(site, "round", peer=peer, call=1)  # a late call
    assert peer.expected == ("r", ["b"])
    call(site, "finish", peer=peer, call=4, names=[], **ring)
    assert peer.expected == ("", [])


def test_a_message_to_neighbours_keeps_to_the_size_that_is_allowed(tmp_path):
    options = {"method": "dfedu", "neighbours": {"b": 1.0}}
    call(site_of(tmp_path / "site-1", DATA, "site-1"), "begin", PARAMS, **options)
    site, peer = site_of(tmp_path / "site-1", DATA, "site-1", largest=16), Nobody()
    assert "the message to its neighbours has 32 bytes" in call(site, "round", peer=peer, call=2, **options).error
    assert peer.sent == {}


def test_all_that_leaves_is_in_the_log_and_nothing_private(site):
    answer = call(site, "round", VIEWS, call=2)
    lines = [*Outbox(site.folder / "sent.jsonl").lines()]
    assert [line["task"] for line in lines] == ["begin", "round"]
    assert {*lines[-1]["vectors"]} == {*answer.vectors}
    assert not any("private" in json.dumps(line) for line in lines)


def test_the_log_has_the_settings_of_every_call_also_of_a_refused_one(tmp_path):
    site = site_of(tmp_path / "site-1", DATA, "site-1", methods=("scaffold", "dfedu"))
    call(site, "hello", terms=None)
    call(site, "begin", PARAMS)
    call(site, "round", VIEWS, call=2)
    assert "not allowed" in call(site, "join", method="fedavg").error
    ring = {"method": "dfedu", "neighbours": {"b": 1.0}}
    call(site, "round", call=3, **ring)
    box = Outbox(site.folder / "sent.jsonl")
    terms = {key: of["terms"] for key, of in box.terms().items()}
    lines = [(line["task"], terms[line["terms"]]["method"]["name"]) for line in box.lines() if "terms" in line]
    assert lines[:3] == [("begin", "scaffold"), ("round", "scaffold"), ("join", "fedavg")]
    assert {name for task, name in lines[3:]} == {"dfedu"}
    assert all(of["kind"] == Kind.of(DATA).to_dict() for of in terms.values())
    records = [line for line in box.path.read_text().splitlines() if '"record"' in line]
    assert len(records) == 1 + len(terms) == 4


def test_what_left_for_neighbours_has_the_terms_too(tmp_path):
    site, ring = site_of(tmp_path / "site-1", DATA, "site-1"), {"method": "dfedu", "neighbours": {"b": 1.0}}
    call(site, "begin", PARAMS, **ring)
    call(site, "round", call=2, **ring)
    box = Outbox(site.folder / "sent.jsonl")
    (digest,) = box.terms()
    assert [(line["task"], line["terms"]) for line in box.lines()] == [
        (task, digest) for task in ("begin", "exchange", "round")
    ]


def test_the_models_are_written_at_the_site(site):
    call(site, "round", VIEWS, call=2)
    done = call(site, "finish", VIEWS, call=3, round=1, used=0, names=["global"])
    assert done.header == {"finished": True}
    index = json.loads(next((site.folder / "models").glob("*/r/index.json")).read_text())
    assert [line["file"] for line in index["files"]] == ["global.safetensors"]


def test_a_transport_gives_up_and_goes_on(tmp_path):
    class Slow:
        def answer(self, message, caller, peer):
            time.sleep(0.5)
            return Message({"n": 1})

    transport = InProcess({"slow": Slow(), "site-1": site_of(tmp_path, DATA, "site-1")})
    messages = {name: Message({"task": "hello"}) for name in ("slow", "site-1", "stranger")}
    got = transport.call(0, messages, deadline=0.2)
    assert {*got.replies} == {"site-1"}
    assert got.missing == {"slow": "no answer within 0.2 s", "stranger": "not connected"}
    assert {*transport.call(1, messages, deadline=5).replies} == {"slow", "site-1"}
    transport.close()


def test_floors_bound_the_replies_of_a_run_below_the_study_s_own_limits(tmp_path):
    floors = Floors.none().model_copy(update={"again": 16, "evaluations": 7})
    study = study_of_run("scaffold")
    assert study.evaluations + study.again > floors.evaluations
    site = site_of(tmp_path / "site-1", DATA, "site-1", floors, kind=Site)
    call(site, "begin", PARAMS)
    assert not call(site, "round", VIEWS, call=2).error

    numbers = count(3)

    def evaluated(number):
        view = {name: vector + np.float32(number) for name, vector in VIEWS.items()}
        message = message_of(study, "evaluate", view, names=["global"], call=next(numbers))
        return site.answer(message, "hub", Nobody()).error

    assert [evaluated(number) for number in range(7)] == [""] * 7
    assert "floors.evaluations = 7, but evaluation 8 of a run; " in evaluated(7)
    assert evaluated(2) == ""  # the same again
    site = site_of(tmp_path / "site-1", DATA, "site-1", floors, kind=Site)  # after a restart
    assert "floors.evaluations = 7" in evaluated(8)


def test_a_study_with_more_repeats_than_the_floor_is_refused_before_it_begins(tmp_path):
    floors = Floors.none().model_copy(update={"again": 9})
    site = site_of(tmp_path / "site-1", DATA, "site-1", floors, kind=Site)
    site.trainer.call = None  # whoever computes now fails
    assert "floors.again = 9, but the hub may ask 16 times again" in call(site, "join").error


def test_numbers_beyond_the_floor_are_refused_of_the_hub_and_left_out_of_neighbours(tmp_path):
    floors = Floors.none().model_copy(update={"largest_value": 100.0})
    site = site_of(tmp_path / "a" / "site-1", DATA, "site-1", floors, kind=Site)
    large = {name: np.full_like(vector, 101) for name, vector in VIEWS.items()}
    call(site, "begin", PARAMS)
    for task in ("begin", "round", "evaluate", "finish"):
        answer = call(site, task, large, call=2, names=["global"])
        assert "floors.largest_value = 100, but 'view/" in answer.error, task
        assert answer.vectors == {}
    ring, near = site_of(tmp_path / "b" / "site-1", DATA, "site-1", floors, kind=Site), {"b": 1.0, "c": 1.0}
    call(ring, "begin", PARAMS, method="dfedu", neighbours=near)
    own = Nobody()
    call(ring, "round", peer=own, call=2, method="dfedu", neighbours=near)
    letter = own.sent["b"]
    wild = Message(letter.header, {name: np.full_like(vector, 101) for name, vector in letter.vectors.items()})
    met = call(ring, "round", peer=Nobody(b=wild, c=letter), call=3, method="dfedu", neighbours=near)
    assert {*met.header["missing"]} == {"b"}
    assert "floors.largest_value = 100, but " in met.header["missing"]["b"]


def test_a_revoked_neighbour_gets_and_gives_nothing(tmp_path):
    """Of a ring of four the hub has revoked one: the others mix without it, and the hub reads why."""
    data = data_of(sites=4)
    experiment = experiment_of([{"name": "dfedu", "graph": "ring"}], rounds=1, eval_every=1)
    hub = hub_of(tmp_path / "hub", experiment, data, deadline=6.0, starting=6.0)
    sites = sites_of(tmp_path / "sites", data)
    revoke_site(hub, "site-2")
    sites["site-1"]._revoked = frozenset(["site-2"])
    with pytest.raises(QuorumError, match="site-2: its certificate was revoked"):
        run_hub(hub, InProcess(sites))  # a run begins with all sites
    assert sites["site-1"]._revoked == sites["site-3"]._revoked == {"site-2"}
    for path in (hub / "revoked.json", hub / "idiolect.sqlite"):
        path.unlink()
    told = {}

    class Noting(InProcess):
        def call(self, round, messages, *, deadline):
            for name in ("site-1", "site-3"):
                sites[name]._revoked = frozenset(["site-2"])
            got = super().call(round, messages, deadline=deadline)
            told.update({name: r.header.get("missing") for name, r in got.replies.items() if "missing" in r.header})
            return got

    run_hub(hub, Noting(sites))
    assert told["site-1"]["site-2"] == told["site-3"]["site-2"] == "its certificate was revoked"
    sent = {name: {line["to"] for line in site.outbox.lines()} for name, site in sites.items()}
    assert sent["site-1"] == sent["site-3"] == {"hub", "site-4"}
