"""Known clients beside new ones, over seeds."""

import math

import pytest

from idiolect.study.held_out import NEW
from idiolect.study.intervals import paired
from idiolect.study.newcomers import new_lines, refusals
from idiolect.study.results import Results
from idiolect.study.store import Store
from tests.report.stores import NAN, experiment, finished, record


def test_the_gap_is_paired_by_seed_and_in_the_units_shown(tmp_path):
    """Means over the clients by hand: known .8, .7; new .5, .6; so -30 and -10 points."""
    store, exp = Store(tmp_path), experiment([{"name": "fedavg"}, {"name": "mocha"}], seeds=2)
    for seed, known, new in ((0, (0.9, 0.7, 0.8, NAN), (0.4, 0.6)), (1, (0.7, 0.7, 0.7, NAN), (0.6, 0.6))):
        run = finished(store, exp, "cell0", "fedavg", seed, {20: {"global": known}})
        record(store, run, 20, {"global": new}, splits=(NEW,), counts=(3, 9))
    store.set_fact(f"{NEW} {finished(store, exp, 'cell0', 'mocha', 0, {20: {'personal': known}})}", "no row")
    results = Results(store, exp)
    cell = exp.cells[0]
    (line,) = new_lines(results, cell)
    assert (line.method, line.model) == ("fedavg", "global")
    assert (line.known.mean, line.new.mean) == (pytest.approx(0.75), pytest.approx(0.55))
    assert line.mean == pytest.approx(-20)
    expected = paired([50, 60], [80, 70], resolution=100 / (2 * 3))  # of two new clients one has three samples
    assert expected.high - expected.mean > 1.1 * (paired([50, 60], [80, 70]).high + 20)
    assert (line.gap.low, line.gap.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert refusals(results, cell) == {"mocha": "no row"}


def test_one_seed_has_a_gap_without_an_interval_and_a_value_that_is_missing_none(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1)
    run = finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.5, 0.5, 0.5, NAN)}})
    record(store, run, 20, {"global": (0.6, 0.8)}, splits=(NEW,), counts=(3, 9))
    finished(store, exp, "cell0", "local", 0, {20: {"local": (0.5, 0.5, 0.5, NAN)}})
    (line,) = new_lines(Results(store, exp), exp.cells[0])
    assert (line.gap, line.mean) == (None, pytest.approx(20))
    assert math.isnan(line.new.std)
