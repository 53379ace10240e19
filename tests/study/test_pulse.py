import time
from dataclasses import replace

import pytest

from idiolect.study.pulse import FILE, FRESH, Pulse, end_pulse, read_pulse


def pulse(**more):
    return replace(Pulse(time.time(), 3.0, 10.0, 40.0, 5.0, {"c/local/seed0": (10, 2.5)}, "words"), **more)


def test_it_is_read_as_it_was_written(tmp_path):
    one = pulse()
    one.write(tmp_path)
    assert read_pulse(tmp_path) == one
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    end_pulse(tmp_path)
    assert read_pulse(tmp_path) is None
    end_pulse(tmp_path)


def test_one_that_is_not_renewed_is_old():
    assert pulse().fresh
    assert not pulse(time=time.time() - FRESH - 1).fresh
    assert pulse().left == 6.0
    assert pulse(speed=None).left is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"time": 1, "runs": {"a": 3}}', b"null"])
def test_what_is_no_pulse_is_none(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    assert read_pulse(tmp_path) is None


def test_a_folder_that_cannot_be_written_to_stops_nothing(tmp_path):
    pulse().write(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []
