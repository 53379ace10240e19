"""A summary as plain values, and foreign values refused."""

import json

import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.schema.summary import Summary
from tests.deploy.schema.tables import hospitals, summaries


def test_it_is_read_back_as_it_was_written():
    for told in summaries(hospitals(label="amount")).values():
        assert Summary.from_dict(json.loads(json.dumps(told.to_dict()))) == told


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 0}, "rows: Input should be greater"),
        ({"rows": "many"}, "rows: Input should be a valid integer"),
        ({"label": {"name": "label"}}, "label.stored: Field required"),
        ({"more": 1}, "more: Extra inputs"),
        ({"version": 2}, "version"),
        ({"columns": [{"name": "x", "stored": "number", "count": -1, "missing": 0}]}, "columns.0.count"),
    ],
)
def test_what_is_no_summary_is_refused_in_one_line(change, message):
    values = summaries(hospitals())["west"].to_dict()
    with pytest.raises(DataError, match=f"site 'west' is no summary of this version: {message}") as error:
        Summary.from_dict({**values, **change}, "site 'west'")
    assert "\n" not in str(error.value)


def test_a_mean_that_is_no_number_is_refused():
    values = summaries(hospitals())["west"].to_dict()
    values["columns"][0]["readings"]["number"]["moments"]["mean"] = float("nan")
    with pytest.raises(DataError, match="finite number"):
        Summary.from_dict(values)
