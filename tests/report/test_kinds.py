"""Every kind of figure of the stores that have it."""

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.kinds import KINDS, Wanted, name_of, possible
from idiolect.report.sources import Source
from idiolect.report.style import Drawing, paper
from idiolect.report.sweeps import frame
from tests.report import stores
from tests.report.test_across import results as across  # noqa: F401  a fixture
from tests.report.test_sweep_figure import points, swept

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
    assert made("times", timed, tmp_path).caption.startswith("Seconds a round, cell0. Measured:")
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
