"""Checkpoints: a federation's whole state in one file that is either complete or absent."""

import io
import json
from pathlib import Path

import equinox as eqx
import jax

from idiolect.errors import StoreError
from idiolect.files import atomic_write
from idiolect.simulate import State


def save_checkpoint(path: Path, state: State, run_hash: str) -> None:
    """Write the state, replacing the last one in one step. run_hash: of the configuration and the data."""
    header = {"format": "idiolect-checkpoint", "version": 1, "run": run_hash, "round": int(state.round)}
    with atomic_write(path) as file:
        file.write(json.dumps(header).encode() + b"\n")
        # A typed key has no bytes of its own; its data do.
        eqx.tree_serialise_leaves(file, _plain(state))


def load_checkpoint(path: Path, like: State, run_hash: str) -> State | None:
    """The state in the file, in the structure of `like`; None if there is no file.

    Raises `StoreError` for a file of another run or a damaged one.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    line, _, payload = content.partition(b"\n")
    try:
        header = json.loads(line)
        assert header["format"] == "idiolect-checkpoint"
    except (ValueError, KeyError, TypeError, AssertionError):
        raise StoreError(f"{path} is not an idiolect checkpoint; delete it to start this run again") from None
    if header["run"] != run_hash:
        raise StoreError(f"{path} belongs to another configuration or other data; delete it to start this run again")
    try:
        plain = eqx.tree_deserialise_leaves(io.BytesIO(payload), _plain(like))
    except Exception as error:
        raise StoreError(f"{path} is damaged; delete it to start this run again") from error
    return eqx.tree_at(lambda s: s.seed, plain, jax.random.wrap_key_data(plain.seed))


def _plain(state: State) -> State:
    if not jax.dtypes.issubdtype(state.seed.dtype, jax.dtypes.prng_key):
        return state
    return eqx.tree_at(lambda s: s.seed, state, jax.random.key_data(state.seed))
