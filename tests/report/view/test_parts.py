from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.view.from_store import part_of, view_of
from idiolect.report.view.parts import MEAN, WORST, Entry
from tests.report.html.made import compared


def test_the_shared_model_is_fedavgs_else_a_methods_own(tmp_path):
    part = view_of(compared(tmp_path), "").parts[0]
    assert part.shared == ("fedavg", "global")
    without = replace(part, lines=tuple(line for line in part.lines if line.method != "fedavg"))
    assert without.shared == ("ditto", "global")
    assert replace(part, muted=frozenset({"fedavg"})).shared == ("ditto", "global")
    assert replace(part, lines=part.lines[:1]).shared is None
    assert part.entry("ditto").shown == "Ditto"


def test_local_training_is_the_setting_that_was_chosen(tmp_path):
    """Also where it has no score yet."""
    part = view_of(compared(tmp_path), "").parts[0]
    two = replace(part, methods=(Entry("slow", "slow", "local"), Entry("fast", "fast", "local")), lines=())
    assert two.alone == ("slow", "local")
    assert replace(two, muted=frozenset({"slow"})).alone == ("fast", "local")
    assert replace(two, muted=frozenset({"slow", "fast"})).alone is None


def test_a_part_has_what_the_table_has(toy, cell):
    part = part_of(toy, cell)
    line = toy.lines[0]
    assert (part.metric.name, part.alone, part.sizes()[1]) == ("accuracy", ("local", "local"), "training")
    assert part.sizes()[0].tolist() == [10, 10, 20, 0]
    found = [part.over_seeds(("fedavg", "global"), column) for column in ("accuracy", MEAN, WORST)]
    assert found == [line.pooled, line.mean, line.worst10]
    assert part.drawn() == [("fedavg", "global"), ("local", "local"), ("pfedme", "personal")]
    assert part.hurt(("fedavg", "global"), 0).tolist() == [True, False, True, False]
    assert not part.hurt(("local", "local"), 1).any()


def test_values_seed_by_seed(toy, cell):
    part = part_of(toy, cell)
    key = ("local", "local")
    assert part.values(key, MEAN) == pytest.approx({0: (0.9 + 0.6 + 0.8) / 3, 1: (0.9 + 0.6 + 0.9) / 3})
    assert part.values(key, "accuracy")[1] == pytest.approx((9 + 6 + 18) / 40)
    assert np.isnan(part.values(key, "brier")[0])


def test_a_column_has_the_step_of_one_test_sample(toy, cell):
    """40 test samples of three clients, of whom the smallest have 10; the worst tenth is one client."""
    part = part_of(toy, cell)
    steps = {column: part.resolution(column) for column in ("accuracy", MEAN, WORST, "log-loss", "other")}
    assert steps == {"accuracy": 1 / 40, MEAN: 1 / 30, WORST: 1 / 10, "log-loss": 0.0, "other": 0.0}
    assert np.isnan(part.resolution("macro-f1"))


def test_only_some_are_drawn_and_alone_is_still_the_reference(toy, cell):
    part = part_of(toy, cell).drawing(["fedavg"], [])
    assert part.drawn() == [("fedavg", "global")]
    assert part.hurt(("fedavg", "global"), 0).any()
    for methods, models in ((["fedavvg"], []), ([], ["own"])):
        with pytest.raises(ConfigError, match="of this cell"):
            part.drawing(methods, models)


def test_another_metric(toy, cell, by_class):
    part = part_of(by_class, by_class.experiment.cells[0]).by_metric("macro-f1")
    assert part.metric.name == "macro-f1"
    assert np.isnan(part.over_seeds(("fedavg", "global"), MEAN).mean)  # no client has one
    with pytest.raises(ConfigError, match="unknown metric of this run 'mse'"):
        part.by_metric("mse")
