import pytest

from idiolect.core.errors import StoreError
from idiolect.report.html.make import folders_page, write_folder
from tests.report.html.made import compared


def test_beside_the_runs_or_where_it_is_said(tmp_path):
    compared(tmp_path / "runs")
    path = write_folder(tmp_path / "runs")
    assert path == tmp_path / "runs" / "report.html"
    assert (tmp_path / "runs" / "report.json").is_file()
    own = path.read_bytes()
    assert folders_page([tmp_path / "runs"]) == path
    assert path.read_bytes() == own
    assert folders_page([tmp_path / "runs"], tmp_path / "page.html").read_bytes() == own
    with pytest.raises(StoreError, match="there is no folder"):
        folders_page([tmp_path / "runs"], tmp_path / "no" / "page.html")
