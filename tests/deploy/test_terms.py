"""What a hub says of a run is checked before anything computes."""

import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, digest_of_request
from idiolect.deploy.terms import TRANSPORT, Place, Terms, place_of, terms_of
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import data_of, experiment_of, hub_of, sites_of

TERMS = {
    "run": "a/b/seed0",
    "method": {"name": "fedavg"},
    "model": {"name": "mlr"},
    "kind": {},
    "seed": 1,
    "rounds": 2,
}
PLACE = {"id": 0, "clients": 3, "samples": 30, "cohort": 3.0}


def test_terms_and_places_come_back():
    terms = terms_of(TERMS)
    assert terms_of(terms.model_dump(mode="json")) == terms
    assert terms.method_name == "fedavg"
    assert place_of(PLACE).neighbours is None
    assert place_of({**PLACE, "neighbours": {"b": 0.5}}).neighbours == {"b": 0.5}


@pytest.mark.parametrize(
    ("read", "values", "told"),
    [
        (terms_of, None, "the hub's terms cannot be read: it"),
        (terms_of, {**TERMS, "rounds": 0}, "terms cannot be read: rounds"),
        (terms_of, {**TERMS, "code": "x"}, "terms cannot be read: code"),
        (terms_of, {key: value for key, value in TERMS.items() if key != "method"}, "terms cannot be read: method"),
        (place_of, {**PLACE, "id": -1}, "place cannot be read: id"),
        (place_of, {**PLACE, "neighbours": {"b": "x"}}, "place cannot be read: neighbours.b"),
    ],
)
def test_what_cannot_be_read_is_one_line(read, values, told):
    with pytest.raises(DataError, match=told) as error:
        read(values)
    assert "\n" not in str(error.value)


class Asked:
    """A transport that keeps the messages of the last round's call."""

    def __init__(self, inner):
        self.inner, self.sites, self.messages = inner, inner.sites, {}

    def call(self, round, messages, *, deadline):
        if any(message.header["task"] == "round" for message in messages.values()):
            self.messages = dict(messages)
        return self.inner.call(round, messages, deadline=deadline)


def changes(values):
    """These plain values, each time with one of them changed, at every depth."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from (((key, *where), {**values, key: inner}) for where, inner in changes(value))
        other = "other" if isinstance(value, str) else [value, 1] if isinstance(value, bool) else None
        other = value + 1 if other is None and isinstance(value, int | float) else other
        yield (key,), {**values, key: [value] if other is None else other}
        yield (key, "absent"), {name: kept for name, kept in values.items() if name != key}


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
