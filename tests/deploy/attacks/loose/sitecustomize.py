"""What a site without some of its guards loads first. LOOSE names them: caller, consent, request.

The attacks must succeed there: a test that never fails proves nothing.
"""

import importlib.abc
import importlib.util
import os
import sys
from typing import Any


def caller(module: Any) -> None:
    """Everybody may call what only the hub may."""

    class Everybody:
        def __contains__(self, name: object) -> bool:
            return True

    module.EVERYBODY = Everybody()
    module._hub.__code__ = (lambda _: EVERYBODY).__code__  # pyright: ignore


def consent(module: Any) -> None:
    """No call is compared with the approved studies."""
    for name in ("check", "check_still", "check_round", "keep"):
        setattr(module.Consent, name, lambda *_, **__: None)


def request(module: Any) -> None:
    """Two requests are the same if their vectors are."""
    from idiolect.deploy.messages import digest_of

    module.digest_of_request = lambda message, apart: digest_of(message.vectors)


GUARDS = {
    "caller": ("idiolect.deploy.nvflare.roles", caller),
    "consent": ("idiolect.deploy.site.approvals", consent),
    "request": ("idiolect.deploy.site.site", request),
}


class Patch(importlib.abc.MetaPathFinder):
    """Changes a module when it is loaded."""

    def __init__(self, name: str, change: Any) -> None:
        self.name, self.change = name, change

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            self.change(module)

        spec.loader.exec_module = exec_module
        return spec


for guard in os.environ.get("LOOSE", "").split(","):
    if guard:
        sys.meta_path.insert(0, Patch(*GUARDS[guard]))
