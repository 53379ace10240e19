"""`idiolect report`: a page of folders, and one line for what cannot be one."""

import pytest

from tests.report.html.made import compared


@pytest.fixture
def runs(tmp_path):
    compared(tmp_path / "runs").store.close()
    return tmp_path / "runs"


def test_the_page_is_named(commandline, runs, tmp_path):
    code, out, err = commandline("report", str(runs))
    assert (code, err) == (0, "")
    assert out == f"page: {runs / 'report.html'}\n"
    code, out, err = commandline("report", str(runs), str(runs), "-o", str(tmp_path / "page.html"))
    assert (code, err) == (0, "")
    assert (tmp_path / "page.html").read_text() == (runs / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        ([], "Missing argument 'RUN...'", 2),
        (["nosuch"], "no such folder: 'nosuch'", 1),
        (["empty"], "holds neither runs nor a table.csv", 1),
        (["file"], "'file' is a file; name the folder of a run", 1),
        ([""], "it must name a folder", 2),
        (["runs", "-o", "no/page.html"], "there is no folder 'no'", 1),
        (["runs", "-o", "empty"], "it is a folder", 1),
        (["runs", "nosuch"], "no such folder: 'nosuch'", 1),
        (["broken"], "broken", 1),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(commandline, runs, tmp_path, monkeypatch, arguments, words, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "idiolect.sqlite").write_text("no database")
    before = sorted(tmp_path.rglob("*"))
    exit_code, out, err = commandline("report", *arguments)
    assert (exit_code, out, err.count("\n")) == (code, "", 1), err
    assert words in err
    assert [path for path in sorted(tmp_path.rglob("*")) if "sqlite-" not in path.name] == before
