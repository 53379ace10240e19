import csv
import math

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import StoreError
from idiolect.report.raw import (
    CLIENT_COLUMNS,
    DIAGNOSTIC_COLUMNS,
    LINE_COLUMNS,
    OVER_SEEDS,
    PUBLISHED_COLUMNS,
    clients_csv,
    diagnostics_csv,
    write_csv,
)
from tests.report.stores import MACRO_F1, NAN


def test_every_number_survives(toy, tmp_path):
    write_csv(toy, tmp_path / "table.csv")
    table = pd.read_csv(tmp_path / "table.csv")
    numbers = [name + suffix for name in (*OVER_SEEDS, "accuracy", "macro_f1") for suffix in ("", "_std", "_ci95")]
    assert tuple(table.columns) == (*LINE_COLUMNS, *numbers, *PUBLISHED_COLUMNS)
    assert len(table) == len(toy.lines) == 5
    with (tmp_path / "table.csv").open() as file:
        texts = list(csv.DictReader(file))
    for row, text, line in zip(table.to_dict("records"), texts, toy.lines, strict=True):
        assert (row["cell"], row["method"], row["model"]) == (line.cell, line.method, line.model)
        assert (row["seeds"], row["failed"]) == (line.pooled.seeds, line.failed)
        assert (None if pd.isna(row["verdict"]) else row["verdict"]) == line.verdict
        for name in OVER_SEEDS:
            value = getattr(line, name)
            expected = [math.nan] * 3 if value is None else [value.mean, value.std, value.half_width]
            read = [float(text[name + suffix] or NAN) for suffix in ("", "_std", "_ci95")]  # pandas 2 drops last bits
            np.testing.assert_array_equal(read, expected)


def test_known_values(toy, tmp_path):
    write_csv(toy, tmp_path / "table.csv")
    table = pd.read_csv(tmp_path / "table.csv", dtype={"rounds": str}).set_index(["method", "model"])
    fedavg, alone = table.loc[("fedavg", "global")], table.loc[("local", "local")]
    assert fedavg["pooled"] == pytest.approx(0.725)
    assert (fedavg["published"], fedavg["published_std"], fedavg["within"]) == (70.0, 0.5, 3.0)
    assert fedavg["difference"] == pytest.approx(2.5)
    assert (fedavg["rounds"], alone["rounds"]) == ("20", "20 20")
    assert math.isnan(fedavg["pooled_std"])
    assert (fedavg["published_metric"], math.isnan(fedavg["macro_f1"])) == ("accuracy", True)
    # Student's t with one degree of freedom: 12.706 * std / sqrt(2)
    assert alone["pooled_std"] == pytest.approx(0.05 / math.sqrt(2))
    assert alone["pooled_ci95"] == pytest.approx(12.7062 * 0.05 / 2, rel=1e-4)
    assert table.loc[("pfedme", "local"), ["seeds", "failed"]].tolist() == [0, 0]


def test_macro_f1(by_class, tmp_path):
    write_csv(by_class, tmp_path / "table.csv")
    (row,) = pd.read_csv(tmp_path / "table.csv").to_dict("records")
    assert [row["macro_f1"], row["macro_f1_std"]] == pytest.approx([MACRO_F1, 0])
    assert (row["published_metric"], row["verdict"]) == ("macro-f1", "consistent, wide")
    assert row["difference"] == pytest.approx(100 * MACRO_F1 - 54)


def test_one_row_a_client(toy, tmp_path):
    clients_csv(toy, tmp_path / "clients.csv")
    table = pd.read_csv(tmp_path / "clients.csv")
    assert tuple(table.columns) == (*CLIENT_COLUMNS, "accuracy", "macro_f1", "loss")
    assert len(table) == 4 * 3  # four clients; FedAvg once, Local twice
    east = table[(table.client == "east") & (table.method == "local")]
    assert east[["seed", "round", "n", "accuracy"]].values.tolist() == [
        [0, 20, 20, 0.8],
        [1, 20, 20, pytest.approx(0.9)],
    ]
    assert east["loss"].tolist() == pytest.approx([1.2, 1.1])
    west = table[table.client == "west"]
    assert west["n"].tolist() == [0, 0, 0]
    assert west["accuracy"].isna().all()


def test_one_row_a_diagnostic_and_evaluated_round(said, tmp_path):
    diagnostics_csv(said, tmp_path / "diagnostics.csv")
    lines = (tmp_path / "diagnostics.csv").read_text().splitlines()
    assert tuple(lines[0].split(",")) == DIAGNOSTIC_COLUMNS
    assert lines[1:] == [
        "cell0,mine,0,dual objective,20,-12345.678",
        "cell0,mine,0,duality gap,0,",
        f"cell0,mine,0,duality gap,20,{1 / 3}",
        "cell0,mine,1,duality gap,0,",
        "cell1,mine,0,steps,0,7.0",
    ]


def test_a_folder_that_is_not_there(toy, tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*table\.csv"):
        write_csv(toy, tmp_path / "nowhere" / "table.csv")
