"""Lines that coincide are all to be seen, in their panel and in the legend."""

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.figures import (
    Window,
    across_figure,
    arrows,
    curves_figure,
    diagnostics_figure,
    draw,
    panels_figure,
    times_figure,
)
from idiolect.report.layout import COLOURS, Course, limits
from idiolect.report.markdown import ACROSS
from idiolect.report.page import write_report
from idiolect.report.style import PALE, Looks, blank
from idiolect.report.view.from_store import part_of, runs_of, view_of
from idiolect.study.analyse.outcomes import Curve
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from idiolect.study.store.summary import over_seeds
from tests.report.stores import NAN, TRAINED, experiment, finished, record, start

ROUNDS = np.arange(0.0, 101.0, 10.0)
RISE = 90 - 50 * np.exp(-ROUNDS / 20)
ENDS = (40.0, 90.0)


def line(method, mean=RISE, model="global", x=ROUNDS, **more):
    return Course(method, model, x, np.asarray(mean, float), np.full(len(x), np.nan), **more)


def drawn(*courses, ends=ENDS):
    looks = Looks([(c.method, c.model) for c in courses], muted={c.method for c in courses if c.muted})
    figure = blank(4, 3)
    axes = figure.subplots()
    return draw(axes, courses, looks, ends), {line.get_label(): line for line in axes.lines}


def test_the_later_of_two_equal_lines_is_dashed_over_the_earlier():
    entries, lines = drawn(line("a", model="personal"), line("b", RISE - 5, "personal"), line("c", model="personal"))
    assert [lines[name].get_linestyle() for name in ("a personal", "b personal", "c personal")] == ["-", "-", "--"]
    assert list(lines) == ["a personal", "b personal", "c personal"]  # c above a
    ((text, handles),) = entries.items()
    assert text == "a personal\nc personal"
    for handle, name in zip(handles, ("a personal", "c personal"), strict=True):
        shown = lines[name]
        assert (handle.get_color(), handle._dash_pattern) == (shown.get_color(), shown._dash_pattern)
    assert handles[0].get_color() != handles[1].get_color()


def test_of_two_equal_lines_of_one_colour_one_is_wider():
    _, lines = drawn(line("a", model="personal"), line("a", model="local"), line("b", RISE - 5))
    assert lines["a local"].get_linewidth() == 2 * lines["a personal"].get_linewidth()


def test_single_points_that_coincide_are_a_dot_in_a_ring():
    one = {"x": np.array([5.0])}
    _, lines = drawn(line("a", [50], **one), line("b", [50], **one))
    dot, ring = lines.values()
    assert (ring.get_markerfacecolor(), ring.get_marker()) == ("none", "o")
    assert ring.get_markersize() > dot.get_markersize()


def test_a_setting_that_was_not_chosen_is_below_and_covers_nobody():
    entries, lines = drawn(line("a", muted=True), line("b"))
    assert entries == {}
    assert list(lines) == ["a global", "b global"]
    assert lines["a global"].get_color() == PALE
    assert lines["a global"].get_zorder() < lines["b global"].get_zorder()


def test_an_arrow_stands_where_a_line_would_be():
    courses = [line(name, level + 0 * RISE) for name, level in zip("abcd", (20, 90, 91, 92), strict=True)]
    axes = blank(4, 3).subplots()
    ends = limits(courses, rising=True)
    arrows(axes, courses, ends, Looks([(c.method, c.model) for c in courses]))
    (arrow,) = axes.lines
    assert (arrow.get_marker(), arrow.get_color(), list(arrow.get_ydata())) == ("v", COLOURS[0], [0.0])


def parts_of(results):
    return [part_of(results, cell) for cell in results.experiment.cells]


def texts(figure):
    return [t.get_text() for t in figure.legends[0].get_texts()]


def course(level, rounds=(0, 10, 20), models=("personal", "global", "local")):
    return {r: {m: (level + 0.01 * r - 0.1 * i,) * 3 + (NAN,) for i, m in enumerate(models)} for r in rounds}


