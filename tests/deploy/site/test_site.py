"""A site as the hub and its neighbours meet it."""

import json
import time
from functools import partial

import numpy as np
import pytest

from idiolect.algorithms.fedu import DFedU
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message, read_message
from idiolect.deploy.site.approvals import Approvals, approve, revoke
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.site.site import Site
from idiolect.deploy.study import Study
from idiolect.deploy.terms import PROTOCOL, VERSION, Place, Terms
from idiolect.deploy.transport import InProcess, Replies
from tests.deploy.federation import changes, data_of, kept_file, message_of, site_of, study_of_run

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


@pytest.fixture
def site(tmp_path):
    made = site_of(tmp_path / "site-1", DATA, "site-1", kind=Site)
    assert call(made, "begin", PARAMS, call=1).header == {"begun": True}
    return made


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


OTHER = {
    "run": "r2", "method": {"name": "scaffold", "batch_size": 1}, "model": {"name": "mlp"}, "kind": {}, "seed": 1,
    "rounds": 10, "cohort": 2.0, "sampling": "binomial", "metric": "accuracy", "splits": ("train",),
    "study": "other-12345678", "approved": "0" * 64,
}  # fmt: skip
ELSEWHERE = {
    "id": {"id": 1}, "clients": {"clients": 2, "cohort": 2.0}, "samples": {"samples": 37}, "cohort": {"cohort": 2.0},
    "neighbours": {"neighbours": {"site-2": 1.0}},
}  # fmt: skip
NAMED = {"approved": "digest"}
"""How a refusal calls a field that it does not call by its name."""


def refused(site, task, message):
    """The site's answer to a call that it refuses: one line, in its log, and nothing computed or kept."""
    before = {path: path.read_bytes() for path in sorted((site.folder / "state").rglob("*.msg"))}
    site.trainer.call, compute = None, site.trainer.call
    answer = site.answer(message, "hub", Nobody())
    site.trainer.call = compute
    assert {path: path.read_bytes() for path in sorted((site.folder / "state").rglob("*.msg"))} == before
    assert (answer.error.count("\n"), answer.vectors, [*answer.header]) == (0, {}, ["error"]), task
    assert answer.error.startswith("site 'site-1' refuses: study ")
    assert [*Outbox(site.folder / "sent.jsonl").lines()][-1]["header"]["error"] == answer.error
    return answer.error


@pytest.mark.parametrize("task", ["hello", "join", "begin", "round", "evaluate", "finish"])
@pytest.mark.parametrize("field", Terms.model_fields)
def test_terms_that_differ_in_any_field_are_refused(site, field, task, caplog):
    message = message_of(study_of_run("scaffold"), task, VIEWS, call=2)
    terms = {**message.header["terms"], field: OTHER[field]}
    error = refused(site, task, Message({**message.header, "terms": terms}, VIEWS))
    assert f" {NAMED.get(field, field)}" in error.partition("approved ")[0]
    assert "approved " in error
    assert ", asked " in error
    assert error.rpartition("; ")[2].startswith(("ask the hub's administrator", "get study.json", "the study has"))
    assert caplog.messages == [error]


@pytest.mark.parametrize("field", Place.model_fields)
def test_a_place_that_differs_in_any_field_is_refused(site, field):
    message = message_of(study_of_run("scaffold"), "round", VIEWS, call=2)
    place = {**message.header["place"], **ELSEWHERE[field]}
    error = refused(site, "round", Message({**message.header, "place": place}, VIEWS))
    assert f"place.{field}: approved " in error
    assert not site.answer(message, "hub", Nobody()).error


def test_terms_that_differ_at_any_depth_are_refused(site):
    """Also 1 in place of true, 20.0 in place of 20, and a setting that is left out or added."""
    message, seen = message_of(study_of_run("scaffold"), "round", VIEWS, call=2), set()
    terms = message.header["terms"]
    altered = [*changes(terms), (("method", "new"), {**terms, "method": {**terms["method"], "new": 1}})]
    altered += [(("method", "20.0"), {**terms, "method": {**terms["method"], "batch_size": 20.0}})]
    for where, other in altered:
        if where in {("cohort", "absent"), ("sampling", "absent"), ("splits", "absent")}:
            continue  # the approved values are those of an absent field
        answer = site.answer(Message({**message.header, "terms": other}, VIEWS), "hub", Nobody())
        assert answer.error, where
        seen.add(where)
    assert {("method", "rate"), ("method", "batch_size", "absent"), ("kind", "classes"), ("seed",)} <= seen
    assert not site.answer(message, "hub", Nobody()).error


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ({"round": 9}, "round: approved at most 9, asked 10"),
        ({"run": "q"}, "run: approved r, asked q"),
    ],
)
def test_a_round_beyond_the_study_is_refused(site, header, field):
    assert field in refused(site, "round", message_of(study_of_run("scaffold"), "round", VIEWS, call=2, **header))


