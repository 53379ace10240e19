import time

import pytest

from idiolect.core.errors import StoreError
from idiolect.report.trackers import tracking
from idiolect.report.trackers.tracking import export, tracked, trackers_of, why_not
from tests.report.trackers.made import Made


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["advice.md", "clients.csv", "report.html"], "holds an advice, which keeps no runs"),
        (["report.md", "clients.csv"], "holds models of new clients"),
        (["own-samples.csv", "report.md"], "holds models of new clients"),
        (["table.csv", "clients.csv", "report.md"], "has only CSV files"),
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


def test_one_export_takes_every_run_and_files_of_those_that_have_ended(folder):
    made = Made()
    assert export(folder, [made], final=True) == 2
    assert made.taken == [("cell0/fedavg/seed0", [0, 20], True), ("cell0/local/seed0", [10], False)]
    assert made.finished == [(folder, "toy")]


def test_while_runs_are_at_work_they_are_sent_and_at_the_end_all_of_it(folder, monkeypatch):
    monkeypatch.setattr(tracking, "EVERY", 0.01)
    made = Made()
    with tracked(folder, [made]):
        end = time.monotonic() + 20
        while not made.taken:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert made.finished == []
    assert made.finished == [(folder, "toy")]
    assert made.closed


def test_a_tracker_that_fails_meanwhile_is_told_of_once_and_stops_nothing(folder, monkeypatch, capsys):
    monkeypatch.setattr(tracking, "EVERY", 0.01)
    made = Made(fails=[True] * 3)
    with tracked(folder, [made]):
        end = time.monotonic() + 20
        while made.fails:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert capsys.readouterr().err == "note: it is full; it is tried again\n"
    assert made.finished


def test_one_that_fails_at_the_end_is_an_error_that_says_where_the_runs_are(folder):
    made = Made(fails=[True] * 100)
    with (
        pytest.raises(StoreError, match=r"it is full; the runs are in '.*': 'idiolect track' sends them later"),
        tracked(folder, [made]),
    ):
        pass
    assert made.closed


def test_without_trackers_nothing_is_done_and_nothing_imported(tmp_path):
    assert trackers_of(None, None) == trackers_of("", "") == []
    with tracked(tmp_path / "absent", []):
        pass
    with tracked(tmp_path / "absent", [Made()]):  # stopped before there was a folder
        pass
    with pytest.raises(StoreError, match="no runs in"):
        export(tmp_path / "absent", [Made()], final=True)
    (tmp_path / "advice.md").write_text("")
    with pytest.raises(StoreError, match="holds an advice"):
        export(tmp_path, [Made()], final=True)
