"""A reading that is possible at every site."""

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import from_table
from idiolect.deploy.schema.agree import agree, agree_label, choose, possible, the_same
from idiolect.deploy.schema.summarise import summarise
from idiolect.deploy.schema.summary import ColumnSummary, Moments, Reading, TableSummary, WordCounts
from tests.deploy.schema.tables import hospitals, summaries


def text(*readings):
    held = {name: Reading(moments=Moments(count=5, mean=float(k), m2=1.0)) for k, name in enumerate(readings)}
    return ColumnSummary(name="c", stored="text", count=5, missing=0, readings=held)


EMPTY = ColumnSummary(name="c", stored="number", count=0, missing=5)
WORDS = ColumnSummary(name="c", stored="text", count=5, missing=0, words=WordCounts(named={"a": 5}))
DAYS = ColumnSummary(name="c", stored="date", count=5, missing=0, readings=text("date").readings)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ([text("number", "decimal comma"), text("decimal comma")], "decimal comma"),
        ([text("date d/m/y", "date m/d/y"), text("date m/d/y")], "date m/d/y"),
        ([text("date d/m/y"), DAYS], "date d/m/y"),
        ([DAYS, EMPTY], "date"),
        ([WORDS, EMPTY], None),
        ([EMPTY, EMPTY], "number"),
    ],
)
def test_the_first_that_all_can(columns, found):
    held = dict(zip("abc", columns, strict=False))
    assert choose("c", held, dict.fromkeys(held, False)) == found


def test_semicolons_decide_what_a_comma_means():
    held = {"a": text("number", "decimal comma"), "b": text("number", "decimal comma")}
    assert choose("c", held, {"a": True, "b": True}) == "decimal comma"
    assert choose("c", held, {"a": False, "b": False}) == "number"


def test_three_that_agree_by_pairs_only_are_refused():
    held = {"a": text("date d/m/y", "date m/d/y"), "b": text("date d/m/y"), "c": text("date m/d/y")}
    with pytest.raises(DataError, match="as date d/m/y at site 'b' but as date m/d/y at site 'c'; write dates as"):
        choose("x", held, dict.fromkeys(held, False))


def test_empty_fits_all():
    assert possible(EMPTY) == possible(EMPTY.model_copy(update={"stored": "text"}))


def test_one_value_for_all():
    assert the_same("label", {"a": "y", "b": "y"}, "label=") == "y"
    with pytest.raises(DataError, match="the label is 'y' at site 'a' but 'z' at site 'b'"):
        the_same("label", {"a": "y", "b": "z"}, "label=")


def told(task=None, **labels):
    """Summaries of sites with these labels, all of training rows."""
    return {
        site: summarise(
            pd.DataFrame({"x": range(len(y)), "label": y, "split": "train"}), site=site, task=task, minimum=1
        )
        for site, y in labels.items()
    }


def test_classes_are_the_union_in_order_of_value_and_a_site_without_one_is_noted():
    label, notes = agree_label(told(b=[10, 2, 2], a=[1, 2]))
    assert (label.classes, label.type) == (("1", "2", "10"), "integer")
    assert notes[0] == "label 'label': site 'b' has no training row of '1'"
    assert agree_label(told(a=["b", "a"], b=["c", "a"]))[0].classes == ("a", "b", "c")
    assert agree_label(told(a=[True, False], b=[True, True]))[0].type == "boolean"


def test_the_number_of_distinct_values_of_all_sites_decides_the_task():
    assert agree_label(told(a=[*range(60)] * 2, b=[*range(100)] * 2))[0].kind == "classes"
    assert agree_label(told(a=[*range(60)] * 2, b=[*range(60, 120)] * 2))[0].kind == "target"
    assert agree_label(told(a=[0.0, 1.0, 1.0], b=[2.0, 2.0]))[0].classes == ("0", "1", "2")
    assert agree_label(told(a=[0.0, 1.0, 1.0], b=[2.5, 2.0]))[0].kind == "target"


def test_whole_numbers_with_many_values_are_asked_about_unless_the_task_is_named():
    asked = "label 'label' has 30 different whole numbers, read as classes"
    many = {"a": [*range(30)] * 2, "b": [*range(20)] * 2}
    assert any(note.startswith(asked) for note in agree_label(told(**many))[1])
    assert not any("amount" in note for note in agree_label(told(task="classification", **many))[1])
    assert not any("amount" in note for note in agree_label(told(a=[*range(20)] * 2))[1])


