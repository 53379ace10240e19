"""Headers: what a type writes is what it reads, and the rest is refused with a reason."""

import json

import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.headers import (
    Begun,
    Finished,
    Greeting,
    Header,
    Joined,
    Looked,
    Met,
    Request,
    Scored,
    Summed,
    Written,
)
from idiolect.deploy.messages import Message, digest_of_request
from idiolect.deploy.terms import TRANSPORT, Place, Terms

TERMS = Terms(run="a/b", method={"name": "fedavg"}, model={"name": "mlr"}, kind={"k": [1]}, seed=3, rounds=2)
PLACE = Place(id=1, clients=3, samples=30, cohort=3, neighbours={"b": 0.5})
SCORE = {"count": 4, "loss": 0.5, "values": {"accuracy": [3.0, 4.0]}}
HEADERS = [
    (Request, {"task": "hello"}),
    (Request, {"task": "summary", "table": {"client": "who", "ignore": ["x"]}}),
    (
        Request,
        {
            "task": "round",
            "run": "a/b",
            "terms": TERMS.model_dump(mode="json"),
            "place": PLACE.model_dump(mode="json"),
            "used": -1,
            "names": ["global"],
            "job": 5,
            "call": 7,
            "round": 2,
            "seconds": 54.0,
        },
    ),
    (Greeting, {"name": "a", "protocol": 1, "version": "0.1.0"}),
    (Joined, {"samples": {"train": 3, "test": 0}}),
    (Summed, {"summary": {"site": "a", "columns": []}}),
    (Begun, {"begun": False}),
    (Met, {}),
    (Met, {"exchange_seconds": 0.5, "exchanged": [3, 4], "missing": {"b": "late"}}),
    (Scored, {"scores": {}}),
    (Scored, {"scores": {"global": {"test": SCORE}}}),
    (Finished, {"finished": True}),
    (Written, {"written": ["global.safetensors"]}),
    (Looked, {"data": "12 rows", "resident": 1000}),
]


@pytest.mark.parametrize(("kind", "values"), HEADERS)
def test_a_header_comes_back_with_the_fields_that_are_set(kind: type[Header], values):
    header = kind.of(Message(json.loads(json.dumps(values))), "it")
    assert json.loads(json.dumps(header.message().header)) == values
    assert kind.of(header.message(), "it") == header


@pytest.mark.parametrize(
    ("kind", "values", "error"),
    [
        (Request, {}, "it cannot be read: task: Field required"),
        (Request, {"task": "round", "round": "1"}, "round: Input should be a valid integer"),
        (Request, {"task": "round", "job": True}, "job: Input should be a valid integer"),
        (Request, {"task": "round", "used": -2}, "used: Input should be greater than or equal to -1"),
        (Request, {"task": "round", "table": [1]}, "table: Input should be a valid dictionary"),
        (Request, {"task": "round", "colour": "red"}, "colour: Extra inputs are not permitted"),
        (Greeting, {"name": "a", "version": "1"}, "protocol: Field required"),
        (Joined, {"samples": {"train": -1}}, r"samples\.train: Input should be greater than or equal to 0"),
        (Joined, {"samples": {"train": True}}, r"samples\.train: Input should be a valid integer"),
        (Joined, {"samples": 3}, "samples: Input should be a valid dictionary"),
        (Met, {"exchanged": [1]}, r"exchanged\.1: Field required"),
        (Scored, {"scores": "good"}, "scores: Input should be a valid dictionary"),
        (
            Scored,
            {"scores": {"m": {"test": {**SCORE, "loss": float("nan")}}}},
            "loss: Input should be a finite number",
        ),
        (Scored, {"scores": {"m": {"test": {**SCORE, "count": 1.5}}}}, "count: Input should be a valid integer"),
        (
            Scored,
            {"scores": {"m": {"test": {**SCORE, "values": {"a": [1, "2"]}}}}},
            "values.a.1: Input should be a val",
        ),
        (Looked, {"data": "x", "resident": -1}, "resident: "),
    ],
)
def test_what_cannot_be_read_names_the_field(kind: type[Header], values, error):
    with pytest.raises(DataError, match=error):
        kind.of(Message(values), "it")


def test_a_greeting_of_another_version_may_say_more():
    assert Greeting.of(Message({"name": "a", "protocol": 9, "version": "2", "new": 1}), "it").protocol == 9


def test_a_call_says_what_it_lacks():
    request = Request(task="round")
    with pytest.raises(DataError, match="the call 'round' names no terms of a run"):
        _ = request.its_terms
    with pytest.raises(DataError, match="the call 'round' names no place of the site"):
        _ = request.its_place


def test_a_trainer_gets_what_determines_its_work_and_no_more():
    request = Request(task="round", run="a/b", terms=TERMS, place=PLACE, used=1, job=3, call=4, round=2, seconds=9.0)
    passed = request.passed_on("local").message().header
    assert passed == {
        "task": "local",
        "terms": TERMS.model_dump(mode="json", exclude_unset=True),
        "place": PLACE.model_dump(mode="json"),
        "round": 2,
    }
    assert request.model_copy(update={"names": ("a",)}).passed_on("models").names == ("a",)
    assert Request(task="hello").passed_on("look").message().header == {"task": "look"}


def test_a_request_s_digest_covers_its_header_but_how_it_travels():
    request = Request(task="round", run="a/b", terms=TERMS, place=PLACE, used=1, round=2)
    whole = digest_of_request(request.message(), TRANSPORT)
    again = request.model_copy(update={"job": 8, "call": 9, "seconds": 3.0})
    assert digest_of_request(again.message(), TRANSPORT) == whole
    assert digest_of_request(Request.of(again.message(), "it").message(), TRANSPORT) == whole
    for field, value in {
        "used": 2,
        "round": 3,
        "names": ("a",),
        "terms": TERMS.model_copy(update={"seed": 4}),
    }.items():
        assert digest_of_request(request.model_copy(update={field: value}).message(), TRANSPORT) != whole
