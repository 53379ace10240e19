import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.runtime.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from idiolect.runtime.round import State


def state(value: float = 1.5, round: int = 4, width: int = 3) -> State:
    private = {"w": jnp.full((5, width), value), "k": jnp.arange(5)}
    return State(
        (jnp.ones(width), None), private, jnp.asarray(round, jnp.int32), jax.random.key(7), jnp.zeros(3, jnp.int32)
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.eqx"
    save_checkpoint(path, Checkpoint(state(np.pi), 1.25, 0.5), "hash")
    return path


def test_comes_back_to_the_last_bit(path):
    found = load_checkpoint(path, state(0.0, 0), "hash")
    assert (found.seconds, found.compile_seconds, int(found.state.round)) == (1.25, 0.5, 4)
    assert np.array_equal(found.state.private["w"], state(np.pi).private["w"])
    assert jax.random.key_data(found.state.seed).tolist() == jax.random.key_data(jax.random.key(7)).tolist()
    assert found.state.shared[1] is None


def test_absent_is_none(tmp_path):
    assert load_checkpoint(tmp_path / "none.eqx", state(), "hash") is None


def test_of_another_run(path):
    with pytest.raises(StoreError, match=r"run\.eqx belongs to another configuration or other data; delete it"):
        load_checkpoint(path, state(), "other")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("version", 2, "is of version 2, and this idiolect reads version 1"),
        ("version", None, "is of version None"),
        ("seconds", "x", "lacks the seconds"),
        ("compile_seconds", None, "lacks the seconds"),
    ],
)
def test_a_header_of_another_version_is_refused(path, key, value, words):
    line, _, payload = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(line), key: value}).encode() + b"\n" + payload)
    with pytest.raises(StoreError, match=rf"run\.eqx.*{words}.*delete it"):
        load_checkpoint(path, state(), "hash")


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign", "folder", "tail"])
def test_damage_is_told_with_the_way_out(path, damage):
    content = bytearray(path.read_bytes())
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        content[-5] ^= 1
        new = {
            "truncated": content[:-100], "flipped": content, "empty": b"", "foreign": b"[1]\n" + content,
            "tail": path.read_bytes() + b"x",
        }[damage]  # fmt: skip
        path.write_bytes(bytes(new))
    with pytest.raises(StoreError, match=r"run\.eqx") as caught:
        load_checkpoint(path, state(), "hash")
    assert "\n" not in str(caught.value)
    assert damage == "folder" or "delete it to start this run again" in str(caught.value)


def test_states_of_another_shape(path):
    with pytest.raises(StoreError, match="does not fit this version's states"):
        load_checkpoint(path, state(width=4), "hash")


def test_a_failed_write_keeps_the_last_one(path, monkeypatch):
    from idiolect.core import files

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        save_checkpoint(path, Checkpoint(state(2.0, 8), 2.0, 0.5), "hash")
    assert int(load_checkpoint(path, state(), "hash").state.round) == 4
