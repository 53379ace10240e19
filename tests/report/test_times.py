import pytest

from idiolect.report.times import Times, is_timed


def test_multiples_of_the_papers_fastest(timed, cell):
    assert is_timed(timed.experiment.cells[0])
    assert not is_timed(cell)
    times = Times.of(timed, timed.experiment.cells[0])
    assert times.base == "fedper"
    assert times.measured == pytest.approx({"fedavg": 0.2, "fedper": 0.05, "local": 0.05})
    assert times.multiples(times.measured) == pytest.approx({"fedavg": 4.0, "fedper": 1.0, "local": 1.0})
    assert times.multiples(times.published) == pytest.approx({"fedavg": 3.0, "fedper": 1.0, "ditto": 6.0})
