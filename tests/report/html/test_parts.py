from dataclasses import replace

from idiolect.report.html.of_results import whole_of
from tests.report.html.made import compared


def test_the_shared_model_is_fedavgs_else_a_methods_own(tmp_path):
    part = whole_of(compared(tmp_path), "").parts[0]
    assert part.shared == ("fedavg", "global")
    without = replace(part, lines=tuple(line for line in part.lines if line.method != "fedavg"))
    assert without.shared == ("ditto", "global")
    assert replace(part, muted=frozenset({"fedavg"})).shared == ("ditto", "global")
    assert replace(part, lines=part.lines[:1]).shared is None
    assert part.entry("ditto").shown == "Ditto"
