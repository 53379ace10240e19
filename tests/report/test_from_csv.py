"""The boards from CSV files are those of the run that wrote them."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.metrics.registry import METRICS
from idiolect.report.board import MEAN, WORST, board_of
from idiolect.report.comparison import table_of
from idiolect.report.from_csv import boards_in, cells_in
from idiolect.report.latex import latex_table
from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.strips import strip
from idiolect.report.text import published as published_text
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import csv_of_ranks, experiment, finished

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


def packed(folder):
    text = (folder / "clients.csv").read_bytes()
    (folder / "clients.csv.gz").write_bytes(gzip.compress(text))
    (folder / "clients.csv").unlink()


def test_a_compressed_clients_file_gives_the_same_board(folder):
    (plain,) = boards_in(folder)
    packed(folder)
    (board,) = boards_in(folder)
    assert board.clients == plain.clients != ()
    key = ("local", "local")
    assert board.by_seed(key, MEAN) == plain.by_seed(key, MEAN) != {}


@pytest.mark.parametrize("size", [40, -20], ids=["cut short", "its end is missing"])
def test_a_damaged_compressed_file_is_refused(folder, size):
    packed(folder)
    file = folder / "clients.csv.gz"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(DataError, match=r"cannot read .*clients\.csv\.gz"):
        boards_in(folder)


def test_a_file_that_is_only_named_as_compressed_is_refused(folder):
    (folder / "clients.csv").rename(folder / "clients.csv.gz")
    with pytest.raises(DataError, match=r"cannot read .*clients\.csv\.gz"):
        boards_in(folder)


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


def test_a_published_confidence_interval_stays_one(tmp_path):
    published = ({"model": "global", "value": 70.0, "half_width": 0.5, "within": 3.0},)
    store, exp = Store(tmp_path), experiment([{"name": "fedavg", "published": published}])
    for seed in (0, 1):
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.7, 0.7, 0.75 + seed / 1000, 0.5)}})
    results = Results(store, exp)
    write_csv(results, tmp_path / "table.csv")
    (cell,) = cells_in(tmp_path)
    (line,) = cell.lines
    assert (line.published.half_width, line.published.std, line.published.given) == (0.5, None, 0.5)
    assert (line.verdict, line.interval.low) == (
        results.lines[0].verdict,
        pytest.approx(results.lines[0].interval.low),
    )
    (note, _) = table_of(results, exp.cells[0]).notes
    assert note == "± in a published value: half of the paper's confidence interval, taken as one of 95 %"
    assert published_text(line.published, METRICS["accuracy"], METRICS["accuracy"]) == "70.00 ± 0.50"
