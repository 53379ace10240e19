"""A hub's run from its own machine: the engine's process, the supervisor, and what of it stands."""

import contextlib
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from idiolect.core.errors import ConfigError, IdiolectError
from idiolect.core.rights import restrict
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.run import progress
from idiolect.deploy.nvflare.harden import harden
from idiolect.deploy.nvflare.jobs import clean_jobs, write_job
from idiolect.deploy.nvflare.kits import Kit, certificate, read_kit, require_kind
from idiolect.deploy.nvflare.names import HUB_FOLDER
from idiolect.deploy.nvflare.processes import running, start
from idiolect.deploy.nvflare.segment import obstacle, read_end
from idiolect.deploy.nvflare.session import LostError, open_session, session
from idiolect.deploy.nvflare.supervisor import Watch

FIRST = 60.0
"""Seconds for a hub's process to answer after its start."""


@dataclass(frozen=True)
class HubKits:
    """The kits on the hub's side: the hub's own, and that of who submits its jobs."""

    hub: Kit
    lead: Kit


def hub_kits(hub: Path, admin: Path) -> HubKits:
    """The two kits, looked at. Raises `ConfigError` for kits of others, `StoreError` for damaged ones."""
    kits = HubKits(read_kit(hub), read_kit(admin))
    require_kind(kits.hub, "server")
    require_kind(kits.lead, "admin")
    certificate(kits.lead)
    return kits


def start_hub(kits: HubKits, folder: Path) -> bool:
    """Harden and start the hub's process for this folder; False if it runs already.

    Raises `ConfigError` if it runs for another folder, `StoreError` if it cannot run.
    """
    harden(kits.hub.folder)
    restrict(kits.lead.folder)
    pid = running(kits.hub)
    if pid is None:
        clean_jobs(kits.hub)
        start(kits.hub, {HUB_FOLDER: str(folder.absolute())})
        return True
    import psutil

    with contextlib.suppress(psutil.Error):
        other = psutil.Process(pid).environ().get(HUB_FOLDER, "")
        if Path(other) != folder.absolute():
            raise ConfigError(
                f"the hub's process {pid} works in '{other}'; end it with: idiolect hub stop --kit {kits.hub.folder}"
            )
    return False


def end_jobs(kits: HubKits) -> None:
    """End what runs at the hub: jobs of a supervisor that is gone. Raises `StoreError` if the hub never answers."""
    end = time.monotonic() + FIRST
    while True:
        try:
            with session(kits.lead) as opened:
                for job in opened.status().running:
                    opened.abort(job)
                return
        except LostError:
            if running(kits.hub) is None or time.monotonic() > end:
                raise
            time.sleep(0.5)


def watch_of(folder: Path, kits: HubKits, tell: Callable[[str], None]) -> Watch:
    """The supervisor of a hub's folder. A job needs as many sites as a round of all sites needs answers."""
    config = HubConfig.load(folder)
    least = config.needed(len(config.present))
    return Watch(
        connect=lambda: open_session(kits.lead),
        job=lambda number: write_job(folder / "jobs", f"job-{number}", {"folder": "."}, least),
        wanted=config.present,
        least=least,
        progress=lambda: progress(folder)[0],
        ended=lambda: read_end(folder),
        obstacle=lambda: obstacle(folder),
        tell=tell,
    )


@contextmanager
def served(folder: Path, kits: HubKits) -> Generator[None]:
    """The hub's process runs inside the block and after it; a job that an interrupt leaves behind is ended."""
    if not start_hub(kits, folder):
        end_jobs(kits)
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(IdiolectError):
            end_jobs(kits)
        raise
