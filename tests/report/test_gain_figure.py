from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.gain_figure import gain_figure
from idiolect.report.style import HIT, MISS, paper
from idiolect.report.view.from_store import part_of
from idiolect.report.view.parts import Entry
from idiolect.study.results import Results
from idiolect.study.store import Store
from tests.report.stores import NAN, experiment, finished


def results(folder, others, task="classification"):
    store, exp = Store(folder), experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1)
    alone = (0.5,) * len(others[:-1])
    counts = np.r_[np.arange(1, len(others)), 0]
    for title, model, scores in (("fedavg", "global", others), ("local", "local", (*alone, NAN))):
        finished(store, exp, "cell0", title, 0, {20: {model: scores}}, task=task, counts=counts)
    return Results(store, exp)


def marks(axes, colour):
    found = [c for c in axes.collections if len(c.get_offsets()) and tuple(c.get_facecolor()[0][:3]) == colour]
    return sorted(map(tuple, np.concatenate([c.get_offsets() for c in found]).round(6).tolist())) if found else []


def rgb(text):
    return tuple(int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))


@pytest.mark.parametrize(("task", "sign"), [("classification", 100), ("regression", -1)])
def test_each_clients_gain_stands_above_its_samples(tmp_path, task, sign):
    found = results(tmp_path, (0.9, 0.5, 0.2, NAN), task)
    figure = gain_figure(part_of(found, found.experiment.cells[0]))
    (axes,) = figure.axes
    gains = {1.0: 0.4 * sign, 3.0: -0.3 * sign}
    for colour, over in ((HIT, True), (MISS, False)):
        assert marks(axes, rgb(colour)) == [(x, pytest.approx(y)) for x, y in gains.items() if (y > 0) == over]
    assert "FedAvg 1 better, 1 worse, of 3" in figure.told[0]


def test_one_client_far_away_is_an_arrow_and_told(tmp_path):
    found = results(tmp_path, (*np.linspace(0.4, 0.6, 300), 50.0, NAN), "regression")
    figure = gain_figure(part_of(found, found.experiment.cells[0]), paper(3.25))
    (axes,) = figure.axes
    assert axes.get_ylim()[0] > -1
    assert "1 below" in figure.told[1]
    assert "at most as far as -49.5" in figure.told[1]


def test_without_local_nobody_gains(toy, cell):
    part = part_of(toy, cell)
    with pytest.raises(ConfigError, match="has no method 'local'"):
        gain_figure(replace(part, methods=(Entry("fedavg", "FedAvg", "fedavg"),)))
    with pytest.raises(ConfigError, match="no method has a finished seed in common"):
        gain_figure(part.drawing(["pfedme"], []))
