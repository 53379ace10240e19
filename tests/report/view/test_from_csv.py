"""The parts from CSV files are those of the run that wrote them."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import DataError, StoreError
from idiolect.metrics.registry import METRICS
from idiolect.report.client_figures import strip
from idiolect.report.latex import latex_table
from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.text import published as published_text
from idiolect.report.view.columns import table_of
from idiolect.report.view.folder import view_of_folder, view_of_folders
from idiolect.report.view.from_csv import parts_in, view_of_csv
from idiolect.report.view.from_store import part_of
from idiolect.report.view.parts import MEAN, WORST
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.html.made import compared, data_of, page_of
from tests.report.stores import csv_of_ranks, experiment, finished

RESULTS = Path(__file__).parents[3] / "results"
COMMITTED = RESULTS / "pfedme" / "table1-as-written"


@pytest.fixture
def folder(toy, tmp_path):
    write_csv(toy, tmp_path / "table.csv")
    clients_csv(toy, tmp_path / "clients.csv")
    return tmp_path


def test_the_same_numbers_as_in_the_run(toy, cell, folder):
    (part,), own = parts_in(folder), part_of(toy, cell)
    assert (part.id, part.local, part.metric.name, part.sizes()[1]) == (
        "cell0",
        ("local", "local"),
        "accuracy",
        "test",
    )
    assert part.names["fedavg"] == "FedAvg"
    for key in (("fedavg", "global"), ("local", "local")):
        for column in ("accuracy", MEAN, WORST):
            a, b = (vars(one.over_seeds(key, column)) for one in (part, own))
            assert a == pytest.approx(b, nan_ok=True)
            assert part.values(key, column) == pytest.approx(own.values(key, column))
        for seed, scores in own.measured(key).items():
            np.testing.assert_array_equal(part.hurt(key, seed), own.hurt(key, seed))
            np.testing.assert_array_equal(part.measured(key)[seed].count, scores.count)


def test_without_clients_there_are_means_alone(folder):
    (folder / "clients.csv").unlink()
    (part,) = parts_in(folder)
    assert part.over_seeds(("local", "local"), "accuracy").seeds == 2
    assert (part.scored, part.values(("local", "local"), MEAN), part.sizes()[0]) == (False, {}, None)


def packed(folder):
    text = (folder / "clients.csv").read_bytes()
    (folder / "clients.csv.gz").write_bytes(gzip.compress(text))
    (folder / "clients.csv").unlink()


def test_a_compressed_clients_file_gives_the_same_part(folder):
    (plain,) = parts_in(folder)
    packed(folder)
    (part,) = parts_in(folder)
    assert part.clients == plain.clients != ()
    key = ("local", "local")
    assert part.values(key, MEAN) == plain.values(key, MEAN) != {}


@pytest.mark.parametrize("size", [40, -20], ids=["cut short", "its end is missing"])
def test_a_damaged_compressed_file_is_refused(folder, size):
    packed(folder)
    file = folder / "clients.csv.gz"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(DataError, match=r"cannot read .*clients\.csv\.gz"):
        parts_in(folder)


def test_a_file_that_is_only_named_as_compressed_is_refused(folder):
    (folder / "clients.csv").rename(folder / "clients.csv.gz")
    with pytest.raises(DataError, match=r"cannot read .*clients\.csv\.gz"):
        parts_in(folder)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("table.csv", "a,b\n1,2\n", "has no column 'cell'"),
        ("table.csv", "", "has no column 'cell'"),
        (
            "table.csv",
            "cell,method,model,metric,seeds,pooled,mean,worst10\nc,m,g,magic,1,1,1,1\n",
            "line 2, column 'metric': 'magic' is no metric",
        ),
        ("clients.csv", "cell,method,model\n", "has no column 'seed'"),
        (
            "clients.csv",
            "cell,method,model,seed,round,client,n,accuracy,loss\n" + "cell0,local,local,0,20,north,1,0.5,1\n" * 2,
            "has a client twice",
        ),
    ],
)
def test_other_files_are_refused(folder, name, text, said):
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=said):
        parts_in(folder)


@pytest.mark.parametrize("metric", ["auroc", "macro-f1"])
def test_a_metric_that_is_no_mean_of_clients_is_that_of_the_table_in_figures_and_tables(metric, tmp_path):
    (part,) = parts_in(csv_of_ranks(tmp_path, metric))
    assert part.metric.name == metric
    keys = [("fedavg", "global"), ("local", "local")]
    assert {key: part.over_seeds(key, metric).mean for key in keys} == {
        ("fedavg", "global"): 0.8,
        ("local", "local"): 0.9,
    }
    assert all(np.isnan([*part.values(key, metric).values()]).all() for key in keys)
    table = latex_table([part], "metrics")
    assert r"& global & 80.00 $\pm$ 2.48 &" in table
    assert r"& local & 90.00 $\pm$ 2.48 &" in table
    assert f"Nothing is bold in {METRICS[metric].column}: not known seed by seed." in table
    shown = strip(part, ("fedavg", "global"))
    assert shown is not None
    assert shown.scores == pytest.approx([0.91, 0.89, 0.911, 0.891, 0.912, 0.892])


@pytest.mark.parametrize("folder", ["lecture/fedavg-fedsgd", "mmfl/personalization", "pflego/fig2", "fedu/mixing"])
def test_the_clients_of_committed_folders_give_the_tables_means(folder):
    for cell in parts_in(RESULTS / folder):
        for line in cell.lines:
            pooled = [scores.pooled[line.metric] for scores in cell.scores[line.method, line.model].values()]
            assert len(pooled) == line.pooled.seeds
            assert not pooled or np.mean(pooled) == pytest.approx(line.pooled.mean, rel=1e-5), (
                cell.id,
                line.method,
                line.model,
            )


def test_a_published_confidence_interval_stays_one(tmp_path):
    published = ({"model": "global", "value": 70.0, "half_width": 0.5, "within": 3.0},)
    store, exp = Store(tmp_path), experiment([{"name": "fedavg", "published": published}])
    for seed in (0, 1):
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.7, 0.7, 0.75 + seed / 1000, 0.5)}})
    results = Results(store, exp)
    write_csv(results, tmp_path / "table.csv")
    (cell,) = parts_in(tmp_path)
    (line,) = cell.lines
    assert (line.published.half_width, line.published.std, line.published.given) == (0.5, None, 0.5)
    assert (line.verdict, line.interval.low) == (
        results.lines[0].verdict,
        pytest.approx(results.lines[0].interval.low),
    )
    (note, _) = table_of(part_of(results, exp.cells[0])).notes
    assert note == "± in a published value: half of the paper's confidence interval, taken as one of 95 %"
    assert published_text(line.published, METRICS["accuracy"], METRICS["accuracy"]) == "70.00 ± 0.50"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def written(results, tmp_path):
    write_csv(results, tmp_path / "table.csv")
    clients_csv(results, tmp_path / "clients.csv")
    return tmp_path


def test_the_same_answers_table_and_clients_as_of_the_runs(results, written):
    of_runs, of_csv = data_of(results), page_of(view_of_csv(written))
    for part in ("decision", "headline", "numbers"):
        assert of_csv[part] == of_runs[part]
    assert of_csv["chips"][:2] == of_runs["chips"][:2]
    assert (of_csv["title"], of_csv["command"], of_csv["seeds"]) == (written.name, "", of_runs["seeds"])
    one, other = of_csv["cells"][0], of_runs["cells"][0]
    for part in ("scores", "half", "beyond", "local", "shared", "names", "test"):
        assert one["clients"][part] == other["clients"][part]
    shown = {column["title"] for column in one["table"]["columns"]}

    def texts(cell):
        keep = [i for i, column in enumerate(cell["table"]["columns"]) if column["title"] in shown]
        return [[row["cells"][i]["text"] for i in keep] for row in cell["table"]["rows"]]

    assert texts(one) == texts(other)
    assert shown < {column["title"] for column in other["table"]["columns"]}
    assert one["tables"] == other["tables"]
    assert one["curves"] is None
    assert any("from CSV files only: there are no curves" in line for line in of_csv["missing"])


def test_committed_results():
    data = page_of(view_of_folder(COMMITTED))
    assert data["title"] == "pFedMe, Table 1, as written"
    cell = data["cells"][0]
    assert cell["title"] == "MNIST, disjoint (clean), MLR"
    assert cell["settings"][0][0] == "data"
    assert len(cell["clients"]["names"]) == 20
    verdict = [column["title"] for column in cell["table"]["columns"]].index("verdict")
    assert cell["table"]["rows"][0]["cells"][verdict]["text"] == "differs, explained"


def test_without_clients(written):
    (written / "clients.csv").unlink()
    data = page_of(view_of_csv(written))
    assert data["title"] == written.name
    assert data["cells"][0]["clients"] is None
    assert any("has no clients.csv" in line for line in data["missing"])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("table.csv", "cell,method\na,b\n", "has no column 'model'"),
        (
            "table.csv",
            "cell,method,model,metric,seeds,pooled\na,b,c,nosuch,1,0.5\n",
            "line 2, column 'metric': 'nosuch' is no metric",
        ),
        (
            "table.csv",
            "cell,method,model,metric,seeds,pooled\na,b,c,accuracy,1,half\n",
            "line 2, column 'pooled': 'half' is no number",
        ),
        ("table.csv", "cell,method,model,metric,seeds,pooled\na,b\n", "line 2: it has another number of fields"),
        ("clients.csv", "cell,method,model,seed,client,n,loss\n\0", "cannot be read|cannot read|number of fields"),
        ("clients.csv", "\ufeffcell\n", "has no column"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(written, name, text, words):
    (written / name).write_text(text)
    with pytest.raises(DataError, match=words) as told:
        view_of_csv(written)
    assert "\n" not in str(told.value)


def test_not_utf8_and_no_results(written, tmp_path_factory):
    (written / "table.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot read"):
        view_of_csv(written)
    with pytest.raises(StoreError, match=r"holds neither runs nor a table\.csv"):
        view_of_csv(tmp_path_factory.mktemp("empty"))


@pytest.mark.parametrize("metric", ["auroc", "macro-f1"])
def test_a_metric_that_is_no_mean_of_clients_is_taken_from_the_table_and_not_tested(metric, tmp_path):
    data = page_of(view_of_csv(csv_of_ranks(tmp_path, metric)))
    column, cell = METRICS[metric].column, data["cells"][0]
    assert data["decision"] == "inconclusive"
    assert f"80.00 % {column}, difference from local training -10.00 points, not tested" in data["numbers"]
    assert " p " not in data["numbers"]
    assert [row["cells"][2]["text"] for row in cell["table"]["rows"]] == ["80.00 ± 2.48", "90.00 ± 2.48"]
    assert [row["best"] for row in cell["table"]["rows"]] == [False, True]
    (against,) = cell["tables"]
    assert against["title"].startswith(f"Compared with local: {column} over all samples is not tested")
    assert against["rows"][0][2:4] == ["—", "—"]
    assert any(f"{column} over all samples is read from table.csv" in line for line in data["missing"])


def test_several_comparisons_of_which_one_is_not_tested(written, tmp_path_factory):
    ranks = csv_of_ranks(tmp_path_factory.mktemp("ranks"), "auroc")
    data = page_of(view_of_folders([written, ranks]))
    assert [cell["numbers"].endswith("not tested") for cell in data["cells"]] == [False, True]
