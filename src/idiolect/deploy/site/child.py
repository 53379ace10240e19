"""The trainer in a process of its own: what kills it is a failed call, and not the end of everybody's job.

The two processes talk through a socket pair: a header of JSON, and the vectors as raw bytes. No port, no file, no
pickle. Only the child imports JAX and reads the data.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from idiolect.core.errors import IdiolectError, StoreError
from idiolect.core.files import json_of
from idiolect.core.footprint import give_back
from idiolect.core.loading import loading
from idiolect.core.rights import PRIVATE_UMASK
from idiolect.deploy.messages import Message, packed, unpacked

STARTING = 120.0
"""Seconds that a child may take to import, to read its data and to say so, and to compile what is new to it."""


class Handle(Protocol):
    """A trainer that a site calls."""

    def call(self, message: Message, seconds: float) -> Message:
        """Its answer, or a message with `error`; after `seconds` the call has failed."""
        ...

    def close(self) -> None:
        """End it."""
        ...


def send(connection: Connection, message: Message) -> None:
    """Send a message to the other process."""
    connection.send_bytes(json.dumps(dict(message.header)).encode())
    connection.send_bytes(packed(message.vectors).data)


def receive(connection: Connection) -> Message:
    """Receive a message of the other process. Raises `EOFError` if it has ended."""
    header = json_of(connection.recv_bytes())
    return Message(header, unpacked(connection.recv_bytes()))


class Child:
    """A trainer in a child process; started when it is needed, and again after it has died.

    settings: JSON values from which the child builds its trainer; environment: more variables for it. A call during
    which the child dies is sent to a new one `again` times more: a trainer keeps no state, so that the answer is the
    same.
    """

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str], again: int = 1) -> None:
        self.settings, self.environment, self.again = dict(settings), dict(environment), again
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._turn = threading.Lock()
        self._patience = 0.0  # until when a child may start, or compile
        self._ready = False
        self._late: str | None = None  # a task whose answer nobody waits for any more
        self._known = set[str]()  # tasks of runs that this child has compiled

    def start(self) -> None:
        """Start the child now, without waiting for it: it imports and reads while its first call is on its way."""
        with self._turn:
            if self._process is None:
                self._launch()

    def call(self, message: Message, seconds: float) -> Message:
        """As `Handle.call`. A child that does not answer in time is killed, and the next call starts a new one."""
        end = time.monotonic() + seconds
        if not self._turn.acquire(timeout=max(seconds, 0)):
            return Message({"error": f"the trainer was busy with an earlier call for {seconds:g} s"})
        try:
            for left in range(self.again, -1, -1):
                try:
                    return self._ask(message, end, seconds)
                except (EOFError, OSError):
                    code = self._end()
                    if left == 0 or time.monotonic() >= end:
                        return Message({"error": f"the trainer died ({_cause(code)})"})
        finally:
            self._turn.release()
        raise AssertionError("the loop returns")

    def _ask(self, message: Message, end: float, seconds: float) -> Message:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._launch()
        problem = self._waited(end, seconds)
        if problem is not None:
            return problem
        assert self._connection is not None
        task = _task(message)
        send(self._connection, message)
        if not self._arrives(end):
            if task in self._known:
                self._end()
                self._launch()  # it is there for the next call
            else:
                self._late, self._patience = task, time.monotonic() + STARTING
            return Message({"error": f"the trainer did not finish within {seconds:g} s"})
        self._known.add(task)
        return receive(self._connection)

    def _arrives(self, end: float) -> bool:
        """Whether the child says something before `end`."""
        assert self._connection is not None
        return self._connection.poll(max(end - time.monotonic(), 0))

    def _launch(self) -> None:
        """Start a child; it says later that it is ready."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "idiolect.deploy.site.child", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
                umask=PRIVATE_UMASK,  # also what JAX keeps of compiled programs is for the site only
            )
        self._connection = Connection(ours.detach())
        self._patience = time.monotonic() + STARTING
        self.starts += 1
        send(self._connection, Message(self.settings))

    def _waited(self, end: float, seconds: float) -> Message | None:
        """Wait until the child can be asked; why it cannot be, else None."""
        while not self._ready or self._late is not None:
            assert self._connection is not None
            doing = "finish its first answer" if self._ready else "start"
            if not self._arrives(min(end, self._patience)):
                if time.monotonic() >= self._patience:
                    self._end()
                return Message({"error": f"the trainer did not {doing} within {seconds:g} s"})
            answer = receive(self._connection)
            if self._late is not None:
                self._known.add(self._late)
                self._late = None
            elif answer.error:
                self._end()
                return answer
            else:
                self._ready = True
        return None

    def _end(self) -> int | None:
        """Kill the child, if there is one; its return code."""
        if self._connection is not None:
            self._connection.close()
        code = None
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()
            code = self._process.wait()
        self._process = self._connection = self._late = None
        self._ready = False
        self._known.clear()
        return code

    @property
    def pid(self) -> int | None:
        """The child's process number; None if none runs."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the child."""
        with self._turn:
            self._end()


def _task(message: Message) -> str:
    """What a call compiles when it comes for the first time: a task, of a run."""
    terms = message.header.get("terms")
    return f"{message.header.get('task', '')} {terms.get('run', '') if isinstance(terms, dict) else ''}"


def _cause(code: int | None) -> str:
    if code is None or code >= 0:
        return f"return code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"{name}, perhaps out of memory" if name == "SIGKILL" else name


def main(descriptor: int) -> None:
    """The child: build the trainer, then answer until the other process ends."""
    with suppress(OSError):
        Path(f"/proc/{os.getpid()}/oom_score_adj").write_text("1000")  # the kernel takes the child first
    connection = Connection(descriptor)
    try:
        settings = receive(connection).header
        with loading():
            from idiolect.deploy.site.trainer import trainer_of
            from idiolect.runtime.devices import use_cores

        use_cores()
        try:
            trainer = trainer_of(settings)
        except IdiolectError as error:
            send(connection, Message({"error": str(error)}))
            return
        send(connection, Message({"ready": True}))
        give_back()
        compiled = set[str]()
        while True:
            call = receive(connection)
            try:
                answer = trainer(call)
            except Exception as error:  # its text may quote data: only the kind of error leaves the process
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                answer = Message({"error": f"the trainer failed ({type(error).__name__}); see the site's own log"})
            send(connection, answer)
            if (task := _task(call)) not in compiled:
                compiled.add(task)
                give_back()
    except (EOFError, BrokenPipeError, ConnectionError):
        return
    except StoreError as error:
        print(error, file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]))
