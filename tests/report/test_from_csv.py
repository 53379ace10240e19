"""The boards from CSV files are those of the run that wrote them."""

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.report.board import MEAN, WORST, board_of
from idiolect.report.from_csv import boards_in
from idiolect.report.raw import clients_csv, write_csv


@pytest.fixture
def folder(toy, tmp_path):
    write_csv(toy, tmp_path / "table.csv")
    clients_csv(toy, tmp_path / "clients.csv")
    return tmp_path


def test_the_same_numbers_as_in_the_run(toy, cell, folder):
    (board,), own = boards_in(folder), board_of(toy, cell)
    assert (board.cell, board.local, board.metric.name, board.size_of) == ("cell0", "local", "accuracy", "test")
    assert board.names["fedavg"] == "FedAvg"
    for key in (("fedavg", "global"), ("local", "local")):
        for column in ("accuracy", MEAN, WORST):
            a, b = (vars(one.summaries[key][column]) for one in (board, own))
            assert a == pytest.approx(b, nan_ok=True)
            assert board.by_seed(key, column) == pytest.approx(own.by_seed(key, column))
        for seed, scores in own.measured(key).items():
            np.testing.assert_array_equal(board.hurt(key, seed), own.hurt(key, seed))
            np.testing.assert_array_equal(board.measured(key)[seed].count, scores.count)


def test_without_clients_there_are_means_alone(folder):
    (folder / "clients.csv").unlink()
    (board,) = boards_in(folder)
    assert board.summaries["local", "local"]["accuracy"].seeds == 2
    assert (board.scores, board.by_seed(("local", "local"), MEAN), board.sizes) == ({}, {}, None)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("table.csv", "a,b\n1,2\n", "has no column 'cell'"),
        ("table.csv", "", "cannot read"),
        ("table.csv", "cell,method,model,metric,seeds,pooled,mean,worst10\nc,m,g,magic,1,1,1,1\n", "metric 'magic'"),
        ("clients.csv", "cell,method,model\n", "has no column 'seed'"),
        (
            "clients.csv",
            "cell,method,model,seed,round,client,n,accuracy,loss\n" + "cell0,local,local,0,20,north,1,0.5,1\n" * 2,
            "has a client twice",
        ),
    ],
)
def test_other_files_are_refused(folder, name, text, said):
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=said):
        boards_in(folder)
