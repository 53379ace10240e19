import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.across import across_figure
from idiolect.report.markdown import ACROSS
from idiolect.report.page import write_report
from idiolect.report.view.from_store import view_of
from idiolect.study.results import Results
from idiolect.study.store import Store
from tests.report.stores import experiment, finished

RATES = (0.5, 0.0, 0.25)


def of_rates(**more):
    """Three cells that differ in a number of their data, not in order."""
    cells = [{"data": {"name": "synthetic", "alpha": rate}, **more} for rate in RATES]
    return experiment([{"name": "fedavg-ft"}, {"name": "local"}], seeds=2, cells=cells, across="data.alpha")


def course(level, *models):
    return {20: dict.fromkeys(models, (level,) * 3 + (np.nan,))}


@pytest.fixture
def results(tmp_path):
    store, exp = Store(tmp_path), of_rates()
    for cell, rate in zip(exp.cells, RATES, strict=True):
        for seed in (0, 1):
            finished(store, exp, cell.id, "fedavg-ft", seed, course(0.9 - rate + 0.02 * seed, "adapted", "global"))
    first = exp.cells[0].id
    finished(store, exp, first, "local", 0, course(0.6, "local"))
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
    finished(store, exp, exp.cells[1].id, "fedavg-ft", 0, course(0.5, "adapted", "global"))
    (axes,) = across_figure(view_of(Results(store, exp)).parts, Results(store, exp).experiment.across).axes
    assert [line.get_label() for line in axes.lines] == ["FedAvg + fine-tuning adapted"]


@pytest.mark.parametrize("across", ["data.name", "data.beta", "rounds.x", "nothing"])
def test_refuses_what_is_no_number_of_every_cell(across):
    with pytest.raises(ConfigError, match=f"across = '{across}' must name a number"):
        experiment([{"name": "local"}], cells=[{"data": {"name": "synthetic", "alpha": 1.0}}], across=across)