@pytest.fixture(scope="module")
def two_cells(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("cells"))
    methods = [{"name": "pfedme", "label": f"R = {r}"} for r in (10, 20)]
    exp = experiment(methods, seeds=2, cells=[{"title": "MLR"}, {"title": "DNN"}])
    for cell in exp.cells:
        for title in ("R = 10", "R = 20"):
            for seed in (0, 1):
                level = 0.5 + 0.1 * seed + (0.03 if title == "R = 20" else 0)
                finished(store, exp, cell.id, title, seed, course(level), splits=("train", "test"))
    return Results(store, exp)


def test_curves(two_cells):
    figure = curves_figure(part_of(two_cells, two_cells.experiment.cells[0]))
    score, loss = figure.axes
    assert (score.get_ylabel(), loss.get_ylabel()) == ("test accuracy, %", "training loss")
    assert [line.get_label() for line in score.lines] == [
        *("R = 10 personal", "R = 10 global", "R = 10 local"),
        *("R = 20 personal", "R = 20 global", "R = 20 local"),
    ]
    assert len(loss.lines) == len(score.collections) == len(loss.collections) == 6  # lines, and bands over seeds
    np.testing.assert_allclose(score.lines[0].get_xydata(), [(0, 55), (10, 65), (20, 75)])
    np.testing.assert_allclose(loss.lines[0].get_ydata(), [1.45, 1.35, 1.25])
    band = score.collections[0].get_paths()[0].vertices
    # Two seeds 10 points apart: 12.706 * 7.07 / sqrt(2) = 63.5 on each side, of which 0 to 100 are possible.
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((0, 100))
    assert [t for t in texts(figure) if t.strip()] == [
        *("method", "R = 10", "R = 20", "model", "personal", "global", "local")
    ]


def said(figure):
    return " ".join(figure.get_supxlabel().split())


def test_it_says_over_how_many_seeds(two_cells, toy, cell, tmp_path):
    spread = "bands: ± half of the 95 % interval over seeds (Student's t)"
    assert (
        said(curves_figure(part_of(two_cells, two_cells.experiment.cells[0]))) == f"lines: mean of 2 seeds; {spread}"
    )
    assert said(curves_figure(part_of(toy, cell))) == (
        f"lines: mean of 1 to 2 finished of 2 seeds; {spread}, none for a single seed"
    )
    store, exp = Store(tmp_path), experiment([{"name": "local"}], seeds=1)
    finished(store, exp, "cell0", "local", 0, course(0.5, models=("local",)))
    assert said(curves_figure(part_of(Results(store, exp), exp.cells[0]))) == "lines: one seed"


def test_methods_have_their_titles(toy, cell):
    assert [t for t in texts(curves_figure(part_of(toy, cell))) if t.strip()] == [
        *("method", "FedAvg", "Local", "model", "global", "local")
    ]


def test_settings_that_were_not_chosen_are_thin_and_grey(tuned):
    figure = curves_figure(part_of(tuned, tuned.experiment.cells[0]))
    grey, good, local = figure.axes[0].lines
    assert [line.get_label() for line in (grey, good, local)] == ["bad global", "good global", "Local"]
    assert grey.get_color() == PALE
    assert grey.get_linewidth() < good.get_linewidth() / 2
    assert [good.get_color(), local.get_color()] == [*COLOURS[:2]]
    assert len(figure.axes[0].collections) == 2  # no band around what was not chosen
    assert [t for t in texts(figure) if t.strip()] == [
        *("chosen setting", "good", "Local", "not chosen", "model", "global", "local")
    ]
    assert "in colour: the setting of each method that was chosen on validation data" in said(figure)


def test_lines_that_coincide_are_in_the_legend(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "fedavg"}, {"name": "fedprox"}, {"name": "fedsgd"}], seeds=1)
    for title, level in (("fedavg", 0.5), ("fedprox", 0.5), ("fedsgd", 0.4)):
        finished(store, exp, "cell0", title, 0, course(level, models=("global",)), splits=("train", "test"))
    figure = curves_figure(part_of(Results(store, exp), exp.cells[0]))
    assert texts(figure)[-2:] == ["coincide", "FedAvg global\nFedProx global"]
    assert texts(figure).count("coincide") == 1
    figure.draw_without_rendering()
    assert figure.legends[0].get_window_extent().y0 >= 0


