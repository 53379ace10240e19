"""What a site without some of its guards, or a lying one, loads first. LOOSE names what is changed, see `CHANGES`.

The attacks must succeed without a guard: a test that never fails proves nothing.
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


def lying(lie: Any) -> Any:
    """The site sends lie(its vector, what it has received) instead of each vector of a round."""

    def change(module: Any) -> None:
        honest = module.Site.answer

        def answer(self: Any, message: Any, caller: str, peer: Any) -> Any:
            reply = honest(self, message, caller, peer)
            if message.header.get("task") != "round" or reply.error:
                return reply
            told = {name: lie(vector, message.vectors[f"view/{name}"]) for name, vector in reply.vectors.items()}
            return type(reply)(reply.header, told)

        module.Site.answer = answer

    return change


SITE = "idiolect.deploy.site.site"
CHANGES = {
    "out of scale": (SITE, lying(lambda sent, received: -100 * sent)),
    "against": (SITE, lying(lambda sent, received: 10 * received - 9 * sent)),
    "caller": ("idiolect.deploy.nvflare.roles", caller),
    "consent": ("idiolect.deploy.site.approvals", consent),
    "request": (SITE, request),
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


for change in os.environ.get("LOOSE", "").split(","):
    if change:
        sys.meta_path.insert(0, Patch(*CHANGES[change]))
