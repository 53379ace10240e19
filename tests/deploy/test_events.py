"""The log of events: whole lines of several processes, rotation, and a disk that is full."""

import json
import logging
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from idiolect.deploy import events
from idiolect.deploy.events import FILE, EventLog, Tail, now, plain

WRITER = """
import sys
from pathlib import Path
from idiolect.deploy import events
events.BYTES, events.KEPT = 4000, 50
log = events.EventLog(Path(sys.argv[1]), sys.argv[2])
for number in range(100):
    log.write("count", f"{sys.argv[2]} counts {number}", number=number)
"""


def lines_in(folder):
    return [json.loads(line) for path in folder.glob(f"{FILE}*") for line in path.read_text().splitlines()]


def test_an_event_is_a_line_with_its_time_in_utc(tmp_path):
    log, heard = EventLog(tmp_path, "hub"), []
    log.listen(heard.append)
    log.write("refused", "a message was refused", "warning", site="north")
    (line,) = lines_in(tmp_path)
    time = datetime.fromisoformat(line["time"])
    assert time.utcoffset().total_seconds() == 0
    assert abs((datetime.now(UTC) - time).total_seconds()) < 60
    assert (line["level"], line["event"], line["who"], line["site"]) == ("warning", "refused", "hub", "north")
    assert heard == [line]
    assert plain(line) == f"{line['time'][11:19]} UTC  a message was refused"
    assert now().endswith("+00:00")
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_several_processes_lose_no_line_when_the_file_rotates(tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in ("a", "b", "c")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    counted = sorted((line["who"], line["number"]) for line in lines_in(tmp_path))
    assert counted == [(name, number) for name in "abc" for number in range(100)]
    assert len(list(tmp_path.glob(f"{FILE}*"))) > 3


def test_the_log_of_python_is_gathered_and_warnings_only(tmp_path):
    log = EventLog(tmp_path, "site north")
    log.gather("idiolect.tested")
    logging.getLogger("idiolect.tested.part").warning("refused a call by '%s'", "west")
    log.close()
    logging.getLogger("idiolect.tested.part").warning("nobody listens")
    assert [(line["event"], line["text"]) for line in lines_in(tmp_path)] == [("log", "refused a call by 'west'")]


def test_a_log_that_cannot_be_written_ends_nothing_and_prints_nothing(tmp_path, capfd):
    folder = tmp_path / "gone"
    log, heard = EventLog(folder, "hub"), []
    log.listen(heard.append)
    log.write("round", "one")
    folder.mkdir()
    log.write("round", "two")
    assert [line["text"] for line in lines_in(folder)] == ["two"]
    assert [line["text"] for line in heard] == ["one", "two"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("end", [False, True])
def test_a_tail_reads_each_line_once_over_a_rotation(tmp_path, monkeypatch, end):
    monkeypatch.setattr(events, "BYTES", 700)
    log = EventLog(tmp_path, "hub")
    log.write("count", "0", number=0)
    tail, seen = Tail(tmp_path / FILE, end), []
    for number in range(1, 30):
        log.write("count", str(number), number=number)
        if number % 3 == 0:
            seen += [line["number"] for line in tail()]
    assert seen + [line["number"] for line in tail()] == list(range(1 if end else 0, 30))
    assert tail() == []


def test_a_tail_waits_for_the_end_of_a_line(tmp_path):
    path = tmp_path / "x.jsonl"
    tail = Tail(path)
    assert tail() == []
    path.write_text('{"a": 1}\n{"a"')
    assert tail() == [{"a": 1}]
    with path.open("a") as file:
        file.write(": 2}\nno json\n[1]\n")
    assert tail() == [{"a": 2}]
    path.write_text('{"a": 3}\n')
    assert tail() == [{"a": 3}]
