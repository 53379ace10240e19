"""What a hub says of a run is checked before anything computes."""

import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, digest_of_request
from idiolect.deploy.terms import TRANSPORT, Place, Terms
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import changes, data_of, experiment_of, hub_of, sites_of

TERMS = {
    "run": "a/b/seed0",
    "method": {"name": "fedavg"},
    "model": {"name": "mlr"},
    "kind": {},
    "seed": 1,
    "rounds": 2,
}
PLACE = {"id": 0, "clients": 3, "samples": 30, "cohort": 3.0}


def asked_of(**header):
    return Request.of(Message({"task": "round", "terms": TERMS, "place": PLACE, **header}), "the hub's call")


def test_terms_and_places_come_back():
    terms = asked_of().its_terms
    assert asked_of(terms=terms.model_dump(mode="json")).its_terms == terms
    assert terms.method_name == "fedavg"
    assert asked_of().its_place.neighbours is None
    assert asked_of(place={**PLACE, "neighbours": {"b": 0.5}}).its_place.neighbours == {"b": 0.5}


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ({"terms": 3}, "terms"),
        ({"terms": {**TERMS, "rounds": 0}}, "terms.rounds"),
        ({"terms": {**TERMS, "code": "x"}}, "terms.code"),
        ({"terms": {key: value for key, value in TERMS.items() if key != "method"}}, "terms.method"),
        ({"place": {**PLACE, "id": -1}}, "place.id"),
        ({"place": {**PLACE, "neighbours": {"b": "x"}}}, "place.neighbours.b"),
    ],
)
def test_what_cannot_be_read_is_one_line(header, field):
    with pytest.raises(DataError, match=f"the hub's call cannot be read: {field}: ") as error:
        asked_of(**header)
    assert "\n" not in str(error.value)


class Asked:
    """A transport that keeps the messages of the last round's call."""

    def __init__(self, inner):
        self.inner, self.sites, self.messages = inner, inner.sites, {}

    def call(self, round, messages, *, deadline):
        if any(message.header["task"] == "round" for message in messages.values()):
            self.messages = dict(messages)
        return self.inner.call(round, messages, deadline=deadline)


def test_every_field_of_a_hub_s_call_but_how_it_travels_makes_another_request(tmp_path):
    """The hub's own message, so that a field which it gets one day is in this test, too."""
    data, methods = data_of(), ["scaffold", {"name": "dfedu", "graph": "ring"}]
    experiment = experiment_of(methods, rounds=1, eval_every=1)
    sites = sites_of(tmp_path, data)
    asked = Asked(InProcess(sites))
    run_hub(hub_of(tmp_path / "hub", experiment, data), asked)
    message = asked.messages["site-1"]
    fields = {where for where, _ in changes(message.header)}
    assert {("terms", name) for name in Terms.model_fields} | {
        ("place", name) for name in Place.model_fields
    } <= fields
    assert {("round",), ("used",), ("place", "neighbours", "site-2"), ("terms", "method", "graph")} <= fields
    whole = digest_of_request(message, TRANSPORT)
    same = {
        where[0]
        for where, head in changes(message.header)
        if digest_of_request(Message(head, message.vectors), TRANSPORT) == whole
    }
    assert same == {"job", "call", "seconds"} == {*TRANSPORT}
