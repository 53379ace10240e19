"""Only the newest call may change a site's state, across threads and processes."""

import json
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from idiolect.core.errors import DataError, StoreError
from idiolect.deploy.messages import Message
from idiolect.deploy.site.state import AHEAD, Fence, RunState, state_of, study_folder


def test_older_calls_are_refused_and_newer_ones_pass(tmp_path):
    fence = Fence(tmp_path / "state")
    for ticket in ((1, 1), (1, 1), (1, 2), (2, 1)):
        with fence.enter(ticket, 1):
            pass
    for ticket in ((1, 9), (2, 0)):
        with pytest.raises(StoreError, match="is late"), fence.enter(ticket, 1):
            pass
    with pytest.raises(StoreError, match="is late"), Fence(tmp_path / "state").enter((1, 9), 1):
        pass


def test_a_number_far_ahead_locks_nobody_out(tmp_path):
    fence, now = Fence(tmp_path), int(time.time())
    for far in (now + 2 * AHEAD, 10**12):
        with pytest.raises(StoreError, match="compare the clocks"), fence.enter((far, 1), 1):
            pass
    for ticket in ((now, 1), (now + 60, 1)):
        with fence.enter(ticket, 1):
            pass
    (tmp_path / "fence.json").write_text(json.dumps({"job": 10**12, "call": 1}))  # of an older idiolect
    with fence.enter((now, 1), 1):
        pass


def test_one_at_a_time(tmp_path):
    fence, inside, most = Fence(tmp_path), [], []

    def work():
        with fence.enter((1, 1), 5):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_another_process_is_waited_for_and_then_told(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from idiolect.deploy.site.state import Fence\n"
        "with Fence(Path(sys.argv[1])).enter((1, 1), 5):\n    print('in', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        with (
            pytest.raises(StoreError, match="another process works"),
            Fence(tmp_path).enter((1, 1), 0.1),
        ):
            pass
    finally:
        other.kill()
        other.wait()
    with Fence(tmp_path).enter((1, 1), 5):  # the system has released the lock of the dead
        pass


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_a_file_that_cannot_be_read_is_told(tmp_path, text):
    (tmp_path / "fence.json").write_text(text)
    with pytest.raises(StoreError, match="cannot read"), Fence(tmp_path).enter((1, 1), 1):
        pass


RUN = "cell/method/seed0"


def vectors(value):
    return {"private/w": np.full(2, value, np.float32)}


def value(message):
    return float(state_of(message)["private/w"][0])


@pytest.fixture
def state(tmp_path):
    own = RunState(tmp_path, RUN)
    own.begin(vectors(0))
    return own


def prepare(state, round, request="r", to=1.0, said=5.0):
    state.prepare(round, request, vectors(to), Message({"n": round}, {"w": np.full(2, said, np.float32)}), 3)


def test_what_begins_twice_keeps_what_it_has(state):
    state.begin(vectors(9))
    assert value(state.settle(-1)) == 0
    assert state.begun
    assert not RunState(state.folder.parent, "another").begun


def test_an_answer_that_was_used_is_committed_once(state):
    prepare(state, 0)
    assert value(state.settle(-1)) == 0  # the hub has not used it yet
    assert value(state.settle(0)) == 1
    assert value(state.settle(0)) == 1  # nothing is applied twice
    prepare(state, 3, to=4.0)
    assert value(state.settle(3)) == 4


def test_an_answer_that_was_not_used_is_dropped(state):
    prepare(state, 0)
    assert state.answered(0, "r") is not None
    prepare(state, 2, to=2.0)  # the hub went on without it
    assert value(state.settle(2)) == 2


def test_a_retried_round_is_answered_from_what_was_prepared(state):
    prepare(state, 1, "request", said=7.0)
    again = state.answered(1, "request")
    assert again.header == {"n": 1}
    assert {name: vector.tolist() for name, vector in again.vectors.items()} == {"w": [7.0, 7.0]}
    assert state.answered(1, "another") is None
    assert state.answered(2, "request") is None


