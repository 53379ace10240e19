"""Each floor refuses what is just below it, in one line, and lets pass what is just above it."""

import numpy as np
import pytest
from pydantic import ValidationError

from idiolect.core.errors import ConfigError, DataError
from idiolect.deploy.query import DescribeStudy
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.floors import Floors, is_refusal
from idiolect.deploy.terms import Place, Terms
from tests.deploy.test_terms import PLACE, TERMS

F = Floors()


def terms(**changes):
    return Terms.model_validate({**TERMS, **changes})


def method(**settings):
    return terms(method={"name": "fedavg", **settings})


def place(**changes):
    return Place.model_validate({**PLACE, **changes})


def values(number):
    return {"w": np.array([0, -number], np.float32), "n": np.array([2**30])}


def query(**changed):
    return DescribeStudy(**{"id": "d-00000000", "sites": ("a", "b", "s"), "table": {}, **changed})


CASES = [
    ("rounds", lambda: F.check_terms("s", terms(rounds=1001)), lambda: F.check_terms("s", terms(rounds=1000))),
    (
        "rows_per_step",
        lambda: F.check_terms("s", method(batch_size=9)),
        lambda: F.check_terms("s", method(batch_size=10)),
    ),
    (
        "rows_per_step",
        lambda: F.check_rows("s", "m", 99, (9, 99, None)),
        lambda: F.check_terms("s", method(batch_size=0)),
    ),
    ("rows_per_step", lambda: F.check_rows("s", "m", 99, None), lambda: Floors.none().check_rows("s", "m", 99, None)),
    (
        "rows_per_message",
        lambda: F.check_rows("s", "m", 99, (10, 49, None)),
        lambda: F.check_rows("s", "m", 99, (10, 50, None)),
    ),
    (
        "rows_per_message",
        lambda: F.check_rows("s", "m", 40, (10, 39, None)),
        lambda: F.check_rows("s", "m", 40, (10, 40, None)),
    ),
    ("count", lambda: F.check_rows("s", "m", 99, (99, 99, 4)), lambda: F.check_rows("s", "m", 99, (99, 99, 5))),
    ("rows", lambda: F.check_data("s", 9, None, 2), lambda: F.check_data("s", 10, None, 2)),
    ("classes", lambda: F.check_data("s", 99, None, 1), lambda: F.check_data("s", 99, None, 2)),
    (
        "count",
        lambda: F.check_data("s", 99, {"a": 95, "b": 4}, 2),
        lambda: F.check_data("s", 99, {"a": 94, "b": 5}, 2),
    ),
    ("solvable", lambda: F.check_rank("s", "m", 30, 30), lambda: F.check_rank("s", "m", 31, 30)),
    ("sites", lambda: F.check_place("s", place(clients=2)), lambda: F.check_place("s", place(clients=3))),
    ("cohort", lambda: F.check_place("s", place(cohort=2.9)), lambda: F.check_place("s", place(cohort=3))),
    ("answers", lambda: F.check_query("s", query(answers=4)), lambda: F.check_query("s", query(answers=3))),
    ("sites", lambda: F.check_query("s", query(sites=("a", "s"))), lambda: F.check_query("s", query())),
    ("models", lambda: F.check_models("s", 20), lambda: F.check_models("s", 19)),
    ("largest_value", lambda: F.check_values("s", values(1001), "x"), lambda: F.check_values("s", values(1000), "x")),
    ("largest_value", lambda: F.check_values("s", values(np.inf), "x"), lambda: F.check_values("s", {}, "x")),
    ("settings.rate", lambda: F.check_terms("s", method(rate=1e-7)), lambda: F.check_terms("s", method(rate=1e-6))),
    ("settings.rate", lambda: F.check_terms("s", method(rate=10.1)), lambda: F.check_terms("s", method(rate=None))),
    (
        "settings.local_steps",
        lambda: F.check_terms("s", method(local_steps=10001)),
        lambda: F.check_terms("s", method(local_steps=1)),
    ),
    ("count", lambda: F.check_split("s", "test", 4, None), lambda: F.check_split("s", "test", 5, None)),
    (
        "count",
        lambda: F.check_split("s", "test", 9, {"a": 5, "b": 4}),
        lambda: F.check_split("s", "test", 10, {"a": 5, "b": 5}),
    ),
]


