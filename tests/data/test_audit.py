import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from idiolect.data import FederatedData, Split, audit, from_table
from idiolect.data.audit import repeated_columns, telling_columns
from idiolect.data.schema.columns import Category, LeftOut, Number
from idiolect.data.schema.label import Classes, Target
from idiolect.data.schema.schema import Schema
from tests.tables import wards


def telling(table, **options):
    data = from_table(table, "ward", **options)
    x = np.concatenate([data.split(name).x for name in ("train", "validation", "test")])
    y = np.concatenate([data.split(name).y for name in ("train", "validation", "test")])
    return telling_columns(data.schema, [x], y)


@pytest.mark.parametrize(
    ("made", "tells"),
    [
        (lambda t: t["label"].map({"ill": 1, "well": 0}), True),
        (lambda t: t["label"].map({"ill": "krank", "well": "gesund"}), True),
        (lambda t: t["label"].map({"ill": 2.0, "well": 7.0}) + t["age"] / 1000, True),
        (
            lambda t: (
                t["label"].map({"ill": 1, "well": 0}).where(t.index != 5, 1 - (t["label"] == "ill").astype(int))
            ),
            False,
        ),
        (lambda t: t["age"] * 2, False),
        (lambda t: t["sex"].map({"f": "x", "m": "y"}), False),
    ],
)
def test_a_column_that_tells_the_class(made, tells):
    table = wards()
    assert telling(table) == ()
    table["other"] = made(table)
    assert telling(table) == (("other",) if tells else ())


def test_a_column_that_tells_the_number():
    table = wards(regression=True)
    assert telling(table) == ()
    table["other"] = -np.log(table["label"])
    assert telling(table) == ("other",)
    table.loc[3, "other"] += 1
    assert telling(table) == ()


def test_few_rows_tell_nothing():
    table = wards(rows=6)
    table["other"] = (table["label"] == "ill").astype(int)
    assert telling(table) == ()


def test_the_audit_tells_it():
    table = wards()
    assert audit(from_table(table, "ward")).clean
    table["outcome"] = table["label"].map({"ill": 1, "well": 0})
    found = audit(from_table(table, "ward"))
    assert not found.clean
    assert found.telling == ("outcome",)
    assert "Column 'outcome' gives the label of every row by itself" in " ".join(found.lines())
    assert """--set 'data.ignore=["outcome"]' leaves it out""" in " ".join(found.lines())


def test_columns_that_repeat_another():
    table = pd.DataFrame(
        {"a": [1, 2, None], "b": ["1", "2", None], "c": [2, 1, None], "d": [1, 1, 1], "e": [1, 1, 1]}
    )
    assert repeated_columns(table, list("abcde")) == [("b", "a")]
    half = ["\ud800", "x", None]  # the first half of a pair of code points, as JSON can hold it
    table = pd.DataFrame({"a": [1, 2, None], "b": ["1", "2", None], "f": pd.Series(half, dtype=object)})
    table["g"] = table["f"]
    assert repeated_columns(table, ["g", "a", "f"]) == [("f", "g")]
    assert repeated_columns(table, ["b", "a", "f", "g"]) == [("a", "b"), ("g", "f")]


def of_numbers(values, labels):
    """The columns that tell the label, of a table with one number column and words as labels, all rows given."""
    table = pd.DataFrame({"ward": ["north"] * len(labels), "other": values, "label": labels})
    schema = from_table(table, "ward", standardise=False).schema
    y = np.unique(labels, return_inverse=True)[1]
    return telling_columns(schema, [np.asarray(values, np.float32)[:, None]], y)


@pytest.mark.parametrize(("changes", "tells"), [(1, True), (3, True), (4, False), (5, False)])
def test_along_the_values_the_class_changes_less_than_twice_as_often_as_there_are_classes(changes, tells):
    """Forty rows of two classes, in runs of equal class."""
    runs = np.arange(40) * (changes + 1) // 40
    labels = np.where(runs % 2 == 0, "ill", "well")
    assert np.count_nonzero(labels[1:] != labels[:-1]) == changes
    assert of_numbers(np.arange(40) + 0.5, labels) == (("other",) if tells else ())