def test_a_bad_method_is_named_instead_of_shown(tmp_path):
    names = ("fedavg", "fedprox", "scaffold", "fedsgd")
    store, exp = Store(tmp_path), experiment([{"name": name} for name in names], seeds=1, cells=[{"title": "A"}, {}])
    for cell in exp.cells:
        for name, level in zip(names, (0.9, 0.902, 0.904, 0.3), strict=True):
            scores = {r: {"global": (level + r / 1e5,) * 3 + (NAN,)} for r in (0, 10, 20)}
            finished(store, exp, cell.id, name, 0, scores, splits=("train", "test"))
    results = Results(store, exp)
    figure = curves_figure(part_of(results, exp.cells[0]))
    assert figure.axes[0].get_ylim()[0] > 89
    assert figure.axes[1].get_ylim()[1] < 1.2
    below, above = "below the axis of test accuracy: FedSGD global", "above the axis of training loss: FedSGD global"
    assert said(figure) == f"lines: one seed {below} {above}"
    both = said(panels_figure(parts_of(results)))
    assert "below the axis of test accuracy (A): FedSGD global" in both
    assert "below the axis of test accuracy (cell1): FedSGD global" in both


def test_methods_differ_by_colour_and_models_by_style(two_cells):
    lines = curves_figure(part_of(two_cells, two_cells.experiment.cells[0])).axes[0].lines
    assert len({line.get_color() for line in lines}) == 2
    assert lines[0].get_color() == lines[2].get_color() != lines[3].get_color()
    assert lines[0].get_linestyle() == lines[3].get_linestyle()
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in lines}) == 3


def test_panels(two_cells):
    figure = panels_figure(parts_of(two_cells), models=("personal",))
    assert len(figure.axes) == 4
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 2, 2]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["MLR", "", "DNN", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "round", "round"]


def test_without_training_scores_there_is_one_panel(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}], seeds=1)
    finished(store, exp, "cell0", "fedavg", 0, course(0.5, models=("global",)), task="regression")
    (axes,) = curves_figure(part_of(Results(store, exp), exp.cells[0])).axes
    assert axes.get_ylabel() == "test mse"
    assert not axes.collections  # no band for one seed
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.5, 0.6, 0.7])


def test_nothing_finished(tmp_path):
    exp = experiment([{"name": "fedavg"}])
    (axes,) = curves_figure(part_of(Results(Store(tmp_path), exp), exp.cells[0])).axes
    assert [t.get_text() for t in axes.texts] == ["no finished run"]


def ends_of(tmp_path, levels):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}], seeds=1)
    rounds = {r: {"global": (v,) * 3 + (NAN,)} for r, v in zip(range(0, 10 * len(levels), 10), levels, strict=True)}
    finished(store, exp, "cell0", "fedavg", 0, rounds, splits=("train", "test"))
    return [axes.get_ylim() for axes in curves_figure(part_of(Results(store, exp), exp.cells[0])).axes]


def test_axis_shows_differences(tmp_path):
    score, loss = ends_of(tmp_path, [0.1, 0.8, 0.92, 0.93, 0.94, 0.95])
    assert 91 < score[0] < 92
    assert 95 < score[1] < 96
    assert loss == pytest.approx((1.05 - 0.03 * 0.06, 1.08 + 0.03 * 0.06))


def test_axis_keeps_the_start_of_a_slow_run(tmp_path):
    score, _ = ends_of(tmp_path, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert score[0] < 10 < 60 < score[1]


def test_axis_of_a_constant(tmp_path):
    score, _ = ends_of(tmp_path, [0.5, 0.5, 0.5])
    assert score == pytest.approx((49.5, 50.5))


def test_many_methods_are_told_apart(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg", "label": f"a rather long label, number {i}"} for i in range(16)], seeds=1)
    for i in range(16):
        finished(store, exp, "cell0", exp.cells[0].methods[i].title, 0, course(i / 20, models=("global",)))
    figure = curves_figure(part_of(Results(store, exp), exp.cells[0]))
    lines = figure.axes[0].lines
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 16
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.y0 >= 0  # nothing is cut off
    assert box.x1 <= figure.bbox.x1
    assert box.x0 >= figure.axes[0].get_window_extent().x1


def test_a_single_evaluation_is_visible(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}], seeds=1)
    finished(store, exp, "cell0", "fedavg", 0, course(0.5, rounds=(20,), models=("global",)))
    assert curves_figure(part_of(Results(store, exp), exp.cells[0])).axes[0].lines[0].get_marker() == "o"


