"""The two objects that a job names: what runs at the hub, and what answers at a site.

Only the engine imports this module. Its workers hold no JAX.
"""

import importlib
import logging
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

from nvflare.collab import collab

from idiolect.core.errors import IdiolectError
from idiolect.core.loading import loading
from idiolect.deploy.inbox import Inbox
from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.carriers import CollabHub, CollabPeers
from idiolect.deploy.nvflare.garbage import Collector
from idiolect.deploy.nvflare.published import HUB, calling, log_refusal, published, signed_only
from idiolect.deploy.nvflare.segment import hub_folder, write_end
from idiolect.deploy.nvflare.wire import Body, decoded, encoded

_LOG = logging.getLogger("idiolect.site")


def _load() -> None:
    """Load what a hub's run needs."""
    with loading():
        importlib.import_module("idiolect.deploy.hub.run")


class HubRole:
    """The job's Server: runs the rounds of the run in `folder`, inside the folder that IDIOLECT_HUB names."""

    def __init__(self, folder: str = "", run: str = "") -> None:
        self._folder, self._run = folder, run
        # Loaded while the engine brings the sites together; `main` waits for it where it imports.
        threading.Thread(target=_load, daemon=True).start()

    @collab.main
    def main(self) -> None:
        """Run until the last round. How it ended is written for the supervisor."""
        from idiolect.deploy.hub.run import run_hub

        folder = hub_folder(self._folder)
        job = str(collab.fl_ctx.get_job_id())
        try:
            run_hub(folder, CollabHub(collab))
        except BaseException as error:
            write_end(folder, job, error)
            raise
        write_end(folder, job, None)


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
                from idiolect.deploy.site.open import open_site

                self._site: Any = open_site(Path(collab.workspace.get_root_dir()) / "idiolect")
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
