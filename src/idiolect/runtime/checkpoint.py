"""Checkpoints: a federation's whole state in one file that is either complete or absent."""

import hashlib
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from idiolect.core.errors import StoreError, reason_of
from idiolect.core.files import atomic_write, json_of
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import State

FORMAT, VERSION = "idiolect-checkpoint", 1


@dataclass(frozen=True)
class Checkpoint:
    """A state, and the seconds that training and compiling took to reach it."""

    state: State
    seconds: float
    compile_seconds: float


def save_checkpoint(path: Path, checkpoint: Checkpoint, run_hash: str) -> None:
    """Replace the last checkpoint atomically. run_hash: of the configuration and the data.

    If the clients' private states are in a file, the checkpoint is committed to that file together with them.
    """
    content = _to_bytes(checkpoint, run_hash)
    if isinstance(checkpoint.state.private, PrivateRows):
        checkpoint.state.private.commit(content)
        return
    with atomic_write(path) as file:
        file.write(content)


def _to_bytes(checkpoint: Checkpoint, run_hash: str) -> bytes:
    buffer = io.BytesIO()
    # A typed key cannot be serialised; its data can.
    eqx.tree_serialise_leaves(buffer, plain(checkpoint.state))
    payload = buffer.getbuffer()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "run": run_hash,
        "round": int(checkpoint.state.round),
        "seconds": checkpoint.seconds,
        "compile_seconds": checkpoint.compile_seconds,
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    return json.dumps(header).encode() + b"\n" + payload


def saved_round(path: Path) -> int:
    """The round of the checkpoint in a file; -1 if there is none."""
    try:
        with path.open("rb") as file:
            return int(json_of(file.readline())["round"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1


def load_checkpoint(path: Path, like: State, run_hash: str) -> Checkpoint | None:
    """Load the checkpoint, its state in the structure of `like`; None if there is none.

    Raises `StoreError` for a file of another run or a damaged one.
    """
    hint = "delete it to start this run again"
    rows = like.private
    if isinstance(rows, PrivateRows):
        path = rows.path
    try:
        content = rows.restore() if isinstance(rows, PrivateRows) else path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {reason_of(error)}") from error
    if content is None:
        return None
    line, _, payload = content.partition(b"\n")
    try:
        header = json_of(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StoreError(f"{path} is not an idiolect checkpoint; {hint}")
    if header.get("version") != VERSION:
        told = f"of version {header.get('version')!r}, and this idiolect reads version {VERSION}"
        raise StoreError(f"{path} is {told}; use the idiolect that wrote it, or {hint}")
    if header.get("run") != run_hash:
        raise StoreError(f"{path} belongs to another configuration or other data; {hint}")
    if header.get("sha256") != hashlib.sha256(payload).hexdigest():
        raise StoreError(f"{path} is damaged: its content does not match its hash; {hint}")
    try:
        state = eqx.tree_deserialise_leaves(io.BytesIO(payload), plain(like))
    except Exception as error:
        raise StoreError(f"{path} does not fit this version's states; {hint}") from error
    state = replace(with_key(state), private=rows if isinstance(rows, PrivateRows) else state.private)
    try:
        return Checkpoint(state, float(header["seconds"]), float(header["compile_seconds"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged: its first line lacks the seconds; {hint}") from error


def plain(state: State) -> State:
    """Replace the state's typed key by its data, and drop private states that are in a file."""
    if isinstance(state.private, PrivateRows):
        state = replace(state, private=None)
    if not jnp.issubdtype(state.seed.dtype, jax.dtypes.prng_key):
        return state
    return eqx.tree_at(lambda s: s.seed, state, jax.random.key_data(state.seed))


def with_key(state: State) -> State:
    """Make the typed key again, which `plain` replaced."""
    return eqx.tree_at(lambda s: s.seed, state, jax.random.wrap_key_data(state.seed))
