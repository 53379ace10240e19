"""Several processes that run one federation together: connecting them, and starting them on one machine."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

import jax

from idiolect.core.cores import cores
from idiolect.core.errors import ConfigError, IdiolectError, require

COORDINATOR, PROCESSES, PROCESS = "IDIOLECT_COORDINATOR", "IDIOLECT_PROCESSES", "IDIOLECT_PROCESS"
MOST_A_CORE = 16  # processes that are started here
HEARTBEAT_SECONDS = 30  # a process without a heartbeat for so long counts as lost


def join(wanted: bool = False) -> bool:
    """Connect this process to the others of a distributed run; call it before anything is computed.

    Their number and addresses come from IDIOLECT_COORDINATOR (host:port of process 0), IDIOLECT_PROCESSES and
    IDIOLECT_PROCESS, which `start` sets; else, if `wanted`, from the cluster (Slurm, Open MPI, Kubernetes, cloud
    TPUs), as `jax.distributed.initialize` detects it. Returns whether it has connected; without either it does
    nothing. Raises `ConfigError` if only some of the variables are set or the processes cannot connect.
    """
    names = [key for key in (COORDINATOR, PROCESSES, PROCESS) if key in os.environ]
    if not names and not wanted:
        return False
    require(len(names) in (0, 3), f"of {COORDINATOR}, {PROCESSES} and {PROCESS} only {' and '.join(names)} are set")
    _own_standard_output()
    # CPUs communicate by gloo; accelerators by their own libraries.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        if names:
            jax.distributed.initialize(
                os.environ[COORDINATOR],
                int(os.environ[PROCESSES]),
                int(os.environ[PROCESS]),
                heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            )
        else:
            jax.distributed.initialize(heartbeat_timeout_seconds=HEARTBEAT_SECONDS)
    except (ValueError, RuntimeError) as error:
        hint = "set IDIOLECT_COORDINATOR=HOST:PORT, IDIOLECT_PROCESSES and IDIOLECT_PROCESS, or start under Slurm"
        raise ConfigError(f"the processes did not find each other ({str(error).splitlines()[0]}); {hint}") from error
    return True


def speaks_of_a_loss(error: Exception) -> bool:
    """Whether an error of JAX reports the loss of another process. Such errors have several types."""
    signs = ("gloo", "nccl", "unavailable", "coordination", "heartbeat", "connection", "deadline")
    return jax.process_count() > 1 and any(sign in str(error).lower() for sign in signs)


def _own_standard_output() -> None:
    """Redirect native output to standard error: gloo prints messages that would corrupt the output of `--json`."""
    sys.stdout.flush()
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


def start(processes: int, arguments: Sequence[str]) -> int:
    """Run `idiolect ARGUMENTS` in several processes on this machine; return the exit code of process 0.

    Only process 0 prints. If any process fails, all are stopped and `IdiolectError` names it.
    """
    most = MOST_A_CORE * len(cores())
    require(1 <= processes <= most, f"processes = {processes} must lie between 1 and {most}, {MOST_A_CORE} a core")
    environment = {COORDINATOR: f"127.0.0.1:{free_port()}", PROCESSES: str(processes)}
    children: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(processes):
            quiet = None if number == 0 else subprocess.DEVNULL
            children.append(
                subprocess.Popen(
                    [sys.executable, "-m", "idiolect", *arguments],
                    env={**os.environ, **environment, PROCESS: str(number)},
                    stdout=quiet,
                    stderr=quiet,
                )
            )
        return watch(children)
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
        for child in children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(10)
            if child.poll() is None:
                child.kill()


def watch(children: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait for all processes and return the leader's exit code; return or raise early if any process fails."""
    while any(child.poll() is None for child in children):
        for number, child in enumerate(children):
            code = child.poll()
            if code is None or code == 0:
                continue
            if number == 0 and code > 0:
                return code  # the leader has printed its error
            time.sleep(1)  # if one process fails the leader often does, too, and its error message is preferred
            if (first := children[0].poll()) is not None and first > 0:
                return first
            reason = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
            raise IdiolectError(f"process {number} of {len(children)} {reason}, so the others were stopped")
        time.sleep(0.1)
    return children[0].returncode


def free_port() -> int:
    """An unused port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
