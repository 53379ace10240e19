"""The counts of results/advice/README.md are those of its files of draws."""

import pytest

from results.advice.__main__ import FOLDER, TASKS, table
from results.advice.natural import table as natural_table
from results.advice.truths import TRUTHS, federation
from results.scores import rows_of

PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("task", TASKS)
def test_the_table_is_that_of_the_draws(task: str) -> None:
    rows = rows_of("advice", f"truth-{task}.csv")
    assert table(rows) in PAGE
    right, harmful = (sum(int(row[key]) for row in rows) for key in ("right", "harmful"))
    assert f"right in {right} of {len(rows)} draws" in PAGE
    assert harmful == 0


def test_what_is_said_of_the_natural_tables_is_so() -> None:
    rows = rows_of("advice", "natural.csv")
    assert f"On these {len(rows)} tables" in PAGE
    assert all(float(row["high_regression"]) > 0 for row in rows)
    behind = [row for row in rows if float(row["high_trees"]) <= 0]
    assert f"On {len(rows) - len(behind)} of them the best candidate" in PAGE
    for row in behind:
        assert f"On {row['table']} the pooled trees are better by {-float(row['gap_trees']):.4f}." in PAGE
    own = [row["table"] for row in rows if row["alone"] != "local"]
    assert f"({', '.join(own[:-1])} and {own[-1]})" in PAGE


def test_the_table_of_natural_tables_is_that_of_its_file() -> None:
    assert natural_table(rows_of("advice", "natural.csv")) in PAGE


@pytest.mark.parametrize("task", TASKS)
def test_a_draw_is_the_same_each_time_and_another_for_another_number(task: str) -> None:
    for truth in TRUTHS:
        if truth.__name__ == "label_shift" and task == "regression":
            continue
        one, again, other = (federation(truth, number, task).fingerprint for number in (3, 3, 4))
        assert one == again != other