@pytest.mark.parametrize(
    ("place", "field"),
    [
        ({"neighbours": {"b": 1.0, "x": 1.0}}, "place.neighbours.x: approved nothing, asked 1.0"),
        ({"neighbours": {"b": 2.0}}, "place.neighbours.b: approved 1.0, asked 2.0"),
        ({"neighbours": {}}, "place.neighbours.b: approved 1.0, asked nothing"),
        ({"neighbours": None}, "place.neighbours: approved neighbours, asked a hub that aggregates"),
    ],
)
def test_other_neighbours_are_refused(tmp_path, place, field):
    site, near = site_of(tmp_path / "site-1", DATA, "site-1", kind=Site), {"b": 1.0}
    call(site, "begin", PARAMS, method="dfedu", neighbours=near)
    message = message_of(study_of_run("dfedu", near), "round", {}, near, call=2)
    assert field in refused(site, "round", Message({**message.header, "place": {**message.header["place"], **place}}))


def test_in_a_study_that_sites_have_joined_a_place_must_be_possible(site):
    study = study_of_run("scaffold", late=("site-4",))
    approve(site.folder, "site-1", study)
    for place, told in (
        ({"clients": 5, "cohort": 5.0}, "place.clients: approved at most 4 sites, asked 5"),
        ({"id": 3}, "place.id: approved 0, asked 3"),
        ({"clients": 2, "cohort": 2.0}, "place.cohort: approved at least 3, asked 2"),
        ({"samples": 2}, "place.samples: approved at least a row per site, asked 2"),
    ):
        message = message_of(study, "round", VIEWS, call=2)
        assert told in refused(
            site, "round", Message({**message.header, "place": {**message.header["place"], **place}})
        )


def test_another_hub_s_study_with_the_same_id_is_refused(site):
    study = study_of_run("scaffold")
    other = Study.model_validate({**study.model_dump(), "experiment": {"name": "another hub's"}})
    message = message_of(other, "round", VIEWS, call=2)
    error = refused(site, "round", message)
    assert f"digest: approved {study.digest[:12]}, asked {other.digest[:12]}; the study has changed" in error


def test_a_model_for_each_round_and_a_few_again_but_no_more(site):
    """A hub that never says that it used an answer could ask for round 1 with ever new models."""
    study = study_of_run("scaffold")
    errors = []
    for number in range(study.rounds + study.again + 2):
        vectors = {name: vector + np.float32(number) for name, vector in VIEWS.items()}
        errors.append(site.answer(message_of(study, "round", vectors, call=number + 2), "hub", Nobody()).error)
    assert errors[:-2] == [""] * (study.rounds + study.again)
    assert all(
        "rounds: approved 9, and 10 asked again with another model, asked another one" in e for e in errors[-2:]
    )
    again = site.answer(message_of(study, "round", VIEWS, call=99), "hub", Nobody())
    assert not again.error  # one that was answered before


def test_no_more_evaluations_than_approved(tmp_path):
    study, site = study_of_run("fedavg"), site_of(tmp_path / "site-1", DATA, "site-1", kind=Site)
    call(site, "begin", PARAMS, method="fedavg")
    errors = []
    for number in range(study.evaluations + study.again + 1):
        view = {name: vector + np.float32(number) for name, vector in VIEW.items()}
        for _ in range(2):
            message = message_of(study, "evaluate", view, names=["global"], call=number + 2)
            errors.append(site.answer(message, "hub", Nobody()).error)
    assert errors[:-2] == [""] * (len(errors) - 2)
    assert all(f"evaluations: approved {study.evaluations}, and 10" in error for error in errors[-2:])


