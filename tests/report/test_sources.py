import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.sources import Source, opened


def test_a_folder_of_csv_files(toy, tmp_path):
    write_csv(toy, tmp_path / "table.csv")
    clients_csv(toy, tmp_path / "clients.csv")
    with opened(tmp_path) as source:
        assert (source.results, source.cells, source.chosen("")) == (None, ("cell0",), "cell0")
        assert source.board("cell0", ["fedavg"], [], "").drawn() == [("fedavg", "global")]
        with pytest.raises(StoreError, match="curves can be drawn from a run's"):
            source.database("curves")


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
    assert [m.title for m in source.cell("cell0", ["fedavg"], [], "").methods] == ["mine"]  # by its name, too
    for methods, models, metric in ((["x"], [], ""), ([], ["x"], ""), ([], [], "x")):
        with pytest.raises(ConfigError, match="unknown"):
            source.cell("cell0", methods, models, metric)
