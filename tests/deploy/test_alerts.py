"""Alerts: the event on standard input, no shell, a time limit, and no failure that reaches the run."""

import json
import sys
import time

import pytest
from pydantic import ValidationError

from idiolect.deploy.alerts import Alert, Alerter

KEEP = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"


def test_the_command_gets_the_event_and_its_arguments_as_they_are(tmp_path):
    name, failed = "out; touch shell $(touch shell)", list[str]()
    alerter = Alerter(Alert(command=(sys.executable, "-c", KEEP, name)), tmp_path, failed.append)
    alerter({"event": "refused", "site": "north"})
    alerter({"event": "round"})  # no alert
    alerter({"event": "disk full"})
    alerter.close()
    assert failed == []
    assert [json.loads(line) for line in (tmp_path / name).read_text().splitlines()] == [
        {"event": "refused", "site": "north"},
        {"event": "disk full"},
    ]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((sys.executable, "-c", "import time; time.sleep(60)"), "was stopped after 0.5 s"),
        (("/no/such/program",), "cannot run: No such file or directory"),
        ((sys.executable, "-c", "raise SystemExit(3)"), "ended with code 3"),
        (("a\0b",), "cannot run"),
    ],
)
def test_a_command_that_fails_is_one_line_and_delays_nobody(tmp_path, command, message):
    failed = list[str]()
    alerter = Alerter(Alert(command=command, seconds=0.5), tmp_path, failed.append)
    began = time.monotonic()
    alerter({"event": "refused"})
    assert time.monotonic() - began < 0.4
    alerter.close()
    assert len(failed) == 1
    assert message in failed[0]


def test_only_so_many_alerts_wait(tmp_path):
    failed = list[str]()
    alerter = Alerter(Alert(command=("sleep", "5"), seconds=0.2), tmp_path, failed.append)
    for _ in range(102):
        alerter({"event": "refused"})
    assert any("one was dropped" in line for line in failed)


def test_without_a_command_nothing_runs(tmp_path):
    alerter = Alerter(Alert(), tmp_path, pytest.fail)
    alerter({"event": "refused"})
    alerter.close()
    with pytest.raises(ValidationError):
        Alert(seconds=0)
