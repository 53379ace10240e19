"""The two objects that a job names: what runs at the hub, and what answers at a site.

Only the engine imports this module. Its workers hold no JAX.

`published` checks the caller of every function that a role publishes to the engine. The engine names a caller by the
origin in a message's header (`collab.caller`): "server" for the hub's job, otherwise the site's name. The hub's
process compares the origin with the registered site, but a message with the credentials of the hub's job passes with
any origin. Every call of the hub's job carries these credentials to the sites, so a site with a changed engine can
write any origin. It cannot sign for another: a message that is encrypted from end to end is signed by its sender's
key, and the receiver compares the name in the certificate with the origin. `signed_only` therefore drops every call
that is not encrypted, before the engine reads it.
"""

import contextlib
import functools
import importlib
import itertools
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from nvflare.collab import collab

from idiolect.core.errors import IdiolectError, StoreError
from idiolect.core.loading import loading
from idiolect.deploy.events import EventLog
from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.carriers import Body, CollabHub, CollabPeers, Collector, decoded, encoded
from idiolect.deploy.nvflare.jobs import hub_folder, write_end
from idiolect.deploy.nvflare.kits import certificate, read_kit
from idiolect.deploy.nvflare.limits import Meter
from idiolect.deploy.transport import Inbox

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


def _load() -> None:
    """Load what a hub's run needs."""
    with loading():
        importlib.import_module("idiolect.deploy.hub.run")


class HubRole:
    """The job's Server: works in `folder`, inside the folder that IDIOLECT_HUB names.

    It runs the rounds of the study, or asks the sites a query. run: the query's id, "" for the study.
    """

    def __init__(self, folder: str = "", run: str = "") -> None:
        self._folder, self._run = folder, run
        # Loaded while the engine brings the sites together; `main` waits for it where it imports.
        threading.Thread(target=_load, daemon=True).start()

    @collab.main
    def main(self) -> None:
        """Run until the last round. How it ended is written for the supervisor."""
        folder = hub_folder(self._folder)
        job = str(collab.fl_ctx.get_job_id())
        try:
            hub = CollabHub(collab, Meter(collab.fl_ctx.get_engine().get_cell()))
            if self._run:
                from idiolect.deploy.hub.query import run_query

                run_query(folder, self._run, hub)
            else:
                from idiolect.deploy.hub.run import run_hub

                run_hub(folder, hub)
        except BaseException as error:
            write_end(folder, job, error)
            raise
        write_end(folder, job, None)


def _describe(site: Any, kit: Path) -> None:
    """Let a site say until when its certificate is valid, and keep the warnings of its process in its own log."""
    if not isinstance(getattr(site, "events", None), EventLog):
        return
    site.events.gather()
    with contextlib.suppress(IdiolectError):
        site.expires = certificate(read_kit(kit)).not_after.isoformat(timespec="seconds")


def _hub(_: "SiteRole") -> tuple[str, ...]:
    return (HUB,)


def _neighbours(role: "SiteRole") -> Collection[str]:
    return role.inbox.neighbours


def _refused(reason: str) -> tuple[str, Body]:
    return encoded(Message({"error": reason}))


class SiteRole:
    """The job's Client: answers the hub's calls and keeps what neighbours send. Nothing raised here carries data.

    Every function that others may call is `published`, so that its callers are verified before it runs.
    """

    def __init__(self) -> None:
        self.inbox, self._site, self._closed = Inbox(), None, "the site has not been opened"
        self._lock, self._collect = threading.Lock(), Collector()

    @collab.init
    def open(self) -> None:
        """Open the site. Every answer reports what fails here: an exception would end the job for all sites."""
        with self._lock:
            try:
                signed_only(collab.fl_ctx.get_engine().get_cell())
                from idiolect.deploy.site.site import open_site

                kit = Path(collab.workspace.get_root_dir())
                self._site: Any = open_site(kit / "idiolect")
                _describe(self._site, kit)
            except Exception as error:
                _LOG.warning("the site cannot be opened: %s", error)  # stays at the site
                self._closed = f"the site cannot be opened ({type(error).__name__}); its own log says why"

    @published(_hub, _refused)
    def answer(self, header: str, body: Body) -> tuple[str, Body]:
        """Answer one call of the hub; an error is a header with "error"."""
        if self._site is None:
            return encoded(Message({"error": self._closed}))
        message = decoded((header, body))
        if message.error:
            return encoded(Message({"error": "the hub " + message.error}))
        try:
            return encoded(self._site.answer(message, calling(), CollabPeers(collab, self.inbox)))
        except Exception as error:  # the site never raises; if it does all the same, only the kind of error leaves it
            _LOG.warning("a call failed: %s", error)
            return encoded(Message({"error": f"the site failed ({type(error).__name__}); its own log says why"}))
        finally:
            self._collect()

    @published(_neighbours, lambda _: False)
    def put(self, round: int, header: str, body: Body) -> bool:
        """Keep a neighbour's message of a round of the run in progress; False if it is none."""
        message = decoded((header, body))
        if message.error or not self.inbox.put(calling(), round, message):
            log_refusal("put", calling())
            return False
        return True

    @collab.final
    def close(self) -> None:
        """End the site's trainer."""
        with self._lock:
            site, self._site = self._site, None
        if site is not None:
            try:
                site.close()
            except IdiolectError as error:
                _LOG.warning("the site was not closed: %s", error)