def test_one_class_alone_is_refused():
    with pytest.raises(DataError, match="classification needs two classes"):
        agree_label(told(a=["x", "x"], b=["x"]))


def test_a_constant_target_keeps_its_units():
    label, _ = agree_label(told(task="regression", a=[0.1] * 3, b=[0.1] * 4))
    assert (label.mean, label.scale) == (0.1, 1.0)


def same(value, other):
    """Equal: texts exactly, numbers to 1e-6."""
    if isinstance(value, dict):
        assert value.keys() == other.keys()
        for key in value:
            same(value[key], other[key])
    elif isinstance(value, list):
        assert len(value) == len(other)
        for one, two in zip(value, other, strict=True):
            same(one, two)
    elif isinstance(value, float):
        assert value == pytest.approx(other, rel=1e-6, abs=1e-9)
    else:
        assert value == other


def check(table, *, minimum=1, **options):
    """The agreed schema, after it was compared with the pooled one."""
    pooled = from_table(table, missing="mean", **options).schema
    standardise = options.pop("standardise", True)
    told = {
        site: TableSummary.from_dict(one.to_dict())
        for site, one in summaries(table, minimum=minimum, **options).items()
    }
    schema, _ = agree(told, standardise=standardise)
    same(schema.to_dict(), pooled.to_dict())
    return schema


@pytest.mark.parametrize("label", ["words", "classes", "whole floats", "many", "amount", "true", "comma"])
def test_it_is_the_pooled_schema_for_every_kind_of_label(label):
    schema = check(hospitals(label=label), categorical=["code"], ignore=["big"])
    assert schema.label.kind == ("target" if label in ("many", "amount", "comma") else "classes")


def test_every_kind_of_column_is_there():
    schema = check(hospitals())
    kinds = {column.name: getattr(column, "read_as", column.kind) for column in schema.columns}
    wanted = {"text": "number", "comma": "decimal comma", "day": "date", "european": "date d.m.y", "stay": "duration"}
    wanted |= {
        "sex": "category",
        "same": "left out",
        "empty": "left out",
        "number": "left out",
        "running": "left out",
    }
    assert kinds | wanted == kinds
    assert next(column.missing for column in schema.columns if column.kind == "number") == "mean"


@pytest.mark.parametrize("options", [{"standardise": False}, {"keep": ["number", "running"]}, {"task": "regression"}])
def test_it_is_the_pooled_schema_with_options(options):
    check(hospitals(label="amount"), **options)


def test_what_is_scaled_is_scaled_alike():
    table = hospitals()
    schema, _ = agree(summaries(table, minimum=1))
    data = from_table(table, missing="mean")
    np.testing.assert_allclose(schema.encode(table), data.schema.encode(table), atol=1e-5)


@pytest.mark.parametrize("name", ["wine", "diabetes", "breast_cancer"])
def test_it_is_the_pooled_schema_of_a_real_table(name):
    sets = pytest.importorskip("sklearn.datasets")
    table = getattr(sets, f"load_{name}")(as_frame=True).frame.rename(columns={"target": "label"})
    rng = np.random.default_rng(0)
    table = table.mask(rng.random(table.shape) < 0.1).assign(label=table["label"])
    table["client"] = rng.choice(["a", "b", "c", "d"], len(table), p=[0.4, 0.3, 0.2, 0.1])
    table["split"] = rng.choice(["train", "validation", "test"], len(table), p=[0.6, 0.1, 0.3])
    check(table.sort_values("client", kind="stable"))


def test_a_mean_far_from_zero_loses_nothing():
    table = hospitals()
    table["big"] = 1e12 + table["count"] + 0.25
    schema = check(table)
    found = next(column for column in schema.columns if column.name == "big")
    assert found.scale == pytest.approx(table["count"][table["split"] == "train"].std(ddof=0), rel=1e-6)


def test_a_column_may_be_empty_at_one_site_and_a_word_at_one_only():
    table = hospitals()
    table.loc[table["client"] == "west", ["age", "ward"]] = None
    check(table)
    table["age"] = table["age"].astype(float)
    check(table)


