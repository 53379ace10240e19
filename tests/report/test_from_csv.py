"""The boards from CSV files are those of the run that wrote them."""

from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.metrics.registry import METRICS
from idiolect.report.board import MEAN, WORST, board_of
from idiolect.report.from_csv import boards_in, cells_in
from idiolect.report.latex import latex_table
from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.strips import strip
from tests.report.stores import csv_of_ranks

RESULTS = Path(__file__).parents[2] / "results"


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
        ("table.csv", "", "has no column 'cell'"),
        (
            "table.csv",
            "cell,method,model,metric,seeds,pooled,mean,worst10\nc,m,g,magic,1,1,1,1\n",
            "line 2, column 'metric': 'magic' is no metric",
        ),
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


@pytest.mark.parametrize("metric", ["auroc", "macro-f1"])
def test_a_metric_that_is_no_mean_of_clients_is_that_of_the_table_in_figures_and_tables(metric, tmp_path):
    (board,) = boards_in(csv_of_ranks(tmp_path, metric))
    assert board.metric.name == metric
    assert {key: found[metric].mean for key, found in board.summaries.items()} == {
        ("fedavg", "global"): 0.8,
        ("local", "local"): 0.9,
    }
    assert all(np.isnan([*board.by_seed(key, metric).values()]).all() for key in board.summaries)
    table = latex_table([board], "metrics")
    assert r"& global & 80.00 $\pm$ 2.48 &" in table
    assert r"& local & 90.00 $\pm$ 2.48 &" in table
    assert f"Nothing is bold in {METRICS[metric].column}: not known seed by seed." in table
    shown = strip(board, ("fedavg", "global"))
    assert shown is not None
    assert shown.scores == pytest.approx([0.91, 0.89, 0.911, 0.891, 0.912, 0.892])


@pytest.mark.parametrize("folder", ["lecture/fedavg-fedsgd", "mmfl/personalization", "pflego/fig2", "fedu/mixing"])
def test_the_clients_of_committed_folders_give_the_tables_means(folder):
    for cell in cells_in(RESULTS / folder):
        for line in cell.lines:
            pooled = [scores.pooled[line.metric] for scores in cell.scores[line.method, line.model].values()]
            assert len(pooled) == line.pooled.seeds
            assert not pooled or np.mean(pooled) == pytest.approx(line.pooled.mean, rel=1e-5), (
                cell.id,
                line.method,
                line.model,
            )