def test_curve_has_the_spread_of_the_loss(two_cells):
    curve = two_cells.curves(two_cells.experiment.cells[0], "train", ("personal",))[0]
    assert isinstance(curve, Curve)
    np.testing.assert_allclose(curve.loss_ci95, [12.7062 * 0.1 / 2] * 3, rtol=1e-5)


def test_a_last_round_before_all_evaluated_ones_is_one_line(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "local"}], seeds=1)
    finished(store, exp, "cell0", "local", 0, course(0.5, rounds=(10, 20), models=("local",)))
    results = Results(store, exp)
    with pytest.raises(ConfigError, match="no round up to 9 was evaluated"):
        panels_figure(parts_of(results), window=Window(xmax=9.0))
    axes = panels_figure(parts_of(results), window=Window(xmax=10.0)).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [10]


RATES = (0.5, 0.0, 0.25)


def of_rates(**more):
    """Three cells that differ in a number of their data, not in order."""
    cells = [{"data": {"name": "synthetic", "alpha": rate}, **more} for rate in RATES]
    return experiment([{"name": "fedavg-ft"}, {"name": "local"}], seeds=2, cells=cells, across="data.alpha")


def level_at(level, *models):
    return {20: dict.fromkeys(models, (level,) * 3 + (np.nan,))}


@pytest.fixture
def results(tmp_path):
    store, exp = Store(tmp_path), of_rates()
    for cell, rate in zip(exp.cells, RATES, strict=True):
        for seed in (0, 1):
            finished(store, exp, cell.id, "fedavg-ft", seed, level_at(0.9 - rate + 0.02 * seed, "adapted", "global"))
    first = exp.cells[0].id
    finished(store, exp, first, "local", 0, level_at(0.6, "local"))
    return Results(store, exp)


def test_scores_stand_at_the_cells_values_in_their_order(results):
    (axes,) = across_figure(view_of(results).parts, results.experiment.across).axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert list(lines) == ["FedAvg + fine-tuning adapted", "FedAvg + fine-tuning global", "Local"]
    np.testing.assert_allclose(lines["FedAvg + fine-tuning global"], [(0, 91), (0.25, 66), (0.5, 41)])
    np.testing.assert_allclose(lines["Local"], [(0.5, 60)])  # the only cell in which it finished
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("data.alpha", "test accuracy, %")
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == 100  # 91 + 12.706 * 1.41 / sqrt(2) would be impossible
    middle = band[np.isclose(band[:, 0], 0.25), 1]
    assert (middle.min(), middle.max()) == pytest.approx((66 - 12.7062, 66 + 12.7062), rel=1e-5)


def test_it_says_over_how_many_seeds_and_which_lines_coincide(results):
    figure = across_figure(view_of(results).parts, results.experiment.across)
    said = " ".join(figure.get_supxlabel().split())
    spread = "bands: ± half of the 95 % interval over seeds (Student's t), none for a single seed"
    assert said == f"points: mean of 1 to 2 finished of 2 seeds; {spread}"
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[-2:] == ["coincide", "FedAvg + fine-tuning\nadapted\nFedAvg + fine-tuning\nglobal"]


def test_the_report_shows_it_first(results, tmp_path):
    folder = tmp_path / "report"
    assert folder / ACROSS in write_report(results, folder, "")
    page = (folder / "report.md").read_text()
    assert page.index(f"]({ACROSS})") < page.index("## ")


def test_drawn_models_alone(tmp_path):
    store, exp = Store(tmp_path), of_rates(draw=["adapted"])
    finished(store, exp, exp.cells[1].id, "fedavg-ft", 0, level_at(0.5, "adapted", "global"))
    (axes,) = across_figure(view_of(Results(store, exp)).parts, Results(store, exp).experiment.across).axes
    assert [line.get_label() for line in axes.lines] == ["FedAvg + fine-tuning adapted"]


