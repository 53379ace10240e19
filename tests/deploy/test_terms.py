"""What a hub says of a run is checked before anything computes."""

import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.terms import place_of, terms_of

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