def test_the_answer_is_not_part_of_the_state(state):
    prepare(state, 0)
    assert [*state_of(state.settle(0))] == ["private/w"]


def test_hub_and_site_that_stand_apart_are_told(state, tmp_path):
    with pytest.raises(StoreError, match=r"has used this site's answer of round 6.*state here is of round 0.*backup"):
        state.settle(5)
    prepare(state, 0)
    state.settle(0)
    with pytest.raises(StoreError, match=r"state is of round 1 .*used none after round 0.*restore the hub's folder"):
        state.settle(-1)
    with pytest.raises(StoreError, match="no private state of run 'x'"):
        RunState(tmp_path, "x").settle(-1)


def test_another_version_and_damage_are_refused(state):
    kept = state.folder / "kept.msg"
    content = kept.read_bytes()
    kept.write_bytes(content.replace(b'"version": 1', b'"version": 9'))
    with pytest.raises(StoreError, match="version 9"):
        state.settle(-1)
    kept.write_bytes(content[:-3])
    with pytest.raises(StoreError, match="damaged"):
        state.settle(-1)


def test_a_damaged_answer_is_not_committed(state):
    """It is read before it replaces the kept state, which so can still be restored from."""
    prepare(state, 0)
    kept, prepared = state.folder / "kept.msg", state.folder / "prepared.msg"
    before = kept.read_bytes()
    prepared.write_bytes(prepared.read_bytes()[:-3])
    with pytest.raises(StoreError, match=r"prepared\.msg is damaged"):
        state.settle(0)
    assert kept.read_bytes() == before
    assert value(state.settle(-1)) == 0  # the hub has not used it: nobody needs it


def test_a_new_start_goes_back_to_a_state_before_a_site_joined_and_no_further(state, tmp_path):
    for round in range(4):
        state.keep_before(state.settle(round - 1), 3 if round < 2 else 4)
        prepare(state, round, to=round + 1.0)
        state.prepare(round, "r", vectors(round + 1.0), Message(), 3 if round < 2 else 4)
    assert [path.name for path in state.folder.glob("before-*")] == ["before-2.msg"]
    again = RunState(tmp_path, RUN, start=1)
    assert not again.begun
    with pytest.raises(StoreError, match=r"no private state of round 1 .*--from-beginning"):
        again.go_back(0)
    with pytest.raises(StoreError, match=r"no private state of round 3 .*--from-beginning"):
        again.settle(2)
    assert again.go_back(1)
    assert value(again.settle(1)) == 2
    assert again.begun
    assert again.answered(3, "r") is None
    assert [path.name for path in state.folder.iterdir()] == ["kept.msg"]
    with pytest.raises(StoreError, match="start 2 has begun here: restore the hub's newest folder"):
        state.settle(1)


def test_a_new_start_begins_anew(state, tmp_path):
    prepare(state, 0)
    again = RunState(tmp_path, RUN, start=2)
    again.begin(vectors(9))
    assert value(again.settle(-1)) == 9
    assert not RunState(tmp_path, "another", start=1).go_back(3)


def test_without_private_state_every_round_is_there(tmp_path):
    RunState(tmp_path, RUN).begin({})
    again = RunState(tmp_path, RUN, start=1)
    assert again.go_back(7)
    assert again.settle(7).header["round"] == 7


def test_each_study_has_a_folder_and_states_of_before_are_refused(tmp_path):
    assert study_folder(tmp_path, "a-00000001") == tmp_path / "state" / "a-00000001"
    for bad in ("..", "a/b-00000001", "a", "/etc-00000001"):
        with pytest.raises(DataError, match="no id"):
            study_folder(tmp_path, bad)
    with Fence(study_folder(tmp_path, "a-00000001")).enter((5, 1), 1):
        pass
    with Fence(study_folder(tmp_path, "b-00000001")).enter((4, 1), 1):  # a fence of its own
        pass
    (tmp_path / "state" / "fence.json").write_text("{}")
    with pytest.raises(StoreError, match=r"of an idiolect before studies; .* move the folder away"):
        study_folder(tmp_path, "a-00000001")
