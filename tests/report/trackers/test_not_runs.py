import pytest

from idiolect.report.trackers.not_runs import why_not


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["advice.md", "clients.csv", "report.html"], "holds an advice, which keeps no runs"),
        (["report.md", "clients.csv"], "holds models of new clients"),
        (["own-samples.csv", "report.md"], "holds models of new clients"),
        (["table.csv", "clients.csv", "report.md"], "has CSV files alone"),
        (["hub.json"], "is a hub's folder, and no round was run yet"),
        (["site.toml"], "is a site's folder"),
        (["notes.txt"], "no runs in "),
        ([], "no runs in "),
    ],
)
def test_each_folder_says_in_one_line_why_it_cannot_be_sent(files, words, tmp_path):
    for name in files:
        (tmp_path / name).write_text("")
    told = why_not(tmp_path)
    assert words in told
    assert str(tmp_path) in told
    assert "\n" not in told
