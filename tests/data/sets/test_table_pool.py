"""What is guessed of a table's labels is told."""

import numpy as np
import pandas as pd
import pytest

from idiolect.data import from_table


@pytest.mark.parametrize(
    ("distinct", "task", "asked"), [(20, None, False), (21, None, True), (21, "classification", False)]
)
def test_whole_numbers_with_many_values_are_asked_about(distinct, task, asked):
    rows = pd.DataFrame({"client": ["a", "b"] * 63, "x": np.arange(126) % 7, "label": np.arange(126) % distinct})
    told = [note for note in from_table(rows, task=task).notes if "if it is an amount" in note]
    assert (
        told
        == [
            f"label 'label' has {distinct} different whole numbers, read as classes; if it is an amount, say "
            "task='regression' (in commands --set data.task=regression)"
        ]
        * asked
    )
