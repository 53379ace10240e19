import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.diagnostics_figure import diagnostics_figure


def test_a_panel_for_each_diagnostic(said):
    figure = diagnostics_figure(said, said.experiment.cells[0])
    gap, dual = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["dual objective", "duality gap"]
    np.testing.assert_allclose(dual.lines[0].get_xydata()[-1], (20, 1 / 3))
    np.testing.assert_allclose(gap.lines[0].get_xydata(), [(20, -12345.678)])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["method", "mine"]
    assert figure.told == ("lines: 1 finished of 2 seeds",)


def test_nothing_said(toy, cell):
    with pytest.raises(ConfigError, match="cell 'cell0' has no diagnostics"):
        diagnostics_figure(toy, cell)