def test_equal_values_with_different_classes_tell_nothing():
    labels = np.array(["ill"] * 20 + ["well"] * 20)
    values = np.repeat([0.5, 1.5], 20)
    assert of_numbers(values, labels) == ("other",)
    assert of_numbers(np.where(np.arange(40) == 20, 0.5, values), labels) == ()


@pytest.mark.parametrize(("categories", "tells"), [(2, True), (4, True), (5, False)])
def test_at_most_twice_as_many_categories_as_classes_tell_the_class(categories, tells):
    words = np.array([f"w{k % categories}" for k in range(60)])
    labels = np.where(np.arange(60) % categories == 0, "ill", "well")
    table = pd.DataFrame({"ward": ["north"] * 60, "other": words, "label": labels})
    assert telling(table) == (("other",) if tells else ())


@pytest.mark.parametrize(("others", "tells"), [([0], True), ([1], True), ([0, 1], False)])
def test_rows_of_no_category_are_one_more(others, tells):
    """Twenty rows of a, all ill (0), twenty of b, all well (1), and twenty whose word has no feature."""
    schema = Schema(
        client="ward",
        label=Classes(name="label", classes=("ill", "well")),
        columns=(Category(name="other", categories=("a", "b")),),
    )
    x = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], 20, axis=0)
    y = np.array([0] * 20 + [1] * 20 + (others * 20)[:20])
    assert telling_columns(schema, [x[:7], x[7:]], y) == (("other",) if tells else ())


@pytest.mark.parametrize(("rows", "tells"), [(20, True), (19, False)])
def test_twenty_rows_are_enough(rows, tells):
    labels = np.where(np.arange(rows) % 2 == 0, "ill", "well")
    values = np.arange(rows) % 2 + np.arange(rows) / 100
    assert of_numbers(values, labels) == (("other",) if tells else ())


@pytest.mark.parametrize(("distinct", "tells"), [(11, True), (10, False)])
def test_a_number_is_told_by_ten_steps_that_all_go_one_way(distinct, tells):
    """Eleven distinct values have ten steps between them."""
    values = np.repeat(np.arange(distinct), 4) + 0.5
    for sign in (1.0, -1.0):
        table = pd.DataFrame({"ward": ["north"] * len(values), "other": values, "label": 0.25 + sign * values})
        assert telling(table) == (("other",) if tells else ())
    table.loc[0, "label"] += 0.125  # two labels of one value
    assert telling(table) == ()
    for sign in (1.0, -1.0):  # one label of two values
        table["label"] = sign * np.maximum(values, 1.5)
        assert telling(table) == ()


def test_a_single_class_is_told_by_nothing():
    """Numbers and words that would tell two classes apart."""
    table = wards()
    table["other"] = np.where(table["label"] == "ill", 1.5, 0.5)
    table["word"] = np.where(table["label"] == "ill", "x", "y")
    data = from_table(table, "ward")
    x = np.concatenate([data.split(name).x for name in ("train", "validation", "test")])
    assert telling(table) == ("other", "word")
    assert telling_columns(data.schema, [x], np.zeros(len(x), np.int64)) == ()


@pytest.mark.parametrize(
    ("ill", "well", "tells"),
    [
        ([1.0], [np.nan], True),  # constant where it is present
        ([3.0, 5.0, 7.0], [np.nan], True),  # the missing ones are the median, 5, as a third of the others
        ([3.0, 5.0, 7.0, np.nan], [np.nan], False),
        ([np.nan, 1.0], [1.0, np.nan], False),
    ],
)
def test_what_is_missing_for_one_class_only_tells_the_class(ill, well, tells):
    """Forty rows: first the ill ones, then the others."""
    values = [*(ill * 20)[:20], *(well * 20)[:20]]
    table = pd.DataFrame({"ward": ["north", "south"] * 20, "other": values, "label": ["ill"] * 20 + ["well"] * 20})
    table["age"] = np.random.default_rng(0).permutation(40) * 1.5
    assert telling(table) == (("other",) if tells else ())


