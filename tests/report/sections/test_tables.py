import pytest

from idiolect.core.errors import ConfigError
from idiolect.metrics.registry import METRICS
from idiolect.report.markdown import markdown_extra
from idiolect.report.sections.registry import sections_of
from idiolect.report.sections.tables import few_seeds, times_of
from idiolect.report.text import some
from idiolect.study.analyse.pairs import pairs_of
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import NAN, experiment, finished


def test_seconds_a_round_stand_beside_published_ones_as_multiples_of_the_papers_fastest(timed):
    (extra,) = sections_of(timed, timed.experiment.cells[0])
    assert extra.header == ("method", "measured", "times fedper", "published", "times fedper, published")
    # 20 rounds in 4 seconds on average, 1 and 1.
    assert extra.rows == (
        ("fedavg", "0.2", "4.00", "16.5", "3.00"),
        ("fedper", "0.05", "1.00", "5.5", "1.00"),
        ("ditto", "—", "—", "33", "6.00"),
        ("local", "0.05", "1.00", "—", "—"),
    )


def test_published_seconds_are_no_hyperparameter_and_positive():
    (method,) = experiment([{"name": "fedavg", "published_seconds": 2}]).cells[0].methods
    assert method.spec == {"name": "fedavg"}
    with pytest.raises(ConfigError, match="published_seconds"):
        experiment([{"name": "fedavg", "published_seconds": 0}])


def test_methods_are_told_apart_where_there_are_several_seeds(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "local"}, {"name": "fedavg"}], seeds=2)
    for seed in (0, 1):
        finished(store, exp, "cell0", "local", seed, {20: {"local": (0.9, 0.9, 0.9 + seed / 50, NAN)}})
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.9, 0.9, 0.1, NAN)}})
    results = Results(store, exp)
    (extra,) = sections_of(results, exp.cells[0])
    assert extra.title == (
        "Compared with local: paired over 2 seeds, 95 % interval; clients beyond noise. Two seeds show only a mean "
        "difference of more than 12.7 times its standard error, and no difference below 22.46 points. A smaller one "
        "may exist, and so may runs that fail now and then: use five seeds or more."
    )
    assert extra.header == (
        *("method", "model", "difference", "p, Holm"),
        *("gain", "lose", "no difference", "clients that lose"),
    )
    (row,) = extra.rows
    pair = pairs_of(results, exp.cells[0])[0]
    assert row[:2] == ("fedavg", "global")
    assert row[2].startswith(f"-40.50 [{pair.difference.low:.2f}, ")
    assert row[3:] == (f"{pair.p:.2g}", "0", "1", "2", "east")
    tuned = exp.cells[0].model_copy(update={"tune": True})
    assert [table.title for table in sections_of(results, tuned)] == [
        "Settings chosen on validation data; ± half of the 95 % interval over seeds"
    ]
    one = Results(store, exp.model_copy(update={"seeds": 1}))
    assert sections_of(one, exp.cells[0]) == ()


def test_a_difference_without_an_interval_has_the_reason(tmp_path):
    """Two seeds with equal mean squared errors but for a constant: the spread is not known."""
    methods = [{"name": "local"}, {"name": "fedavg"}]
    store, exp = Store(tmp_path), experiment(methods, cells=[{"data": {"name": "school"}, "model": "linear"}])
    for seed in (0, 1):
        finished(store, exp, "cell0", "local", seed, {20: {"local": (0.5, 0.5, 0.5, NAN)}}, task="regression")
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.25, 0.25, 0.25, NAN)}}, task="regression")
    (extra,) = sections_of(Results(store, exp), exp.cells[0])
    assert extra.rows[0][2:4] == ("-0.2500 [—: equal in every seed]", "—")
    assert extra.title.endswith("12.7 times its standard error. A smaller one may exist, and so may runs that fail "
                                "now and then: use five seeds or more.")  # fmt: skip
    assert "nan" not in markdown_extra(extra)


def test_few_seeds_are_said_to_be_few():
    accuracy = METRICS["accuracy"]
    assert few_seeds(3, 0.21, accuracy) == (
        "3 seeds are few: intervals and p values are rough, and no difference below 0.21 points can be shown."
    )
    assert few_seeds(4, NAN, accuracy) == "4 seeds are few: intervals and p values are rough."


def test_few_of_many_names_are_shown():
    assert some([]) == "—"
    assert some(["a", "b", "c", "d", "e"]) == "a, b, c, d, e"
    assert some([*"abcdefg"]) == "a, b, c, d, e and 2 more"


def test_a_second_published_value_stands_in_a_table_of_its_own(tmp_path):
    values = [{"model": "global", "value": 70.0}, {"model": "global", "value": 1.2, "within": 0.02, "metric": "loss"}]
    store, exp = Store(tmp_path), experiment([{"name": "fedavg", "published": values}], seeds=2)
    for seed in (0, 1):
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.7, 0.7, 0.7, NAN)}})
    (table,) = [
        t for t in sections_of(Results(store, exp), exp.cells[0]) if t.title.startswith("Other published values; ±")
    ]
    row = ("fedavg", "global", "loss", "1.300 ± 0.000", "1.200", "+0.1000", "differs, unexplained")
    assert [cell if i != 5 else cell.split()[0] for i, cell in enumerate(table.rows[0])] == list(row)
    assert len(table.rows) == 1


def test_multiples_of_the_papers_fastest(timed, toy, cell):
    assert times_of(toy, cell) is None
    times = times_of(timed, timed.experiment.cells[0])
    assert (times.base, times.counts) == ("fedper", (2, 2, 2))
    assert times.measured == pytest.approx({"fedavg": 0.2, "fedper": 0.05, "local": 0.05})
    assert times.multiples(times.measured) == pytest.approx({"fedavg": 4.0, "fedper": 1.0, "local": 1.0})
    assert times.multiples(times.published) == pytest.approx({"fedavg": 3.0, "fedper": 1.0, "ditto": 6.0})
