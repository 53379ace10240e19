"""Checkpoints: a federation's whole state in one file that is either complete or absent."""

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from idiolect.errors import StoreError
from idiolect.files import atomic_write
from idiolect.simulate import State

FORMAT = "idiolect-checkpoint"


@dataclass(frozen=True)
class Checkpoint:
    """A state, and the seconds that were spent to reach it (training, compiling)."""

    state: State
    seconds: float
    compile_seconds: float


def save_checkpoint(path: Path, checkpoint: Checkpoint, run_hash: str) -> None:
    """Write a checkpoint, replacing the last one in one step. run_hash: of the configuration and the data."""
    buffer = io.BytesIO()
    # A typed key has no bytes of its own; its data do.
    eqx.tree_serialise_leaves(buffer, plain(checkpoint.state))
    payload = buffer.getbuffer()
    header = {
        "format": FORMAT,
        "version": 1,
        "run": run_hash,
        "round": int(checkpoint.state.round),
        "seconds": checkpoint.seconds,
        "compile_seconds": checkpoint.compile_seconds,
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    with atomic_write(path) as file:
        file.write(json.dumps(header).encode() + b"\n")
        file.write(payload)


def load_checkpoint(path: Path, like: State, run_hash: str) -> Checkpoint | None:
    """The checkpoint in the file, its state in the structure of `like`; None if there is no file.

    Raises `StoreError` for a file of another run or a damaged one.
    """
    again = "delete it to start this run again"
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    line, _, payload = content.partition(b"\n")
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StoreError(f"{path} is not an idiolect checkpoint; {again}")
    if header.get("run") != run_hash:
        raise StoreError(f"{path} belongs to another configuration or other data; {again}")
    if header.get("sha256") != hashlib.sha256(payload).hexdigest():
        raise StoreError(f"{path} is damaged: its content does not match its hash; {again}")
    try:
        found = eqx.tree_deserialise_leaves(io.BytesIO(payload), plain(like))
    except Exception as error:
        raise StoreError(f"{path} does not fit this version's states; {again}") from error
    return Checkpoint(with_key(found), float(header["seconds"]), float(header["compile_seconds"]))


def plain(state: State) -> State:
    """The state with its typed key as numbers."""
    if not jnp.issubdtype(state.seed.dtype, jax.dtypes.prng_key):
        return state
    return eqx.tree_at(lambda s: s.seed, state, jax.random.key_data(state.seed))


def with_key(state: State) -> State:
    """The opposite of `plain`."""
    return eqx.tree_at(lambda s: s.seed, state, jax.random.wrap_key_data(state.seed))