@pytest.mark.parametrize(("field", "below", "above"), CASES)
def test_a_floor_refuses_what_is_just_below_it_and_nothing_above(field, below, above):
    above()
    with pytest.raises(DataError) as error:
        below()
    line = str(error.value)
    assert "\n" not in line
    assert is_refusal("s", line)
    limit = f"floors.{field}"
    assert line.startswith(f"site 's' refuses: {limit} = ")
    assert f"change {limit} in site.toml" in line
    assert "; " in line  # what to do


def test_every_floor_has_a_case():
    covered = {field.partition(".")[0] for field, *_ in CASES}
    assert covered | {"again", "evaluations"} == {*Floors.model_fields}


def test_replies_of_a_run_are_bounded_and_the_refusal_names_the_floor():
    own = Floors(again=3, evaluations=4)
    assert (own.most_replies("rounds", 10), own.most_replies("evaluations", 10)) == (13, 4)
    again, more = str(own.used_up("s", "rounds", 10)), str(own.used_up("s", "evaluations", 10))
    assert again.startswith("site 's' refuses: floors.again = 3, but reply 14 in a run of 10 rounds; ")
    assert more.startswith("site 's' refuses: floors.evaluations = 4, but evaluation 5 of a run; ")


def test_nothing_sent_needs_no_rows():
    F.check_rows("s", "m", 99, (0, 0, None))
    F.check_split("s", "test", 0, None)


def test_a_setting_of_one_method_goes_before_that_of_all():
    own = Floors(settings={"fedavg.rate": (0.1, 0.2), "mixture": (0, 1)})
    own.check_terms("s", method(rate=0.15, mixture=0.5))
    with pytest.raises(DataError, match=r"floors.settings.fedavg.rate = 0.1 to 0.2, but fedavg has rate = 0.5"):
        own.check_terms("s", method(rate=0.5))
    own.check_terms("s", terms(method={"name": "ditto", "rate": 0.5}))
    with pytest.raises(DataError, match=r"floors\.settings\.mixture"):
        own.check_terms("s", method(mixture=[0.5, 2.0]))
    with pytest.raises(ValidationError, match="name the smaller number first"):
        Floors(settings={"rate": (2, 1)})


def test_no_floors_refuse_nothing():
    none = Floors.none()
    none.check_terms("s", method(batch_size=1, rate=1e-20, local_steps=10**9))
    none.check_data("s", 1, {"a": 1}, 1)
    none.check_rows("s", "m", 1, (1, 1, 1))
    none.check_rank("s", "m", 1, 99)
    none.check_place("s", place(clients=1, cohort=1))
    assert none.most_replies("rounds", 10**9) > 10**15
    assert none.most_replies("evaluations", 1) > 10**15
    none.check_values("s", values(3e38), "x")


@pytest.mark.parametrize("floors", [Floors(), Floors.none(), Floors(settings={"ditto.rate": (0, 1)})])
def test_floors_come_back_from_the_file(floors, tmp_path):
    SiteConfig(name="a", data={}, floors=floors).save(tmp_path)
    assert SiteConfig.load(tmp_path).floors == floors


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[floors]\nrow = 3", "floors.row: Extra inputs"),
        ("[floors]\nrows = 0", "floors.rows: Input should be greater"),
        ("[floors.settings]\nrate = [2.0, 1.0]", "rate = \\[2, 1\\]: name the smaller number first"),
        ("[floors.settings]\nrate = 1.0", "floors.settings.rate"),
        ("[allow]\nrarest = 3", "allow.rarest is floors.count now: move it to \\[floors\\] as count"),
    ],
)
def test_a_wrong_table_is_one_line(text, told, tmp_path):
    (tmp_path / "site.toml").write_text(f'name = "a"\n[data]\n{text}\n')
    with pytest.raises(ConfigError, match=told) as error:
        SiteConfig.load(tmp_path)
    assert "\n" not in str(error.value)
