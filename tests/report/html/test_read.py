import pytest

from idiolect.core.errors import StoreError
from idiolect.report.html.payload import payload_of
from idiolect.report.html.read import whole_of_folder, whole_of_folders
from idiolect.report.raw import write_csv
from tests.report.html.made import compared, data_of


def test_a_run_folder_is_read_as_its_results_are(tmp_path):
    results = compared(tmp_path)
    assert payload_of(whole_of_folder(tmp_path)) == data_of(results)


def test_several_folders_are_one_page(tmp_path):
    results = compared(tmp_path / "runs")
    (tmp_path / "files").mkdir()
    write_csv(results, tmp_path / "files" / "table.csv")
    data = payload_of(whole_of_folders([tmp_path / "runs", tmp_path / "files", tmp_path / "runs"]))
    assert data["title"] == "A toy; files"
    assert [cell["id"] for cell in data["cells"]] == ["0/cell0", "1/cell0"]
    assert [cell["title"] for cell in data["cells"]] == ["A toy: cell0", "files: cell0"]
    assert data["answer"][0].startswith("Of 2 comparisons the best score has \u2068Ditto (personal)\u2069 in 2;")


@pytest.mark.parametrize(
    ("name", "words"),
    [("nosuch", "no such folder"), ("file", "is a file; name the folder"), ("a\0b", "no such|null")],
)
def test_what_is_no_folder(tmp_path, name, words):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=words):
        whole_of_folder(tmp_path / name)
