"""A site answers only what its administrator has approved: every field, place, round and message is compared."""

import json

import numpy as np
import pytest

from idiolect.deploy.messages import Message
from idiolect.deploy.site.approvals import approve, revoke
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.site.site import Site
from idiolect.deploy.study import Study
from idiolect.deploy.terms import Place, Terms
from tests.deploy.federation import changes, message_of, site_of, study_of_run
from tests.deploy.site.test_site import DATA, PARAMS, VIEW, VIEWS, Nobody, begun, call


@pytest.fixture
def site(tmp_path):
    return begun(tmp_path)


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
