"""Pages from CSV files alone: the same numbers as from the runs, and a line for what cannot be read."""

from pathlib import Path

import pytest

from idiolect.core.errors import DataError, StoreError
from idiolect.report.html.of_csv import whole_of_csv
from idiolect.report.html.payload import payload_of
from idiolect.report.page import report_text
from idiolect.report.raw import clients_csv, write_csv
from tests.report.html.made import compared, data_of

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
    for part in ("scores", "deviation", "beyond", "local", "shared", "names", "test"):
        assert one["clients"][part] == other["clients"][part]
    shown = {column["title"] for column in one["table"]["columns"]}

    def texts(cell):
        keep = [i for i, column in enumerate(cell["table"]["columns"]) if column["title"] in shown]
        return [[row["cells"][i]["text"] for i in keep] for row in cell["table"]["rows"]]

    assert texts(one) == texts(other)
    assert shown < {column["title"] for column in other["table"]["columns"]}
    assert one["tables"] == other["tables"]
    assert one["curves"] is None
    assert any("from CSV files alone: there are no curves" in line for line in of_csv["missing"])


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
        ("table.csv", "cell,method,model,metric,seeds,pooled\na,b,c,nosuch,1,0.5\n", "unknown metric 'nosuch'"),
        ("table.csv", "cell,method,model,metric,seeds,pooled\na,b,c,accuracy,1,half\n", "holds what cannot be read"),
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
