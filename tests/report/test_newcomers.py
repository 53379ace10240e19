"""What `personalize` writes, and its figure."""

import re

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import StoreError
from idiolect.metrics.registry import METRICS
from idiolect.report.newcomers import check_new, own_samples_figure
from idiolect.report.sections.registry import sections_of
from idiolect.study.analyse.results import Results
from idiolect.study.run.newcomers import NEW
from idiolect.study.store.store import Store
from tests.report.stores import NAN, experiment, finished, record


def test_the_figure_shows_means_over_clients_and_their_middle_half():
    rows = [
        {"samples": n, "model": model, "client": f"c{i}", "accuracy": value}
        for model, lift in (("personal", 0.0), ("global", 0.1))
        for n in (1, 5, 40)
        for i, value in enumerate((0.1 + lift, 0.2 + lift, 0.6 + lift, np.nan))
    ]
    figure = own_samples_figure(pd.DataFrame(rows), METRICS["accuracy"], "Ditto")
    (axes,) = figure.axes
    personal, glob = axes.lines
    assert [list(line.get_xdata()) for line in (personal, glob)] == [[1, 5, 40]] * 2
    np.testing.assert_allclose(personal.get_ydata(), [30.0] * 3)
    np.testing.assert_allclose(glob.get_ydata(), [40.0] * 3)
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (pytest.approx(15), pytest.approx(40))  # quartiles of 10, 20, 60
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "test accuracy, %"


def test_a_folder_that_holds_anything_is_refused(tmp_path):
    check_new(tmp_path / "new")
    check_new(tmp_path)
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(StoreError, match=re.escape(f"'{path}' is not empty; use another --out")):
            check_new(path)


def test_a_report_sets_known_clients_beside_the_held_out_ones(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "fedavg"}, {"name": "mocha"}], seeds=1)
    run = finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.5, 0.7, 0.6, NAN)}})
    record(store, run, 20, {"global": (0.4, 0.5)}, splits=(NEW,), counts=(3, 9))
    refused = finished(store, exp, "cell0", "mocha", 0, {20: {"personal": (0.5, 0.7, 0.6, NAN)}})
    store.set_fact(f"{NEW} {refused}", "no row for them")
    (extra,) = sections_of(Results(store, exp), exp.cells[0])
    assert extra.title == "New clients, held out of training: test accuracy, mean of the clients"
    assert extra.header == ("method", "model", "known", "new", "new minus known")
    assert extra.rows == (
        ("fedavg", "global", "60.00", "45.00", "-15.00"),
        ("mocha", "no row for them", "—", "—", "—"),
    )
