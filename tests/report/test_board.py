import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.board import MEAN, WORST, board_of


def test_a_board_has_what_the_table_has(toy, cell):
    board = board_of(toy, cell)
    line = toy.lines[0]
    assert (board.metric.name, board.local, board.size_of) == ("accuracy", "local", "training")
    assert board.sizes.tolist() == [10, 10, 20, 0]
    found = board.summaries["fedavg", "global"]
    assert (found["accuracy"], found[MEAN], found[WORST]) == (line.pooled, line.mean, line.worst10)
    assert board.drawn() == [("fedavg", "global"), ("local", "local"), ("pfedme", "personal")]
    assert board.hurt(("fedavg", "global"), 0).tolist() == [True, False, True, False]
    assert not board.hurt(("local", "local"), 1).any()


def test_values_seed_by_seed(toy, cell):
    board = board_of(toy, cell)
    key = ("local", "local")
    assert board.by_seed(key, MEAN) == pytest.approx({0: (0.9 + 0.6 + 0.8) / 3, 1: (0.9 + 0.6 + 0.9) / 3})
    assert board.by_seed(key, "accuracy")[1] == pytest.approx((9 + 6 + 18) / 40)
    assert np.isnan(board.by_seed(key, "brier")[0])


def test_a_column_has_the_step_of_one_test_sample(toy, cell):
    """40 test samples of three clients, of whom the smallest have 10; the worst tenth is one client."""
    board = board_of(toy, cell)
    steps = {column: board.resolution(column) for column in ("accuracy", MEAN, WORST, "log-loss", "other")}
    assert steps == {"accuracy": 1 / 40, MEAN: 1 / 30, WORST: 1 / 10, "log-loss": 0.0, "other": 0.0}
    assert np.isnan(board.resolution("macro-f1"))


def test_only_some_are_drawn_and_alone_is_still_the_reference(toy, cell):
    board = board_of(toy, cell).only(["fedavg"], [])
    assert board.drawn() == [("fedavg", "global")]
    assert board.hurt(("fedavg", "global"), 0).any()
    for methods, models in ((["fedavvg"], []), ([], ["own"])):
        with pytest.raises(ConfigError, match="of this cell"):
            board.only(methods, models)


def test_another_metric(toy, cell, by_class):
    board = board_of(by_class, by_class.experiment.cells[0]).by_metric("macro-f1")
    assert board.metric.name == "macro-f1"
    assert np.isnan(board.summaries["fedavg", "global"][MEAN].mean)  # no client has one
    with pytest.raises(ConfigError, match="unknown metric of this run 'mse'"):
        board.by_metric("mse")
