"""Every kind of figure of the stores that have it."""

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.kinds import KINDS, Source, Wanted, name_of, opened, possible
from idiolect.report.page import write_report
from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.style import Drawing, paper
from idiolect.report.sweeps import frame
from tests.report import stores
from tests.report.html.made import compared
from tests.report.test_figures import results as across  # noqa: F401  a fixture
from tests.report.test_sweeps import points, swept


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


STYLE = paper(3.25)


def made(kind, results, folder, **more):
    with STYLE.applied():
        return KINDS[kind](Source(folder, results), Wanted(style=STYLE, **more))


def test_of_a_comparison(toy, tmp_path):
    kinds = possible(Source(tmp_path, toy))
    assert kinds == [("curves", "cell0"), ("clients", "cell0"), ("gain", "cell0"), ("table", "")]
    for kind, cell in kinds:
        one = made(kind, toy, tmp_path, cell=cell)
        assert isinstance(one.content, str if kind == "table" else Drawing)
        assert one.caption[0].isupper()
    assert made("curves", toy, tmp_path).caption.startswith(
        "Test accuracy and training loss over rounds, cell0. Lines:"
    )


def test_one_panel_and_some_methods(toy, tmp_path):
    one = made("curves", toy, tmp_path, metric="accuracy", methods=("local",))
    (axes,) = one.content.axes
    assert [line.get_label() for line in axes.lines] == ["Local"]
    assert one.caption.startswith("Test accuracy over rounds, cell0.")
    (axes,) = made("curves", toy, tmp_path, metric="loss").content.axes
    assert axes.get_ylabel() == "training loss"
    clients = made("clients", toy, tmp_path, methods=("fedavg",)).content.axes[0]
    assert [len(c.get_offsets()) for c in clients.collections] == [
        1,
        2,
    ]  # worse off than with Local


def test_of_other_runs(timed, said, across, tmp_path):  # noqa: F811
    assert possible(Source(tmp_path, timed))[0] == ("times", "cell0")
    assert made("times", timed, tmp_path).caption.startswith("Seconds per round, cell0. Measured:")
    assert ("diagnostics", "cell0") in possible(Source(tmp_path, said))
    assert made("diagnostics", said, tmp_path).caption.startswith("What the methods report")
    assert ("across", "") in possible(Source(tmp_path, across))
    assert made("across", across, tmp_path, methods=("local",)).caption.startswith(
        "Test accuracy against data.alpha."
    )


def test_of_a_graph(tmp_path):
    results = stores.tied(tmp_path)
    kinds = possible(Source(tmp_path, results))
    assert ("graph", "cell0") in kinds
    one = made("graph", results, tmp_path)
    assert one.caption.startswith("Who learns with whom, and the spectrum, cell0. FedU: graph of the clients. Left:")
    assert len(one.content.axes) == 5  # two panels a graph, and the scale of what was learned
    assert len(made("graph", results, tmp_path, methods=("fedu",)).content.axes) == 2
    with pytest.raises(ConfigError, match="no graph among clients"):
        made("graph", results, tmp_path, methods=("local",))


def test_of_a_sweep(tmp_path, toy):
    grid = [("fedavg", {"rate": r, "local_steps": k}) for r in (0.3, 0.01) for k in (5, 20)]
    frame(swept(grid, chosen=2, diverged=(1,))).to_csv(tmp_path / "sweep.csv", index=False)
    assert possible(Source(tmp_path, toy)) == [("sweep", "")]
    left, _ = made("sweep", toy, tmp_path).content.axes
    assert [y for _, y in points(left, "*")] == [pytest.approx(52.1)]
    assert len(points(left, "x")) == 1
    assert [t.get_text() for t in left.get_xticklabels()] == ["0.01", "0.3"]
    (tmp_path / "sweep.csv").write_text("a\n1\n")
    with pytest.raises(StoreError, match="is not a sweep's table"):
        made("sweep", toy, tmp_path)


def test_of_new_clients(tmp_path):
    path = tmp_path / "own-samples.csv"
    path.write_text("samples,model,client,used,n,accuracy,loss\n1,own,a,1,5,0.5,1\n4,own,a,4,5,0.75,1\n")
    assert possible(Source(tmp_path, None)) == [("newcomers", "")]
    assert [list(line.get_ydata()) for line in made("newcomers", None, tmp_path).content.axes[0].lines] == [[50, 75]]
    for more in ({"metric": "mse"}, {"models": ("x",)}):
        with pytest.raises(ConfigError):
            made("newcomers", None, tmp_path, **more)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(StoreError, match="cannot be read as scores"):
        made("newcomers", None, tmp_path)


@pytest.mark.parametrize("kind", ["times", "across", "sweep", "newcomers", "diagnostics", "graph"])
def test_what_a_run_does_not_have(toy, tmp_path, kind):
    with pytest.raises((ConfigError, StoreError)):
        made(kind, toy, tmp_path)


def test_names_of_files(toy, tmp_path):
    source = Source(tmp_path / "my run", toy)
    assert name_of(source, "curves", "cell0", "pdf").endswith("-curves.pdf")
    assert "/" not in name_of(source, "curves", "a/b", "pdf")