def test_only_the_most_frequent_categories_have_a_feature():
    table = hospitals(rows=400)
    table["ward"] = [f"w{k % 230:03}" for k in range(len(table))]
    assert sum(feature.startswith("ward=") for feature in check(table).features) == 200


def test_rare_words_stay_and_have_no_feature():
    table = hospitals()
    table.loc[np.flatnonzero((table["client"] == "north") & (table["split"] == "train"))[:2], "ward"] = "secret"
    schema, notes = agree(summaries(table, minimum=5))
    assert "ward=secret" not in schema.features
    assert any("ward" in note and "rows have words too rare" in note for note in notes)
    check(table, minimum=1)


def test_too_few_values_count_for_nothing():
    table = hospitals()
    west = table.index[(table["client"] == "west") & (table["split"] == "train")]
    table.loc[west[2:], "age"] = np.nan
    schema, notes = agree(summaries(table, minimum=5))
    assert any("'age': site 'west' has too few values" in note for note in notes)
    others = table[(table["client"] != "west") & (table["split"] == "train")]
    assert schema.columns[0].fill == pytest.approx(others["age"].mean(), rel=1e-12)


def changed(column, values):
    """The summaries if the column is another one at the site `south`."""
    table = hospitals()
    told = summaries(table)
    own = table[table["client"] == "south"].reset_index(drop=True)
    own = own.drop(columns=column) if values is None else own.assign(**{column: np.resize(values, len(own))})
    return told | summaries(own)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("age", None, "site 'south' has no column 'age', which site 'north' has.*ignore="),
        (
            "age",
            ["old", "young"],
            "'age' is read as number at site 'north' but as words at site 'south'.*categorical=",
        ),
        ("day", [1.5, 2.5], "'day' is read as date at site 'north' but as number at site 'south'.*alike"),
        ("european", ["1/2/2020"], "'european' is read as date d.m.y at site 'north' but.*YYYY-MM-DD"),
        ("smokes", ["yes", "no"], "'smokes' is read as number at site 'north' but as words at site 'south'"),
        ("label", [1, 2], "kind of label 'label' is 'words' at site 'north' but 'numbers' at site 'south'"),
    ],
)
def test_a_disagreement_is_one_line_with_site_and_column(column, values, message):
    with pytest.raises(DataError, match=message) as error:
        agree(changed(column, values))
    assert "\n" not in str(error.value)


def test_numbers_that_two_sites_write_in_two_ways():
    """One decimal comma decides for a site whose own words could mean both; bare numbers fit any."""
    assert next(c for c in agree(changed("either", ["1,5", "2,25"]))[0].columns if c.name == "either").fill < 10
    schema, _ = agree(changed("comma", [1.5, 2.5]))
    assert next(c for c in schema.columns if c.name == "comma").read_as == "decimal comma"
    assert agree(changed("smokes", [0, 1]))[0]
    told = summaries(hospitals())
    told["south"] = told["south"].model_copy(update={"comma_likely": True})
    with pytest.raises(DataError, match=r"'either': 1,234 is 1\.234 at site 'south' but 1234 at site 'north'"):
        agree(told)


def test_truth_values_are_categories_where_a_site_has_gaps_among_them():
    table = hospitals()
    own = table[table["client"] == "south"].reset_index(drop=True)
    own["smokes"] = own["smokes"].astype(object)
    own.loc[own.index[own["split"] == "train"][:3], "smokes"] = None
    parts = [table[table["client"] == "north"], own, table[table["client"] == "west"]]
    told = {site: one for part in parts for site, one in summaries(part).items()}
    found = next(c for c in agree(told)[0].columns if c.name == "smokes")
    assert found.categories == ("(missing)", "False", "True")


def test_nothing_to_agree_on():
    with pytest.raises(ConfigError, match="no site has sent"):
        agree({})
    table = pd.DataFrame({"x": [1] * 8, "label": ["a", "b"] * 4, "split": ["train", "test"] * 4, "client": "s"})
    with pytest.raises(DataError, match="no feature is left"):
        agree(summaries(table))


def test_labels_must_be_of_one_task():
    table = hospitals(label="classes")
    told = summaries(table, task="classification")
    other = summaries(table[table["client"] == "west"], task="regression")
    with pytest.raises(
        DataError, match="the task is 'classification' at site 'north' but 'regression' at site 'west'"
    ):
        agree(told | other)