def test_columns_without_a_feature_are_passed_over():
    columns = (LeftOut(name="key", why="an identifier"), Number(name="other", fill=0.0))
    schema = Schema(client="ward", label=Classes(name="label", classes=("ill", "well")), columns=columns)
    y = np.arange(40) % 2
    assert telling_columns(schema, [y[:, None] * 2.0], y) == ("other",)
    assert telling_columns(schema, [(y[:, None] - np.arange(40)[:, None] % 4) * 2.0], y) == ()
    number = schema.model_copy(update={"label": Target(name="label")})
    assert telling_columns(number, [np.arange(40.0)[:, None]], np.arange(40.0)) == ("other",)


def test_categories_are_not_said_to_tell_a_number():
    """A regression whose label has two values, each with its own word."""
    table = wards(regression=True)
    table["label"] = np.where(table["sex"] == "f", 1.0, 2.0)
    assert telling(table) == ("sex",)
    assert telling(table, task="regression") == ()


def data(train, validation, test, **provenance):
    """Each split: per client a list of numbers, which are the samples."""

    def split(groups):
        flat = np.array([value for group in groups for value in group], dtype=np.float32)
        offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
        return Split(flat[:, None], (flat > 5).astype(np.int32), offsets)

    return FederatedData(
        "d",
        split(train),
        split(validation),
        split(test),
        tuple("ab"),
        "classification",
        ("0", "1"),
        provenance=provenance,
    )


FITTED = {"normalisation": {"name": "z", "fitted_on": "train"}}


def test_nothing_found():
    found = audit(data([[1, 2], [3]], [[4], []], [[5], [6]], **FITTED))
    assert found.clean
    assert (found.samples, found.distinct, found.shared, found.repeated) == (6, 6, 0, 0)
    assert len(found.lines()) == 1
    assert "No leak found: none of 2 test and" in found.lines()[0]


def test_counts_by_hand():
    # 1: a's test copy in a's own training; 3: a's test in b's training; 9: b's test in both; 2 twice in a's training.
    found = audit(data([[1, 2, 2, 9], [3, 9]], [[3], [7]], [[1, 3, 8], [9, 7]], **FITTED))
    assert found.test == 5
    assert found.test_in_own_train == 2
    assert found.test_in_other_train == 2
    assert found.test_in_validation == 2
    assert found.validation_in_own_train == 0
    assert found.validation_in_other_train == 1
    assert (found.samples, found.distinct) == (13, 6)
    assert found.shared == 2
    assert found.repeated == 1
    assert found.clients_with_leaked_tests == 2
    assert not found.clean
    assert (
        "2 of 5 test samples (40.0%) have an exact copy in the training data of the same client" in found.lines()[1]
    )


def test_a_copy_has_the_same_label():
    clean = data([[1, 2], [3]], [[], []], [[4], [1]], **FITTED)
    assert not audit(clean).clean
    other = replace(clean.test, y=1 - clean.test.y)
    assert audit(replace(clean, test=other)).clean


def test_normalisation_and_leaks_by_design():
    plain = [[1, 2], [3]], [[], []], [[4], [5]]
    fitted = audit(data(*plain, normalisation={"name": "z-all", "fitted_on": "all"}))
    assert not fitted.clean
    assert any("'z-all': FITTED ON TEST SAMPLES TOO" in line for line in fitted.lines())
    leaking = audit(data(*plain, **FITTED, leaks=["siblings"]))
    assert not leaking.clean
    assert "Known leak: siblings." in leaking.lines()
    assert audit(data(*plain)).fitted_on == "unknown"


def test_to_dict_is_plain():
    found = json.loads(json.dumps(audit(data([[1], [3]], [[], []], [[1], [5]], **FITTED)).to_dict()))
    assert found["test_in_own_train"] == 1
    assert found["clean"] is False
