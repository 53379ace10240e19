"""Pages from CSV files only: the same numbers as from the runs, and a line for what cannot be read."""

from pathlib import Path

import pytest

from idiolect.core.errors import DataError, StoreError
from idiolect.metrics.registry import METRICS
from idiolect.report.html.of_csv import whole_of_csv
from idiolect.report.html.payload import payload_of
from idiolect.report.html.read import whole_of_folders
from idiolect.report.page import report_text
from idiolect.report.raw import clients_csv, write_csv
from tests.report.html.made import compared, data_of
from tests.report.stores import csv_of_ranks

COMMITTED = Path(__file__).parents[3] / "results" / "pfedme" / "table1-as-written"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def folder(results, tmp_path):
    write_csv(results, tmp_path / "table.csv")
    clients_csv(results, tmp_path / "clients.csv")
    (tmp_path / "report.md").write_text(report_text(results, "idiolect compare --data toy", {}))
    return tmp_path


def test_the_same_answers_table_and_clients_as_of_the_runs(results, folder):
    of_runs, of_csv = data_of(results), payload_of(whole_of_csv(folder))
    assert of_csv["answer"] == of_runs["answer"]
    assert of_csv["questions"] == of_runs["questions"]
    assert [of_csv[key] for key in ("title", "protocol", "command", "leaks", "seeds", "chosen")] == [
        of_runs[key] for key in ("title", "protocol", "command", "leaks", "seeds", "chosen")
    ]
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
    data = payload_of(whole_of_csv(COMMITTED))
    assert data["title"] == "pFedMe, Table 1, as written"
    cell = data["cells"][0]
    assert cell["title"] == "MNIST, disjoint (clean), MLR"
    assert cell["settings"][0][0] == "data"
    assert len(cell["clients"]["names"]) == 20
    verdict = [column["title"] for column in cell["table"]["columns"]].index("verdict")
    assert cell["table"]["rows"][0]["cells"][verdict]["text"] == "differs, explained"


def test_without_clients_and_page(folder):
    (folder / "clients.csv").unlink()
    (folder / "report.md").unlink()
    data = payload_of(whole_of_csv(folder))
    assert data["title"] == folder.name
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
def test_what_cannot_be_read_is_told_in_a_line(folder, name, text, words):
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=words) as told:
        whole_of_csv(folder)
    assert "\n" not in str(told.value)


def test_not_utf8_and_no_results(folder, tmp_path_factory):
    (folder / "table.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot read"):
        whole_of_csv(folder)
    with pytest.raises(StoreError, match=r"holds neither runs nor a table\.csv"):
        whole_of_csv(tmp_path_factory.mktemp("empty"))


@pytest.mark.parametrize("metric", ["auroc", "macro-f1"])
def test_a_metric_that_is_no_mean_of_clients_is_taken_from_the_table_and_not_tested(metric, tmp_path):
    data = payload_of(whole_of_csv(csv_of_ranks(tmp_path, metric)))
    column, cell = METRICS[metric].column, data["cells"][0]
    best, noise, _ = data["answer"]
    assert best.startswith(f"Training alone scores best, 90.00 ± 2.48 % {column}")
    assert "has 80.00 ± 2.48" in best
    assert "-10.00 points compared with training alone (not tested)" in best
    assert f"is not tested: {column} over all samples is known only as a mean over seeds" in noise
    assert not any(word in " ".join(data["answer"]) for word in ("p =", "p <", "Beyond the noise", "Not told apart"))
    assert [row["cells"][2]["text"] for row in cell["table"]["rows"]] == ["80.00 ± 2.48", "90.00 ± 2.48"]
    assert [row["best"] for row in cell["table"]["rows"]] == [False, True]
    (against,) = cell["tables"]
    assert against["title"].startswith(f"Against local: {column} over all samples is not tested")
    assert against["rows"][0][2:4] == ["—", "—"]
    assert any(f"{column} over all samples is read from table.csv" in line for line in data["missing"])


def test_several_comparisons_of_which_one_is_not_tested(folder, tmp_path_factory):
    ranks = csv_of_ranks(tmp_path_factory.mktemp("ranks"), "auroc")
    noise = payload_of(whole_of_folders([folder, ranks]))["answer"][1]
    assert "in 1 of 1 comparisons" in noise
    assert "In 1 comparison the difference is not tested" in noise
