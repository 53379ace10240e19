import io
import math

import pandas as pd
import pytest
from rich.console import Console

from idiolect.metrics.registry import METRICS
from idiolect.report.sweep_page import write_sweep
from idiolect.report.sweeps import experiment_file, frame, read_swept, rich_sweep, to_dict
from idiolect.study.search.choose import NONE, Swept, Tried, setting_of
from idiolect.study.spec.experiment import comparison_of, load_experiment
from idiolect.study.store.summary import over_seeds

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
def swept():
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


def test_the_frame_has_every_number_of_every_setting(swept):
    table = frame(swept)
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


def test_the_table_says_what_was_chosen_and_what_was_spent(swept):
    table = rich_sweep(swept)
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


def test_test_scores_of_what_was_not_chosen_are_said_to_have_no_say(swept):
    first, second, *others = swept.tried
    more = Tried(second.setting, second.validation, 4, test=over_seeds([0.5]))
    table = rich_sweep(Swept(swept.experiment, swept.metric, (first, more, *others), swept.budget))
    assert column(table, "test (shown, no say in the choice)")[:2] == ["31.25 ± 79.41", "50.00"]


def test_json_has_the_rows_of_the_frame_and_null_where_there_is_no_number(swept):
    said = to_dict(swept)
    assert (said["metric"], said["budget"]) == ("accuracy", BUDGET)
    assert [[*row] for row in said["settings"]] == [[*frame(swept).columns]] * 4
    _, second, third, fourth = said["settings"]
    assert second["validation"] == pytest.approx(1 / 3, rel=1e-14)
    assert (second["test"], third["validation"], fourth["validation_std"]) == (None, None, None)
    assert (fourth["chosen"], third["chosen"], third["failures"]) == (True, False, "a: x; b: y")


def test_files_say_the_same_and_the_chosen_setting_is_an_experiment(swept, tmp_path):
    write_sweep(swept, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    content = (tmp_path / "sweep.csv").read_bytes()
    assert content.startswith(b"method,rate,validation")
    assert (content.count(b"\n"), content.count(b"\r")) == (5, 0)
    assert b",0.3333333333333333,0.0,0.0,2,4,False," in content
    read = pd.read_csv(io.BytesIO(content)).fillna({"failures": ""})
    pd.testing.assert_frame_equal(read, frame(swept), check_dtype=False)
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "chosen.toml").read_text() == experiment_file(swept)
    found = load_experiment(tmp_path / "chosen.toml")
    assert (found.name, found.seeds, found.first_seed) == ("compare-d-chosen", 2, 5)
    assert [cell.id for cell in found.cells] == ["d fedavg", "d ditto"]
    assert [cell.methods[0].spec for cell in found.cells] == [
        {"name": "fedavg", "local_steps": 3, "rate": 0.25}, {"name": "ditto", "rate": 0.125}]  # fmt: skip
    assert [cell.model for cell in found.cells] == [{"name": "mlr"}, {"name": "mlr", "l2": 0.01}]
    assert {cell.splits for cell in found.cells} == {("train", "test")}


def test_intervals_are_read_back_also_of_older_files_that_have_only_deviations(swept, tmp_path):
    write_sweep(swept, tmp_path)
    expected = swept.tried[0].validation.half_width
    assert read_swept(tmp_path, swept.experiment, "classification").tried[0].validation.half_width == pytest.approx(
        expected
    )
    old = pd.read_csv(tmp_path / "sweep.csv").drop(columns=["validation_ci95", "test_ci95"])
    old.to_csv(tmp_path / "sweep.csv", index=False)
    assert read_swept(tmp_path, swept.experiment, "classification").tried[0].validation.half_width == pytest.approx(
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
