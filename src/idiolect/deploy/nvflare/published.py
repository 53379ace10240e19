"""Check the caller of every function that a role publishes to the engine.

The engine names a caller by the origin in a message's header (`collab.caller`): "server" for the hub's job, else the
site's name. The hub's process compares the origin with the registered site, but a message with the credentials of
the hub's job passes with any origin. Every call of the hub's job carries these credentials to the sites, so a site
with a changed engine can write any origin. It cannot sign for another: a message that is encrypted from end to end is
signed by its sender's key, and the receiver compares the name in the certificate with the origin. `signed_only`
therefore drops every call that is not encrypted, before the engine reads it.
"""

import functools
import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any, Concatenate, ParamSpec, TypeVar

from nvflare.collab import collab

from idiolect.core.errors import StoreError

_LOG = logging.getLogger("idiolect.site")
HUB = "server"
"""The engine's name of the hub's job. No site can have it: see `provision`."""
CHECKED = "_idiolect_callers"
"""The attribute that `published` sets, by which tests find functions that were published without it."""

P = ParamSpec("P")
R = TypeVar("R")
Role = TypeVar("Role")
_refusals: defaultdict[tuple[str, str], "itertools.count[int]"] = defaultdict(lambda: itertools.count(1))


def published(
    callers: Callable[[Role], Collection[str]], refusal: Callable[[str], R]
) -> Callable[[Callable[Concatenate[Role, P], R]], Callable[Concatenate[Role, P], R]]:
    """Publish a method of a role to the engine, for some callers only.

    Args:
        callers: (role) -> the names that may call the method now.
        refusal: (reason) -> what every other caller gets. The method does not run; the site's log names the caller.
    """

    def wrap(method: Callable[Concatenate[Role, P], R]) -> Callable[Concatenate[Role, P], R]:
        name = getattr(method, "__name__", "?")

        @functools.wraps(method)
        def checked(role: Role, /, *args: P.args, **kwargs: P.kwargs) -> R:
            caller = calling()
            if caller in callers(role):
                return method(role, *args, **kwargs)
            log_refusal(name, caller)
            return refusal(f"'{caller}' may not call '{name}' here now")

        made = collab.publish(checked)
        setattr(made, CHECKED, callers)
        return made

    return wrap


def calling() -> str:
    """The name of the caller, as the engine has verified it. Raises `RuntimeError` outside a call."""
    return str(collab.caller)


def log_refusal(name: str, caller: str) -> None:
    """Log the first, tenth, hundredth ... refusal of one caller: many must not push other lines out of the log."""
    count = next(_refusals[name, caller])
    if str(count).strip("0") == "1":
        times = "" if count == 1 else f" ({count} times so far)"
        _LOG.warning("refused a call of '%s' by '%s'%s", name, caller or "nobody", times)


def signed_only(cell: Any) -> None:
    """Drop every call to this process that is not encrypted, so not signed by its sender's key.

    Args:
        cell: the engine's end of the network in this process.

    Raises:
        StoreError: if the engine takes no such filter, or its calls are not encrypted at all.
    """
    from nvflare.collab.runtime.defs import MSG_CHANNEL
    from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey
    from nvflare.fuel.f3.message import Message
    from nvflare.fuel.f3.streaming.stream_const import STREAM_CHANNEL, STREAM_DATA_TOPIC, StreamHeaderKey

    def unsigned(message: Any) -> Any:
        """An empty message, which ends the delivery, for a call that is not encrypted; else None."""
        if message.get_header(StreamHeaderKey.CHANNEL) != MSG_CHANNEL:
            return None
        marks = (MessageHeaderKey.SECURE, MessageHeaderKey.ENCRYPTED)
        if all(message.get_header(mark) is True for mark in marks):
            return None
        return dropped(message)

    def dropped(message: Any) -> Any:
        log_refusal("unsigned message", str(message.get_header(MessageHeaderKey.ORIGIN)))
        return Message()

    try:
        if not cell.core_cell.supports_secure_messages():
            raise StoreError("the engine's connections have no certificates, so no caller can be verified")
        cell.core_cell.add_incoming_filter(STREAM_CHANNEL, STREAM_DATA_TOPIC, unsigned)
        # A packet of several messages, which the engine does not pass to the filter; nothing here sends any.
        cell.core_cell.add_incoming_filter(CellChannel.CELLNET, "bulk", dropped)
    except AttributeError as error:
        raise StoreError(f"this engine cannot refuse unsigned calls ({error}); nvflare 2.9 is needed") from None
