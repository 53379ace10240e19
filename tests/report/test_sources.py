import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.kinds import KINDS, Wanted, possible
from idiolect.report.page import write_report
from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.sources import Source, opened
from tests.report.html.made import compared


def test_a_folder_of_csv_files(toy, tmp_path):
    write_csv(toy, tmp_path / "table.csv")
    clients_csv(toy, tmp_path / "clients.csv")
    with opened(tmp_path) as source:
        assert (source.results, source.cells, source.chosen("")) == (None, ("cell0",), "cell0")
        assert source.part("cell0", ["fedavg"]).drawn() == [("fedavg", "global")]
        with pytest.raises(StoreError, match="curves can be drawn from a run's"):
            source.needs_runs("curves")


def test_what_is_no_run(tmp_path):
    for folder, said in ((tmp_path / "no", "no such run"), (tmp_path, "holds no run")):
        with pytest.raises(StoreError, match=said), opened(folder):
            pass
    (tmp_path / "advice.json").write_text("{}")
    with pytest.raises(StoreError, match="holds an advice, which has a figure of its own"), opened(tmp_path):
        pass


def test_the_cell_that_is_meant(said, tmp_path, toy):
    source = Source(tmp_path, said)
    assert source.cells == ("cell0",)  # in the other nothing is finished
    with pytest.raises(ConfigError, match="unknown cell 'cell1'"):
        source.chosen("cell1")
    assert source.part("cell0", ["fedavg"]).only == (("mine",), ())  # by its name, too
    for methods, models, metric in ((["x"], [], ""), ([], ["x"], ""), ([], [], "x")):
        with pytest.raises(ConfigError, match="unknown"):
            source.part("cell0", methods, models, metric)


def test_a_report_without_its_database_gives_the_same_curves(tmp_path):
    """Curves, times and graphs come from report.json; scores of seeds from clients.csv."""
    results = compared(tmp_path / "runs")
    write_report(results, tmp_path / "report", "")
    with opened(tmp_path / "runs") as runs, opened(tmp_path / "report") as report:
        assert report.results is None
        for kind in ("curves", "clients", "gain", "table"):
            one, other = (KINDS[kind](source, Wanted()) for source in (runs, report))
            assert one.caption == other.caption
        assert possible(report) == possible(runs)
        lines = [
            [
                line.get_xydata().tolist()
                for axes in KINDS["curves"](source, Wanted()).content.axes
                for line in axes.lines
            ]
            for source in (runs, report)
        ]
        assert lines[0] == lines[1]
        with pytest.raises(StoreError, match="curves of macro-f1 can be drawn from a run's database only"):
            KINDS["curves"](report, Wanted(metric="macro-f1"))
