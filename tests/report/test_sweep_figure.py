"""The figure of a sweep: each setting has a place of its own above its value, and what diverged is to be seen."""

import numpy as np
import pytest

from idiolect.metrics.registry import METRICS
from idiolect.report.style import HIT, MISS, PALE
from idiolect.report.sweep_figure import sweep_figure
from idiolect.study.search.choose import NONE, Swept, Tried, setting_of
from idiolect.study.spec.experiment import comparison_of
from idiolect.study.store.summary import over_seeds


def swept(settings, chosen=0, diverged=(), seeds=2, scores=None, task="classification"):
    """A sweep of (method, values) pairs with made-up scores."""
    methods = list(dict.fromkeys(method for method, _ in settings))
    experiment = comparison_of("d", {"name": "synthetic"}, {"name": "mlr"}, methods, seeds=seeds)
    tried = []

    def mean(i):
        return 0.5 + 0.01 * i if scores is None else scores[i]

    for i, (method, values) in enumerate(settings):
        score = NONE if i in diverged else over_seeds([mean(i) + 0.002 * s for s in range(seeds)])
        setting = setting_of(experiment.cells[0], {"name": method}, values)
        failures = ("why",) if i in diverged else ()
        tried.append(Tried(setting, score, 10, failures, i == chosen))
    return Swept(experiment, METRICS["accuracy" if task == "classification" else "mse"], tuple(tried), {})


def points(axes, marker):
    lines = [line for line in axes.get_lines() if line.get_marker() == marker]
    return [(float(x), float(y)) for line in lines for x, y in zip(*line.get_data(), strict=True)]


def test_settings_that_share_a_value_stand_side_by_side_above_it():
    grid = [("fedavg", {"rate": r, "local_steps": k}) for r in (0.3, 0.01) for k in (5, 20, 10)]
    figure = sweep_figure(swept(grid, chosen=2))
    left, right = figure.axes
    assert [t.get_text() for t in left.get_xticklabels()] == ["0.01", "0.3"]
    assert [t.get_text() for t in right.get_xticklabels()] == ["5", "10", "20"]
    for axes, key, ticks in ((left, "rate", [0.01, 0.3]), (right, "local_steps", [5, 10, 20])):
        found = points(axes, "o") + points(axes, "*")
        assert len({x for x, _ in found}) == len(found) == 6
        for i, (_, values) in enumerate(grid):
            place = [x for x, y in found if y == pytest.approx(100 * (0.5 + 0.01 * i + 0.001))]
            assert round(place[0]) == ticks.index(values[key])
    assert points(left, "*") == [(pytest.approx(1, abs=0.4), pytest.approx(52.1))]


def test_many_values_lie_on_a_scale():
    rng = np.random.default_rng(0)
    rates = [float(f"{10**v:.6g}") for v in rng.uniform(-3, 0, 15)]
    (axes,) = sweep_figure(swept([("fedavg", {"rate": r}) for r in rates])).axes
    assert axes.get_xscale() == "log"
    assert sorted(x for x, _ in points(axes, "o") + points(axes, "*")) == sorted(rates)


def test_each_method_has_a_row_and_what_diverged_a_cross():
    settings = [("fedavg", {"rate": 0.1}), ("fedavg", {"rate": 9.0}), ("ditto", {"rate": 0.1, "prox_weight": 1.0}),
                ("ditto", {"rate": 0.2, "prox_weight": 2.0})]  # fmt: skip
    figure = sweep_figure(swept(settings, diverged=(1,)))
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_xlabel() for axes in shown] == ["rate", "rate", "prox_weight"]
    assert [len(points(axes, "x")) for axes in shown] == [1, 0, 0]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["not chosen", "chosen", "diverged"]
    assert [axes.get_title(loc="left") for axes in shown] == ["FedAvg", "Ditto", ""]


def colours(axes, marker):
    return {line.get_color() for line in axes.get_lines() if line.get_marker() == marker}


def test_the_chosen_setting_is_in_colour_and_the_others_are_grey():
    settings = [("fedavg", {"rate": rate}) for rate in (0.1, 0.2, 0.3)]
    (axes,) = sweep_figure(swept(settings, chosen=1)).axes
    assert (colours(axes, "*"), colours(axes, "o")) == ({MISS}, {PALE})
    before = sweep_figure(swept(settings, chosen=None))  # nothing is chosen: nothing is grey
    assert colours(before.axes[0], "o") == {HIT}
    assert [text.get_text() for text in before.legends[0].get_texts()] == ["tried"]


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (1, "points: one seed"),
        (3, "points: mean of 3 seeds; bars: ± half of the 95 % interval over seeds (Student's t)"),
    ],
)
def test_it_says_what_points_and_bars_are(seeds, said):
    figure = sweep_figure(swept([("fedavg", {"rate": r}) for r in (0.1, 0.2, 0.3)], seeds=seeds))
    assert " ".join(figure.get_supxlabel().split()) == said
    assert len(figure.axes[0].containers) == 3  # error bars
    assert all(container.has_yerr == (seeds > 1) for container in figure.axes[0].containers)


def test_bad_settings_of_a_method_without_a_chosen_one_are_at_the_bad_end():
    settings = [("fedavg", {"rate": 0.1})] + [("ditto", {"rate": 0.1 * (i + 1)}) for i in range(5)]
    figure = sweep_figure(swept(settings, chosen=0, scores=[0.9, 0.9, 0.02, 0.91, 0.89, 0.9]))
    ditto = figure.axes[1]
    assert ([round(x) for x, _ in points(ditto, "v")], points(ditto, "^")) == ([1], [])
    assert len(points(ditto, "o")) == 4


def test_a_single_setting_and_a_single_seed_are_drawn():
    (axes,) = sweep_figure(swept([("fedavg", {})], seeds=1)).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["defaults"]
    assert points(axes, "*") == [(0, pytest.approx(50))]


@pytest.mark.parametrize(
    ("task", "scores", "marker"),
    [("classification", [0.9, 0.02, 0.91, 0.89, 0.9], "v"), ("regression", [1.0, 900.0, 1.1, 1.2, 1.05], "^")],
)
def test_one_bad_setting_does_not_hide_the_differences_between_the_others(task, scores, marker):
    settings = [("fedavg", {"rate": 0.1 * (i + 1)}) for i in range(5)]
    best = int(np.argmax(scores) if task == "classification" else np.argmin(scores))
    figure = sweep_figure(swept(settings, chosen=best, scores=scores, task=task))
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    unit = 100 if task == "classification" else 1
    good = [unit * score for i, score in enumerate(scores) if i != 1]
    assert low < min(good) < max(good) < high
    assert max(good) - min(good) > (high - low) / 4
    assert [round(x) for x, _ in points(axes, marker)] == [1]
    assert "worse than the axis shows" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_bars_are_intervals_and_end_at_the_possible_values():
    """Three seeds 0.2 points apart: 4.303 * 0.2 / sqrt(3) = 0.497 points; near 100 less above."""
    figure = sweep_figure(swept([("fedavg", {"rate": r}) for r in (0.1, 0.2)], seeds=3, scores=[0.5, 0.997]))
    bars = [container.lines[2][0].get_segments()[0][:, 1] for container in figure.axes[0].containers]
    half = 100 * over_seeds([0, 0.002, 0.004]).half_width
    assert half == pytest.approx(0.497, abs=1e-3)
    np.testing.assert_allclose(bars, [[50.2 - half, 50.2 + half], [99.9 - half, 100]])
