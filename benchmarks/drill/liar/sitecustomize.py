"""What every process of a dishonest or slow site loads first. It changes the site's answers after the site's own log.

DRILL_LIE names a file: while it exists, a round's message is multiplied by -100. DRILL_HOLD names a file: while it
exists, a round's answer waits for up to DRILL_SECONDS; each answer waits for DRILL_PACE seconds.
"""

import importlib.abc
import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any

MODULE = "idiolect.deploy.site.site"
LIE, HOLD = os.environ.get("DRILL_LIE", ""), os.environ.get("DRILL_HOLD", "")
SECONDS, PACE = float(os.environ.get("DRILL_SECONDS", "0")), float(os.environ.get("DRILL_PACE", "0"))


class Patch(importlib.abc.MetaPathFinder):
    """Changes the site's class when it is loaded."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Find the module as usual, and patch it after it is loaded."""
        if fullname != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            patch(module)

        spec.loader.exec_module = exec_module
        return spec


def patch(module: Any) -> None:
    """Change what `Site.answer` returns."""
    honest = module.Site.answer

    def answer(self: Any, message: Any, caller: str, peer: Any) -> Any:
        reply = honest(self, message, caller, peer)
        if message.header.get("task") != "round" or reply.error:
            return reply
        end = time.monotonic() + SECONDS
        time.sleep(PACE)
        while HOLD and Path(HOLD).exists() and time.monotonic() < end:
            time.sleep(0.1)
        if LIE and Path(LIE).exists():
            return type(reply)(reply.header, {name: -100 * vector for name, vector in reply.vectors.items()})
        return reply

    module.Site.answer = answer


if LIE or HOLD:
    sys.meta_path.insert(0, Patch())
