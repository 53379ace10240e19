from idiolect.report.ranks import ranks_text
from idiolect.study.ranks import critical_difference
from tests.study.test_ranks import CELLS, measured


def test_the_section_has_each_method_and_says_where_cells_are_no_trials_of_their_own(tmp_path):
    section = ranks_text(measured(tmp_path / "a", CELLS))
    assert "| local | local | 1.67 |\n| fedavg | global | 1.67 |\n| pfedme | personal | 2.67 |" in section
    assert f"ranks are {critical_difference(3, 3):.2f} apart" in section
    assert "all are alike: p = 0.37." in section
    assert "3 cells are of 2 data sets only" in section
    others = [CELLS[0], {"data": {"name": "vehicle"}}, CELLS[2]]
    assert "data sets only" not in ranks_text(measured(tmp_path / "b", others))
    assert ranks_text(measured(tmp_path / "c", CELLS[:2])) == ""