@pytest.mark.parametrize("across", ["data.name", "data.beta", "rounds.x", "nothing"])
def test_refuses_what_is_no_number_of_every_cell(across):
    with pytest.raises(ConfigError, match=f"across = '{across}' must name a number"):
        experiment([{"name": "local"}], cells=[{"data": {"name": "synthetic", "alpha": 1.0}}], across=across)


def test_a_panel_for_each_diagnostic(said):
    figure = diagnostics_figure(part_of(said, said.experiment.cells[0]), runs_of(said))
    gap, dual = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["dual objective", "duality gap"]
    np.testing.assert_allclose(dual.lines[0].get_xydata()[-1], (20, 1 / 3))
    np.testing.assert_allclose(gap.lines[0].get_xydata(), [(20, -12345.678)])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["method", "mine"]
    assert figure.told == ("lines: 1 finished of 2 seeds",)


def test_nothing_said(toy, cell):
    with pytest.raises(ConfigError, match="cell 'cell0' has no diagnostics"):
        diagnostics_figure(part_of(toy, cell), runs_of(toy))


def test_bands_are_intervals_over_the_seeds_and_the_caption_says_so(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "fedavg"}])
    for seed, value in ((0, 1.0), (1, 3.0)):
        run = start(store, exp, "cell0", "fedavg", seed)
        record(store, run, 20, TRAINED[20], diagnostics={"steps": value})
        store.finish(run, "done")
    figure = diagnostics_figure(part_of(Results(store, exp), exp.cells[0]), runs_of(Results(store, exp)))
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    half = over_seeds([1.0, 3.0]).half_width
    assert (band.min(), band.max()) == pytest.approx((2 - half, 2 + half))
    assert figure.told == ("lines: mean of 2 seeds; bands: ± half of the 95 % interval over seeds (Student's t)",)


def test_each_method_has_a_row_with_its_marks(timed):
    (axes,) = times_figure(part_of(timed, timed.experiment.cells[0])).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["FedAvg", "FedPer", "Ditto", "Local"]
    measured, published = axes.lines
    np.testing.assert_allclose(measured.get_xdata(), [4, 1, 1])
    np.testing.assert_allclose(np.round(measured.get_ydata()), [0, 1, 3])
    np.testing.assert_allclose(published.get_xdata(), [3, 1, 6])
    np.testing.assert_allclose(np.round(published.get_ydata()), [0, 1, 2])
    assert [text.get_text() for text in axes.texts] == ["4.0", "1.0", "1.0", "3.0", "1.0", "6.0"]
    assert axes.get_xlabel() == "seconds per round, as multiples of FedPer's"


def test_it_says_over_how_many_seeds_of_times(timed, tmp_path):
    cell = timed.experiment.cells[0]
    assert times_figure(part_of(timed, cell)).get_supxlabel() == (
        "measured: mean of 2 seeds, training without compilation; published: on the paper's machine"
    )
    nothing = Results(Store(tmp_path), timed.experiment)
    assert times_figure(part_of(nothing, cell)).get_supxlabel().startswith("measured: no run has finished")


def test_ticks_are_plain_numbers(timed):
    figure = times_figure(part_of(timed, timed.experiment.cells[0]))
    figure.draw_without_rendering()
    axis = figure.axes[0].xaxis
    low, high = axis.get_view_interval()  # older versions of matplotlib have labels beyond it, which are not drawn
    labels = (*axis.get_ticklabels(), *axis.get_ticklabels(minor=True))
    shown = [t.get_text() for t in labels if t.get_text() and low <= t.get_position()[0] <= high]
    assert {"1", "2", "3", "5"} <= {*shown} <= {"0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5", "10", "20"}


def test_before_the_base_has_run_published_times_stand_alone(tmp_path):
    exp = experiment([{"name": "fedavg", "published_seconds": 2}])
    (axes,) = times_figure(part_of(Results(Store(tmp_path), exp), exp.cells[0])).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[], [1.0]]


def test_the_report_shows_times_and_no_curves(timed, tmp_path):
    paths = write_report(timed, tmp_path, "")
    assert [path.name for path in paths if path.suffix == ".png"] == ["cell0-times.png"]
    assert (
        "seconds per round, measured and published](figures/cell0-times.png)" in (tmp_path / "report.md").read_text()
    )
