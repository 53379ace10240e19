import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.diagnostics_figure import diagnostics_figure
from idiolect.report.view.from_store import part_of, runs_of
from idiolect.study.results import Results
from idiolect.study.store import Store
from idiolect.study.summary import over_seeds
from tests.report.stores import TRAINED, experiment, record, start


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
