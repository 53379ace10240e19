from dataclasses import replace

from idiolect.metrics.registry import METRICS
from idiolect.report.markdown import (
    columns_text,
    escaped,
    explanation,
    heading,
    markdown_table,
    ranks_text,
    report_text,
)
from idiolect.report.view.from_store import metric_texts, part_of, split_text, view_of
from idiolect.study.analyse.ranks import Ranks, critical_difference, ranks_of
from idiolect.study.analyse.results import Results
from tests.study.analyse.test_ranks import CELLS, measured


def test_markdown(toy, cell):
    lines = markdown_table(part_of(toy, cell)).splitlines()
    assert lines[:5] == [
        "**cell0: test accuracy in %, last round, 2 seeds, ± half of the 95 % interval**",
        "",
        "| method | model | accuracy | published | difference | verdict | client mean | worst 10 % | hurt vs Local "
        "| hurt vs FedAvg | seconds |",
        "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
        "| fedavg | global | 72.50 | 70.00 ± 0.50 | +2.50 | close | 71.67 | 70.00 | 67 % | 0 % | 1.25 |",
    ]
    assert lines[5].startswith("| local | local | **80.00 ± 31.77** |")
    assert lines[-2:] == ["- fedavg: over 1 of 2 seeds (1 diverged)", "- pfedme: 2 not run of 2 seeds"]


def test_markdown_marks_are_escaped(toy, cell):
    assert escaped("a|b*c`<d") == "a\\|b\\*c\\`\\<d"
    named = cell.model_copy(update={"title": "a | b"})
    assert markdown_table(part_of(toy, named)).startswith("**a \\| b: test accuracy")


def test_macro_f1_stands_beside_accuracy(by_class):
    markdown = markdown_table(part_of(by_class, by_class.experiment.cells[0]))
    assert (
        "| **72.50 ± 0.00** | 53.33 ± 0.00 | macro-F1 54.00 ± 0.50 | -0.67 [-1.65, +0.31] | consistent, wide |"
        in markdown
    )


def test_each_metric_is_told_once(toy):
    told = metric_texts([METRICS["accuracy"], METRICS["accuracy"], METRICS["mse"]])
    assert len(told) == 2
    assert all(f"- {text}" in columns_text(view_of(toy)) for text in told[:1])
    assert split_text(toy) in columns_text(view_of(toy))


def test_what_was_chosen_after_test_results_is_said(toy):
    assert "had been seen" not in report_text(view_of(toy))
    told = Results(toy.store, toy.experiment.model_copy(update={"after_test": "the rate of fedavg."}))
    page = report_text(view_of(told))
    assert "**Chosen after test results had been seen:** the rate of fedavg." in page
    assert "Verdicts on published values. **agrees**" in page


def test_the_section_has_each_method_and_says_where_cells_are_no_trials_of_their_own(tmp_path):
    section = ranks_text(ranks_of(measured(tmp_path / "a", CELLS)))
    assert section.startswith("## Ranks over 2 data sets (3 cells)\n")
    assert "| fedavg | global | 1.50 |\n| local | local | 2.00 |\n| pfedme | personal | 2.50 |" in section
    assert section.endswith(
        "1 is the best. Cells of one data set are no independent trials: their ranks are averaged first, and each "
        "data set counts once. Two methods differ at 5 % where their ranks are "
        f"{critical_difference(3, 2):.2f} apart or more (Nemenyi's critical difference, over all pairs of methods "
        "and 2 data sets). No two methods are so far apart, so these ranks show no difference. Source: Demšar, "
        "JMLR 2006."
    )
    others = [CELLS[0], {"data": {"name": "vehicle"}}, CELLS[2]]
    section = ranks_text(ranks_of(measured(tmp_path / "b", others)))
    assert "averaged first" not in section
    assert f"ranks are {critical_difference(3, 3):.2f} apart" in section
    assert "all are alike: p = 0.37." in section
    assert ranks_text(ranks_of(measured(tmp_path / "c", CELLS[:2]))) == ""


def test_ranks_that_differ_are_not_said_to_be_alike():
    far = Ranks((("a", "m"), ("b", "m")), (1.0, 3.0), 0.01, 1.9, 12, 12)
    assert "show no difference" not in explanation(far)
    assert "show no difference" in explanation(replace(far, critical=2.1))
    assert heading(replace(far, data=1)) == "## Ranks over 1 data set (12 cells)"
