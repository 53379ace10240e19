import numpy as np

from idiolect.report.page import write_report
from idiolect.report.times_figure import times_figure
from idiolect.report.view.from_store import part_of
from idiolect.study.results import Results
from idiolect.study.store import Store
from tests.report.stores import experiment


def test_each_method_has_a_row_with_its_marks(timed):
    (axes,) = times_figure(part_of(timed, timed.experiment.cells[0])).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["FedAvg", "FedPer", "Ditto", "Local"]
    measured, published = axes.lines
    np.testing.assert_allclose(measured.get_xdata(), [4, 1, 1])
    np.testing.assert_allclose(np.round(measured.get_ydata()), [0, 1, 3])
    np.testing.assert_allclose(published.get_xdata(), [3, 1, 6])
    np.testing.assert_allclose(np.round(published.get_ydata()), [0, 1, 2])
    assert [text.get_text() for text in axes.texts] == ["4.0", "1.0", "1.0", "3.0", "1.0", "6.0"]
    assert axes.get_xlabel() == "seconds a round, as multiples of FedPer's"


def test_it_says_over_how_many_seeds(timed, tmp_path):
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
    assert "seconds a round, measured and published](figures/cell0-times.png)" in (tmp_path / "report.md").read_text()
