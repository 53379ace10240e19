"""The figure of a sweep: each setting has a place of its own above its value, and what diverged is to be seen."""

import io
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from idiolect.metrics.registry import METRICS
from idiolect.report.style import HIT, MISS, PALE
from idiolect.report.sweeps import (
    experiment_file,
    frame,
    read_swept,
    rich_sweep,
    sweep_figure,
    sweep_text,
    to_dict,
    write_sweep,
)
from idiolect.study.search.choose import NONE, Swept, Tried, setting_of
from idiolect.study.spec.experiment import comparison_of, load_experiment
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


BUDGET = {"fedavg": {"settings": 3, "rounds x runs": 48}, "ditto": {"settings": 1, "rounds x runs": 16}}
FILES = ["chosen.toml", "report.md", "sweep.csv", "sweep.png", "sweep.svg"]
SPLITS = ["train", "validation", "test"]


def made(*tried, by="accuracy", **settings):
    """A sweep of (method, fixed settings, values, the fields of what was tried)."""
    methods = list({name: {"name": name, **fixed} for name, fixed, _, _ in tried}.values())
    options = {"seeds": 2, "first_seed": 5, "rounds": 8, "splits": SPLITS, **settings}
    experiment = comparison_of("d", {"name": "synthetic", "clients": 4}, {"name": "mlr"}, methods, **options)
    cell = experiment.cells[0]
    rows = [
        Tried(setting_of(cell, {"name": name, **fixed}, values), **fields) for name, fixed, values, fields in tried
    ]
    return Swept(experiment, METRICS[by], tuple(rows), BUDGET)


def scored(*values, **more):
    return {"validation": over_seeds(values), "rounds": 8, **more}


@pytest.fixture
def search():
    """One that diverged, one dropped after four rounds, and a chosen one of each method."""
    fixed = {"local_steps": 3}
    return made(
        ("fedavg", fixed, {"rate": 0.25}, scored(0.5, 0.75, chosen=True, test=over_seeds([0.25, 0.375]))),
        ("fedavg", fixed, {"rate": 0.5}, scored(1 / 3, 1 / 3) | {"rounds": 4}),
        ("fedavg", fixed, {"rate": 9.0}, {"validation": NONE, "rounds": 8, "failures": ("a: x", "b: y")}),
        ("ditto", {}, {"rate": 0.125, "model.l2": 0.01}, scored(0.5, chosen=True, test=over_seeds([0.75]))),
    )


def printed(table, width=200):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def column(table, header):
    (found,) = [c for c in table.columns if c.header == header]
    return list(found.cells)


def test_the_frame_has_every_number_of_every_setting(search):
    table = frame(search)
    assert [*table.columns] == [
        *("method", "rate", "validation", "validation_std", "validation_ci95", "seeds", "rounds", "chosen"),
        *("test", "test_std", "test_ci95", "failures", "model.l2"),
    ]
    first, second, third, fourth = table.to_dict("records")
    std = 0.25 / math.sqrt(2)
    assert [first[key] for key in ("method", "rate", "validation", "seeds", "rounds", "chosen", "test")] == [
        "fedavg", 0.25, 0.625, 2, 8, True, 0.3125]  # fmt: skip
    assert (first["validation_std"], first["test_std"]) == (pytest.approx(std), pytest.approx(std / 2))
    half = 12.7062 * std / math.sqrt(2)  # Student's t with one degree of freedom
    assert (first["validation_ci95"], first["test_ci95"]) == pytest.approx((half, half / 2), rel=1e-5)
    assert (second["validation"], second["rounds"], second["chosen"]) == (1 / 3, 4, False)
    assert all(pd.isna(second[key]) for key in ("test", "test_std", "model.l2"))
    assert (third["seeds"], third["failures"]) == (0, "a: x; b: y")
    assert (fourth["method"], fourth["model.l2"], fourth["seeds"], fourth["failures"]) == ("ditto", 0.01, 1, "")
    assert pd.isna(fourth["validation_std"])


def test_the_table_says_what_was_chosen_and_what_was_spent(search):
    table = rich_sweep(search)
    assert table.title == "compare-d: chosen by validation accuracy, %"
    spent = "fedavg: 3 settings, 48 rounds x runs; ditto: 1 settings, 16 rounds x runs"
    assert table.caption == f"spent on choosing: {spent}\nafter ±: half of the 95 % interval over seeds (Student's t)"
    assert [c.header for c in table.columns] == ["method", "setting", "validation", "rounds", "test", ""]
    assert column(table, "method") == ["fedavg", "fedavg", "fedavg", "ditto"]
    assert column(table, "setting") == ["rate=0.25", "rate=0.5", "rate=9", "rate=0.125, model.l2=0.01"]
    assert column(table, "validation") == ["62.50 ± 158.83", "33.33 ± 0.00", "—", "50.00"]
    assert column(table, "rounds") == ["8", "4", "8", "8"]
    assert column(table, "test") == ["31.25 ± 79.41", "", "", "75.00"]
    assert column(table, "") == ["chosen", "", "diverged", "chosen"]
    assert [row.style for row in table.rows] == ["bold", "", "red", "bold"]
    assert [c.justify for c in table.columns] == ["left", "left", "right", "right", "right", "left"]
    assert "62.50 ± 158.83" in printed(table)


def test_what_is_not_read_in_per_cent_is_shown_as_it_is():
    table = rich_sweep(made(("fedavg", {}, {"rate": 0.5}, scored(0.5)), by="mse"))
    assert table.title == "compare-d: chosen by validation mse"
    assert column(table, "validation") == ["0.5000"]


