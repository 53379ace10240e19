import csv
import math

import pytest

from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.report.figures import curves_figure
from idiolect.report.latex import latex_table
from idiolect.report.markdown import report_text
from idiolect.report.raw import write_csv
from idiolect.report.text import LONGEST, isolated
from idiolect.report.view.from_store import part_of, view_of
from idiolect.study.analyse.intervals import Difference
from idiolect.study.spec.published import Published
from idiolect.study.store.summary import OverSeeds, over_seeds
from tests.report.html.made import compared, data_of

NAN = math.nan
ACCURACY, MSE = METRICS["accuracy"], METRICS["mse"]
NONE = OverSeeds(NAN, NAN, NAN, 0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.9562], "95.62"),
        ([0.9558, 0.9566], "95.62 ± 0.51"),
        ([0.5, 0.5], "50.00 ± 0.00"),
        ([1.0], "100.00"),
        ([0.0], "0.00"),
    ],
)
def test_accuracy_is_per_cent(values, expected):
    assert text.score(over_seeds(values), ACCURACY) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.12344], "0.1234"),
        ([0.1, 0.2], "0.1500 ± 0.6353"),
        ([9.9996], "10.00"),
        ([12345.6], "12346"),
        ([1.5e7, 1.7e7], "1.600e+07 ± 1.3e+07"),
        ([2.5e-7], "2.500e-07"),
        ([0.0], "0.000"),
        ([math.inf], "inf"),
    ],
)
def test_mse_has_four_digits(values, expected):
    assert text.score(over_seeds(values), MSE) == expected


def test_what_there_is_not_is_a_dash():
    assert text.score(NONE, ACCURACY) == "—"
    assert text.score(NONE, MSE) == "—"
    assert text.share(None) == text.share(NONE) == "—"
    assert text.seconds(NONE) == "—"
    assert text.published(None, ACCURACY, ACCURACY) == "—"
    assert text.difference(None, None, ACCURACY) == text.difference(NAN, None, MSE) == "—"


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [(0.12, "12 %"), (0.126, "13 %"), (0.0, "0 %"), (0.001, "<1 %"), (0.999, ">99 %"), (1.0, "100 %")],
)
def test_share_never_rounds_some_to_none(fraction, expected):
    assert text.share(over_seeds([fraction])) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.279, "0.28"), (9.994, "9.99"), (9.996, "10.0"), (99.96, "100"), (612.4, "612")]
)
def test_seconds(seconds, expected):
    assert text.seconds(over_seeds([seconds])) == expected


def test_published_values_stay_in_their_units():
    value = Published(model="global", value=95.62, std=0.04)
    assert text.published(value, ACCURACY, ACCURACY) == "95.62 ± 0.04"
    assert text.published(Published(model="global", value=95.6), ACCURACY, ACCURACY) == "95.60"
    assert text.published(value, METRICS["macro-f1"], ACCURACY) == "macro-F1 95.62 ± 0.04"
    assert text.published(Published(model="global", value=0.25), MSE, MSE) == "0.2500"


def test_difference_has_a_sign():
    assert text.difference(0.314, None, ACCURACY) == "+0.31"
    assert text.difference(-1.0, None, ACCURACY) == "-1.00"
    assert text.difference(-0.0123446, None, MSE) == "-0.01234"
    ends = Difference(0.3, -0.049, 0.65, 0.1, 3)
    assert text.difference(0.3, ends, ACCURACY) == "+0.30 [-0.05, +0.65]"
    assert text.plain_difference(ends) == "+0.3 [-0.049, +0.65]"


def test_a_difference_without_an_interval_has_the_reason():
    none = Difference(0.3, None, None, None, 2, "equal in every seed")
    assert text.difference(0.3, none, ACCURACY) == "+0.30 [—: equal in every seed]"
    assert text.plain_difference(none) == "+0.3 [—: equal in every seed]"


def test_p_values():
    assert text.p_value(NAN) == "—"
    assert text.p_value(0.0009) == "<0.001"
    assert (text.p_value(0.001), text.p_value(0.0456), text.p_value(1.0)) == ("0.001", "0.046", "1")


def test_what_follows_plus_minus_is_half_of_the_interval_everywhere(tmp_path):
    results = compared(tmp_path / "run")
    cell = results.experiment.cells[0]
    half = 100 * over_seeds([0.59, 0.6, 0.61]).half_width  # Local's accuracy over all samples, by seed
    shown = f"60.00 ± {half:.2f}"
    assert shown == "60.00 ± 2.48"
    assert f"| local | local | {shown} |" in report_text(view_of(results))
    assert shown in [row["cells"][2]["text"] for row in data_of(results)["cells"][0]["table"]["rows"]]
    assert shown.replace("±", r"$\pm$") in latex_table([part_of(results, cell)], "cells")
    curve = results.curves(cell, "test", ["local"])[0]
    assert 100 * curve.score_ci95[-1] == pytest.approx(half)
    band = data_of(results)["cells"][0]["curves"]["quantities"][0]["series"][0]
    assert 100 * (band["high"][-1] - band["low"][-1]) / 2 == pytest.approx(half, abs=2e-3)
    write_csv(results, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["method"] == "local")
    assert 100 * float(row["pooled_ci95"]) == pytest.approx(half)
    assert 100 * float(row["pooled_std"]) == pytest.approx(1.0)  # the deviation is in the CSV file only


def test_one_seed_has_no_plus_minus(tmp_path):
    results = compared(tmp_path / "run", seeds=1)
    page = data_of(results)["cells"][0]
    texts = [cell["text"] for row in page["table"]["rows"] for cell in row["cells"]]
    tables = report_text(view_of(results)).partition("## How to read")[0]
    assert "±" not in "".join([*texts, tables, page["curves"]["band"]])
    assert r"\pm" not in latex_table([part_of(results, results.experiment.cells[0])], "cells")


def test_every_page_names_what_follows_plus_minus(tmp_path):
    results = compared(tmp_path / "run")
    data, page = data_of(results), report_text(view_of(results))
    assert f"± {text.WIDTH}" in data["cells"][0]["table"]["caption"]
    assert f"± {text.SPREAD}" in data["cells"][0]["curves"]["band"]
    assert f"± {text.WIDTH}" in page.partition("## How to read")[0]
    assert text.SPREAD in " ".join(page.split())
    figure = curves_figure(part_of(results, results.experiment.cells[0]))
    assert f"bands: ± {text.SPREAD}" in " ".join(figure.get_supxlabel().split())


def test_a_name_stands_by_itself():
    assert isolated("north") == "\u2068north\u2069"
    assert isolated("a\u202eb\u2066c\u2069\0\n d") == "\u2068abc d\u2069"
    assert len(isolated("x" * 10_000)) == LONGEST + 2
    assert isolated(" ") == "\u2068(no name)\u2069"
