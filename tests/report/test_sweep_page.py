"""The page of a sweep says what was tried, what was chosen, and what failed."""

from idiolect.report.sweep_page import sweep_text, write_sweep
from idiolect.study.search.choose import NONE
from idiolect.study.store.summary import over_seeds
from tests.report.test_sweeps import made, scored

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
    assert [row.count("**") for row in rows] == [2, 0, 0]
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