def test_test_scores_of_what_was_not_chosen_are_said_to_have_no_say(search):
    first, second, *others = search.tried
    more = Tried(second.setting, second.validation, 4, test=over_seeds([0.5]))
    table = rich_sweep(Swept(search.experiment, search.metric, (first, more, *others), search.budget))
    assert column(table, "test (shown, no say in the choice)")[:2] == ["31.25 ± 79.41", "50.00"]


def test_json_has_the_rows_of_the_frame_and_null_where_there_is_no_number(search):
    said = to_dict(search)
    assert (said["metric"], said["budget"]) == ("accuracy", BUDGET)
    assert [[*row] for row in said["settings"]] == [[*frame(search).columns]] * 4
    _, second, third, fourth = said["settings"]
    assert second["validation"] == pytest.approx(1 / 3, rel=1e-14)
    assert (second["test"], third["validation"], fourth["validation_std"]) == (None, None, None)
    assert (fourth["chosen"], third["chosen"], third["failures"]) == (True, False, "a: x; b: y")


def test_files_say_the_same_and_the_chosen_setting_is_an_experiment(search, tmp_path):
    write_sweep(search, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    content = (tmp_path / "sweep.csv").read_bytes()
    assert content.startswith(b"method,rate,validation")
    assert (content.count(b"\n"), content.count(b"\r")) == (5, 0)
    assert b",0.3333333333333333,0.0,0.0,2,4,False," in content
    read = pd.read_csv(io.BytesIO(content)).fillna({"failures": ""})
    pd.testing.assert_frame_equal(read, frame(search), check_dtype=False)
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "chosen.toml").read_text() == experiment_file(search)
    found = load_experiment(tmp_path / "chosen.toml")
    assert (found.name, found.seeds, found.first_seed) == ("compare-d-chosen", 2, 5)
    assert [cell.id for cell in found.cells] == ["d fedavg", "d ditto"]
    assert [cell.methods[0].spec for cell in found.cells] == [
        {"name": "fedavg", "local_steps": 3, "rate": 0.25}, {"name": "ditto", "rate": 0.125}]  # fmt: skip
    assert [cell.model for cell in found.cells] == [{"name": "mlr"}, {"name": "mlr", "l2": 0.01}]
    assert {cell.splits for cell in found.cells} == {("train", "test")}


def test_intervals_are_read_back_also_of_older_files_that_have_only_deviations(search, tmp_path):
    write_sweep(search, tmp_path)
    expected = search.tried[0].validation.half_width
    assert read_swept(tmp_path, search.experiment, "classification").tried[0].validation.half_width == pytest.approx(
        expected
    )
    old = pd.read_csv(tmp_path / "sweep.csv").drop(columns=["validation_ci95", "test_ci95"])
    old.to_csv(tmp_path / "sweep.csv", index=False)
    assert read_swept(tmp_path, search.experiment, "classification").tried[0].validation.half_width == pytest.approx(
        expected
    )


def test_where_nothing_was_chosen_there_is_no_experiment(tmp_path):
    write_sweep(made(("fedavg", {}, {"rate": 0.5}, {"validation": NONE, "rounds": 8, "failures": ("x",)})), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES[1:]


def test_the_chosen_experiment_has_the_cells_settings(tmp_path):
    settings = {"rounds": 9, "cohort": 2.5, "sampling": "binomial", "eval_every": 3, "shared_init": True}
    settings |= {"metric": "macro-f1"}
    tried = ("fedavg", {}, {"rate": 0.5}, scored(0.5, chosen=True))
    write_sweep(made(tried, **settings), tmp_path)
    (cell,) = load_experiment(tmp_path / "chosen.toml").cells
    assert {key: getattr(cell, key) for key in settings} == settings
    assert (cell.id, cell.data) == ("d", {"name": "synthetic", "clients": 4})
    assert cell.methods[0].title == "fedavg"
    write_sweep(made(tried, **settings | {"cohort": None}), tmp_path)
    assert "cohort" not in (tmp_path / "chosen.toml").read_text()


FAILED = {"validation": NONE, "rounds": 8, "failures": ("fedavg rate=9: NaN | *",)}


def test_the_page_has_a_row_for_each_setting(tmp_path):
    chosen = scored(0.5, 0.75, chosen=True, test=over_seeds([0.25, 0.375]))
    swept = made(
        ("fedavg", {}, {"rate": 0.25}, chosen), ("fedavg", {}, {"rate": 0.5}, scored(0.5, 0.5)),
        ("fedavg", {}, {"rate": 9.0}, FAILED),
    )  # fmt: skip
    paths = write_sweep(swept, tmp_path, "idiolect sweep --data synthetic")
    assert all(path.is_file() for path in paths)
    assert {path.name for path in paths} == {path.name for path in tmp_path.iterdir()}
    text = (tmp_path / "report.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| fedavg")]
    assert len(rows) == 3
    assert [row.split(" | ")[-1].strip(" |") for row in rows] == ["chosen", "", "diverged"]
    assert "62.50" in rows[0]
    assert "31.25" in rows[0]
    assert "| diverged |" in rows[2]
    assert "made by: `idiolect sweep --data synthetic`" in text
    assert "(sweep.png)" in text
    assert "idiolect run chosen.toml" in text
    assert "NaN \\| \\*" in text
    assert "--show-test" not in text


def test_where_all_diverged_it_says_so():
    text = sweep_text(made(("fedavg", {}, {"rate": 9.0}, FAILED)))
    assert "**Every setting diverged.**" in text
    assert "chosen.toml" not in text


def test_test_scores_that_were_asked_for_are_named_as_such():
    tested = scored(0.5, 0.75, test=over_seeds([0.25, 0.375]))
    swept = made(("fedavg", {}, {"rate": 0.25}, tested | {"chosen": True}), ("fedavg", {}, {"rate": 0.5}, tested))
    assert "--show-test" in sweep_text(swept)
