"""Moments of groups, pooled, are those of all numbers."""

import json

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.schema.summary import Moments, TableSummary, listing, pooled
from tests.deploy.schema.tables import hospitals, summaries


def of(values):
    return Moments(count=len(values), mean=values.mean(), m2=((values - values.mean()) ** 2).sum())


@pytest.mark.parametrize("origin", [0.0, 1e12, -3e12])
def test_pooled_is_of_all_numbers_also_far_from_zero(origin):
    values = origin + np.random.default_rng(0).integers(0, 100, 60).astype(float)
    found = pooled([of(part) for part in np.split(values, [1, 20, 55])])
    exact = np.array([value - origin for value in values])
    assert found.count == 60
    assert found.mean - origin == pytest.approx(exact.mean(), abs=max(abs(origin), 1) * 1e-15)
    assert found.m2 == pytest.approx(((exact - exact.mean()) ** 2).sum(), rel=1e-6)


def test_constant_only_if_all_are_and_alike():
    one, other = (Moments(count=3, mean=mean, m2=0.0, constant=True) for mean in (0.1, 0.2))
    assert pooled([one, one, one]) == Moments(count=9, mean=0.1, m2=0.0, constant=True)
    apart = pooled([one, other])
    assert (apart.constant, apart.m2) == (False, pytest.approx(6 * 0.05**2))


def test_it_is_read_back_as_it_was_written():
    for told in summaries(hospitals(label="amount")).values():
        assert TableSummary.from_dict(json.loads(json.dumps(told.to_dict()))) == told


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
        TableSummary.from_dict({**values, **change}, "site 'west'")
    assert "\n" not in str(error.value)


def test_a_mean_that_is_no_number_is_refused():
    values = summaries(hospitals())["west"].to_dict()
    values["columns"][0]["readings"]["number"]["moments"]["mean"] = float("nan")
    with pytest.raises(DataError, match="finite number"):
        TableSummary.from_dict(values)


def leaves(value):
    """Every text and number of plain values, keys that are words of the table too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, int) and not isinstance(inner, bool) and key not in COUNTS:
                yield key
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif value and not isinstance(value, bool):
        yield value


COUNTS = ["rows", "minimum", "count", "missing", "distinct", "withheld_words", "withheld_rows", "version"]


@pytest.mark.parametrize("label", ["words", "amount", "classes"])
def test_every_number_and_every_word_is_listed(label):
    for told in summaries(hospitals(label=label), categorical=["code"], keep=["running"]).values():
        lines = listing(told)
        assert len(lines) == 3 + len(told.columns)
        for line, column in zip(lines[3:], told.columns, strict=True):
            values = column.model_dump(mode="json", exclude={"readings"})
            for reading in column.readings.values():
                one = reading.model_dump(mode="json")
                if one["moments"]["constant"]:
                    one["moments"].pop("m2")
                assert all(str(leaf) in line for leaf in leaves(one)), (line, one)
            assert all(str(leaf) in line for leaf in leaves(values)), (line, values)
        values = told.label.model_dump(mode="json")
        assert all(str(leaf) in lines[2] for leaf in leaves(values)), lines[2]
        assert told.site in lines[0]
        assert str(told.rows) in lines[0]


def test_what_is_withheld_is_said():
    lines = listing(summaries(hospitals(), minimum=200)["west"])
    assert any("'age'" in line and "too few values: nothing else is reported" in line for line in lines)
    assert any("'sex'" in line and "no word is reported; not reported: 2 rare words in" in line for line in lines)
