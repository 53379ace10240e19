"""The sites' labels together."""

import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.schema.agree_label import agree_label
from idiolect.deploy.schema.summarise import summarise


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
