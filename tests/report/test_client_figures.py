from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from idiolect.core.errors import ConfigError
from idiolect.report.client_figures import ends, gain_figure, spread, strip, strips_figure
from idiolect.report.style import GREY, HIT, MISS, PALE, paper, save
from idiolect.report.view.from_store import part_of
from idiolect.report.view.parts import Entry
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import NAN, TRAINED, experiment, finished


def test_strip_marks_who_is_hurt(toy, cell):
    part = part_of(toy, cell)
    fedavg = strip(part, ("fedavg", "global"))
    assert fedavg.scores.tolist() == [0.7, 0.7, 0.75]
    assert fedavg.hurt.tolist() == [True, False, True]  # against Local's .9, .6, .8
    alone = strip(part, ("local", "local"))
    assert len(alone.scores) == 6  # three clients with test samples, two seeds
    assert not alone.hurt.any()
    assert strip(part, ("pfedme", "personal")) is None


def test_marks_agree_with_the_table(toy, cell):
    figure = strips_figure(part_of(toy, cell))
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ["FedAvg\n(global)", "Local\n(local)"]
    dots = [[len(c.get_offsets()) for c in axes.collections[i : i + 2]] for i in (0, 2)]
    assert dots == [[1, 2], [6, 0]]
    mean, worst = axes.lines[0], axes.lines[1]
    line = toy.lines[0]
    np.testing.assert_allclose(mean.get_xdata(), 100 * line.mean.mean)
    np.testing.assert_allclose(worst.get_xdata(), 100 * line.worst10.mean)
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert labels == ["client", "client worse off\nthan with Local", "mean", "worst 10 %"]
    assert axes.get_xlabel() == "test accuracy of each client, %"
    assert " ".join(figure.get_supxlabel().split()) == (
        "one mark a client and seed, 1 to 2 finished of 2 seeds, marks of nearly equal value next to each other; "
        "bar and triangle: the mean over clients, and of the worst tenth of the clients, mean over seeds"
    )


def test_without_local_nobody_is_called_hurt(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}], seeds=1)
    finished(store, exp, "cell0", "fedavg", 0, TRAINED, task="regression")
    figure = strips_figure(part_of(Results(store, exp), exp.cells[0]))
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["client", "mean", "worst 10 %"]
    assert figure.axes[0].get_xlabel() == "test mse of each client"
    said = " ".join(figure.get_supxlabel().split())
    assert said.startswith("one mark a client, one seed, ")
    assert said.endswith("the mean over clients, and of the worst tenth of the clients")


def test_settings_that_were_not_chosen_are_grey(tuned):
    figure = strips_figure(part_of(tuned, tuned.experiment.cells[0]))
    colours = [to_hex(c.get_facecolor()[0][:3]) for c in figure.axes[0].collections if len(c.get_offsets())]
    ticks = [tick.get_color() for tick in figure.axes[0].get_yticklabels()]
    assert colours == [PALE, MISS.lower(), HIT.lower()]  # all of FedAvg's are worse off than with Local
    assert ticks == [GREY, "black", "black"]
    assert [t.get_text() for t in figure.legends[0].get_texts()][-1] == "setting not chosen"
    assert "grey: settings that validation data did not choose" in " ".join(figure.get_supxlabel().split())


def test_many_marks_are_pixels_in_the_svg_file(tmp_path):
    for count, pixels in ((10, False), (2100, True)):
        store, exp = Store(tmp_path / str(count)), experiment([{"name": "fedavg"}], seeds=1)
        scores = {20: {"global": np.linspace(0, 1, count)}}
        finished(store, exp, "cell0", "fedavg", 0, scores, counts=np.full(count, 5))
        _, svg = save(strips_figure(part_of(Results(store, exp), exp.cells[0])), tmp_path / f"{count}.png")
        assert ("<image" in svg.read_text()) == pixels


def test_nothing_finished(tmp_path):
    exp = experiment([{"name": "fedavg"}])
    figure = strips_figure(part_of(Results(Store(tmp_path), exp), exp.cells[0]))
    assert [t.get_text() for t in figure.axes[0].texts] == ["no finished run"]


def test_spread_separates_equal_values():
    values = np.array([0.5, 0.5, 0.5, 0.9])
    offsets = spread(values, 0.01)
    assert len(set(offsets[:3])) == 3
    assert offsets[3] == 0
    np.testing.assert_array_equal(offsets, spread(values, 0.01))


def test_spread_stays_inside_its_strip():
    offsets = spread(np.full(5000, 1.0), 0.01)
    assert np.abs(offsets).max() <= 0.35
    assert len(np.unique(offsets)) == 5000


def test_many_strips_have_less_room_and_too_many_are_left_out(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "fedavg", "label": f"m{i}"} for i in range(30)], seeds=1)
    for i in range(30):
        finished(store, exp, "cell0", f"m{i}", 0, {20: {"global": (i / 30,) * 4}})
    figure = strips_figure(part_of(Results(store, exp), exp.cells[0]))
    (axes,) = figure.axes
    shown = [tick.get_text() for tick in axes.get_yticklabels()]
    assert shown == [f"m{i} (global)" for i in range(6, 30)]
    assert figure.told[-1] == "left out: 6 methods with the worst means"
    assert figure.get_figheight() < 11


def test_one_far_client_does_not_press_the_others_together():
    values = np.r_[np.linspace(0.4, 0.6, 300), 50.0]
    assert ends(values) == (0.4, 0.6)
    assert ends(values, [0.3]) == (0.3, 0.6)
    assert ends(np.linspace(0, 1, 300)) == (0, 1)
    assert ends(np.array([0.5, 0.5, 9.0])) == (0.5, 9.0)  # of few marks all are shown


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
