"""A federation of real processes on this machine: kits, hub and sites, started, supervised and stopped."""

import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from idiolect.core.errors import os_errors_as
from idiolect.core.rights import make_folder
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.run import progress
from idiolect.deploy.nvflare.jobs import obstacle, read_end, write_job
from idiolect.deploy.nvflare.kits import HUB_FOLDER
from idiolect.deploy.nvflare.processes import free_port, start, stop
from idiolect.deploy.nvflare.provision import Kits, load_kits, provision
from idiolect.deploy.nvflare.session import open_session
from idiolect.deploy.nvflare.supervisor import Watch
from idiolect.deploy.this_machine import ARRAYS, SITES, approve_here, make_site

FOLDER, PROJECT = "federation", "idiolect"
OWN = "idiolect"
"""The folder inside a kit that is the site's, see `roles.SiteRole`."""


def kits_here(out: Path, names: Sequence[str], data: FederatedData) -> Kits:
    """The kits of a prepared federation inside out/federation, made if they are not there.

    Each site has its own samples, and has approved the study.
    """
    folder = out / FOLDER
    kits = load_kits(folder, PROJECT, names) if folder.is_dir() else provision(folder, PROJECT, names, free_port())
    for client, name in enumerate(names):
        make_site(kits.sites[name].folder / OWN, name, data, client)
        approve_here(out, kits.sites[name].folder / OWN, name)
    return kits


@contextmanager
def started(kits: Kits, out: Path) -> Generator[None]:
    """Hub and sites run inside the block; afterwards nothing of them does."""
    running = [kits.hub, *kits.sites.values()]
    for kit in running:
        stop(kit)  # what a command left that was killed
    try:
        start(kits.hub, {HUB_FOLDER: str(out.absolute())})
        for kit in kits.sites.values():
            start(kit)
        yield
    finally:
        for kit in running:
            stop(kit)


def run_here(out: Path, names: Sequence[str], data: FederatedData, report: Callable[[str], None]) -> int:
    """Run a prepared federation (`this_machine.prepare`) to its end; the number of jobs that it took.

    report: gets a line for each event. What the sites own is in out/sites afterwards, and the kits with their keys
    are removed. Raises `StoreError` if it cannot continue; the same call again resumes.
    """
    kits = kits_here(out, names, data)
    with started(kits, out):
        jobs = supervised(kits, out, names, report).run()
    hand_over(kits, out)
    return jobs


def supervised(kits: Kits, out: Path, names: Sequence[str], report: Callable[[str], None]) -> Watch:
    """The supervisor of a federation on this machine."""
    return Watch(
        connect=lambda: open_session(kits.lead),
        job=lambda number: write_job(out / FOLDER / "jobs", f"job-{number}", {"folder": "."}, len(names)),
        wanted=names,
        least=len(names),
        progress=lambda: progress(out)[0],
        ended=lambda: read_end(out),
        obstacle=lambda: obstacle(out),
        report=report,
    )


def hand_over(kits: Kits, out: Path) -> None:
    """Move what each site owns to out/sites, without the copy of its samples, and remove the kits."""
    with os_errors_as(f"cannot write to '{out}'"):
        for name, kit in kits.sites.items():
            target = out / SITES / name
            (kit.folder / OWN / ARRAYS).unlink(missing_ok=True)
            shutil.rmtree(kit.folder / OWN / "cache", ignore_errors=True)
            shutil.rmtree(target, ignore_errors=True)
            make_folder(target.parent)
            shutil.move(kit.folder / OWN, target)
        shutil.rmtree(out / FOLDER)