def test_a_revoked_study_is_refused_also_while_a_round_is_trained(site):
    study, compute = study_of_run("scaffold"), site.trainer.call

    def slow(*given):
        answer = compute(*given)
        revoke(site.folder, study.id)
        return answer

    site.trainer.call = slow
    answer = site.answer(message_of(study, "round", VIEWS, call=2), "hub", Nobody())
    assert "study: approved none: revoked on " in answer.error
    assert answer.vectors == {}
    site.trainer.call = compute
    assert "revoked on" in refused(site, "evaluate", message_of(study, "evaluate", VIEWS, call=3))
    approve(site.folder, "site-1", study)
    assert not site.answer(message_of(study, "round", VIEWS, call=4), "hub", Nobody()).error


def test_nothing_is_sent_to_neighbours_after_a_revocation(tmp_path):
    site, near = site_of(tmp_path / "site-1", DATA, "site-1", kind=Site), {"b": 1.0}
    call(site, "begin", PARAMS, method="dfedu", neighbours=near)
    study, compute, peer = study_of_run("dfedu", near), site.trainer.call, Nobody()
    site.trainer.call = lambda *given: (compute(*given), revoke(site.folder, study.id))[0]
    assert "revoked" in site.answer(message_of(study, "round", {}, near, call=2), "hub", peer).error
    assert peer.sent == {}


@pytest.mark.parametrize("content", [b"", b"{", b'{"approved": 1}', b'{"version": 2, "approved": []}', None])
def test_a_damaged_file_of_approvals_answers_no_call(site, content):
    path = site.folder / "approvals.json"
    if content is None:  # a study that does not match its digest
        values = json.loads(path.read_bytes())
        values["approved"][0]["study"]["again"] = 999
        content = json.dumps(values).encode()
    path.write_bytes(content)
    answer = site.answer(message_of(study_of_run("scaffold"), "round", VIEWS, call=2), "hub", Nobody())
    assert answer.error.startswith("approvals.json cannot be read (")
    assert "so no call is answered: restore it from a backup" in answer.error
    assert answer.vectors == {}


def test_the_kind_is_fixed_by_the_first_call_that_is_answered(tmp_path):
    site = site_of(tmp_path / "site-1", DATA, "site-1", kind=Site)
    open_ = Study.model_validate({**study_of_run("scaffold").model_dump(), "kind": None})
    approve(site.folder, "site-1", open_)
    first = message_of(open_, "join", place=None)
    renamed = {**first.header["terms"]["kind"], "name": "another"}
    other = Message({**first.header, "terms": {**first.header["terms"], "kind": renamed}})
    assert not site.answer(first, "hub", Nobody()).error
    assert "kind: approved " in refused(site, "join", other)
    approve(site.folder, "site-1", open_)  # the administrator lets the hub agree anew
    assert not site.answer(other, "hub", Nobody()).error


def test_a_message_with_more_than_the_study_says_is_not_sent(site):
    study, compute = study_of_run("scaffold"), site.trainer.call
    extra = {"message/params/rows": np.zeros((16, 3), np.float32)}
    site.trainer.call = lambda *given: Message({}, {**compute(*given).vectors, **extra})
    answer = site.answer(message_of(study, "round", VIEWS, call=2), "hub", Nobody())
    assert "travels.params/rows: approved nothing, asked " in answer.error


def test_sums_of_columns_need_an_approved_study_too(tmp_path):
    site = site_of(tmp_path / "site-1", DATA, "site-1", kind=Site, summaries=True)
    study = Study.model_validate({**study_of_run("scaffold").model_dump(), "kind": None, "table": {"label": "y"}})

    def summary(table, **more):
        head = {"task": "summary", "study": study.id, "approved": study.digest, "table": table, **more}
        return Message(head)

    assert "no study with this id" in refused(site, "summary", summary({"label": "y"}))
    approve(site.folder, "site-1", study)
    assert "a call without a study" in refused(site, "summary", summary({"label": "y"}, study=""))
    assert 'table.label: approved "y", asked "age"' in refused(site, "summary", summary({"label": "age"}))
    assert "table.ignore: approved nothing" in refused(site, "summary", summary({"label": "y", "ignore": ["x"]}))
    answer = site.answer(summary({"label": "y"}), "hub", Nobody())
    assert answer.error == "the site's data are no table, so no schema can be agreed on"  # it was not refused
    closed = study_of_run("scaffold")
    approve(site.folder, "site-1", closed)
    message = Message({"task": "summary", "study": closed.id, "approved": closed.digest})
    assert "summary: approved a study with a schema" in refused(site, "summary", message)
