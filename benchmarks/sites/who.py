"""Which process is what: the parents of hub and sites, their jobs' workers, and the trainers."""

from dataclasses import dataclass

import psutil

from idiolect.deploy.nvflare.kits import Kit
from idiolect.deploy.nvflare.processes import running, workers
from idiolect.deploy.nvflare.provision import Kits

TRAINER = "idiolect.deploy.site.child"


@dataclass(frozen=True)
class Member:
    """The processes of a hub or a site. workers: of jobs; trainers: of its workers."""

    parent: int | None
    workers: tuple[int, ...]
    trainers: tuple[int, ...]

    @property
    def all(self) -> list[int]:
        """Every process."""
        return [*([] if self.parent is None else [self.parent]), *self.workers, *self.trainers]


def member(kit: Kit) -> Member:
    """The processes of a kit now."""
    job, trainers = list[int](), list[int]()
    for pid in workers(kit):
        try:
            line = psutil.Process(pid).cmdline()
        except psutil.Error:
            continue
        (trainers if TRAINER in line else job).append(pid)
    return Member(running(kit), tuple(job), tuple(trainers))


def members(kits: Kits) -> dict[str, Member]:
    """The hub's processes and each site's."""
    return {"hub": member(kits.hub), **{name: member(kit) for name, kit in kits.sites.items()}}
