"""Find out which flags the installed XLA knows: it ends the process at an unknown flag in XLA_FLAGS.

XLA adds and removes flags from one version to the next. This module imports nothing but the standard library: the
tests load it by its path before they import the package.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# XLA parses its flags when the first options are made. The ending of the process is expected: no core dump.
_PARSE = """
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, OSError, ValueError):
    pass
from jaxlib import xla_client
xla_client.CompileOptions()
"""
_SECONDS = 60


def known_flags(flags: Sequence[str], cache: Path | None) -> list[str]:
    """Return those flags that the installed XLA takes, in their order.

    A child process passes the flags to XLA, which names the unknown ones when it ends. A flag counts as unknown where
    no child process can be started.

    Args:
        flags: flags as in XLA_FLAGS, such as `--xla_llvm_disable_expensive_passes=true`.
        cache: a folder that keeps the answers, in one file per version of jaxlib; None asks at every call.
    """
    file = None if cache is None else cache / f"xla-flags-{_version()}.json"
    answers = _read(file)
    if unanswered := [flag for flag in flags if flag not in answers]:
        new = _ask(unanswered)
        if file is not None and new:
            with suppress(OSError):  # a folder that cannot be written to costs a child process per call, nothing else
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps({**_read(file), **new}))
        answers |= new
    return [flag for flag in flags if answers.get(flag, False)]


def _ask(flags: Sequence[str]) -> dict[str, bool]:
    """Whether XLA takes each flag; empty if there is no answer."""
    left = list(flags)
    paths = os.pathsep.join(path for path in sys.path if path)
    while left:
        environment = {**os.environ, "PYTHONPATH": paths, "XLA_FLAGS": " ".join(left)}
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PARSE],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
        if done.returncode == 0:
            break
        lines = done.stderr.decode(errors="replace").splitlines()
        named = {word for line in lines if "Unknown flag" in line for word in line.split()}
        refused = [flag for flag in left if flag in named]
        if not refused:
            return {}
        left = [flag for flag in left if flag not in refused]
    return {flag: flag in left for flag in flags}


def _read(file: Path | None) -> dict[str, bool]:
    """The answers that a file keeps; none where it is absent or damaged."""
    try:
        content = json.loads(file.read_text()) if file is not None else {}
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _version() -> str:
    try:
        return version("jaxlib")
    except PackageNotFoundError:
        return "unknown"
