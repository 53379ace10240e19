from dataclasses import replace

from idiolect.report.ranks import explanation, heading, ranks_text
from idiolect.study.analyse.ranks import Ranks, critical_difference
from tests.study.analyse.test_ranks import CELLS, measured


def test_the_section_has_each_method_and_says_where_cells_are_no_trials_of_their_own(tmp_path):
    section = ranks_text(measured(tmp_path / "a", CELLS))
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
    section = ranks_text(measured(tmp_path / "b", others))
    assert "averaged first" not in section
    assert f"ranks are {critical_difference(3, 3):.2f} apart" in section
    assert "all are alike: p = 0.37." in section
    assert ranks_text(measured(tmp_path / "c", CELLS[:2])) == ""


def test_ranks_that_differ_are_not_said_to_be_alike():
    far = Ranks((("a", "m"), ("b", "m")), (1.0, 3.0), 0.01, 1.9, 12, 12)
    assert "show no difference" not in explanation(far)
    assert "show no difference" in explanation(replace(far, critical=2.1))
    assert heading(replace(far, data=1)) == "## Ranks over 1 data set (12 cells)"
