"""The undisturbed run of the same participation, in one process: its states must be those of the drill.

The forgotten site takes no part in it. So equal states also show that nothing depends on that site any more.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.drill.drill import RUN, Drill
from benchmarks.sites.federation import Only
from benchmarks.sites.parity import same_bits
from idiolect.core.errors import StoreError
from idiolect.core.files import file_name
from idiolect.core.rights import make_folder
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.create import add_site
from idiolect.deploy.hub.journal import HubState
from idiolect.deploy.hub.plan import save_hub
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, Vectors, read_message
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.site import open_site
from idiolect.deploy.site.state import state_of
from idiolect.deploy.this_machine import approve_here
from idiolect.deploy.transport import HubTransport, InProcess, Replies


class _JobEndsError(StoreError):
    """The job of the replay ends where another site joins."""


class Until:
    """A transport whose job ends before a round."""

    def __init__(self, inner: HubTransport, round: int) -> None:
        self.inner, self.round = inner, round

    @property
    def sites(self) -> Sequence[str]:
        """All sites."""
        return self.inner.sites

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """As `HubTransport.call`."""
        task = next(iter(messages.values())).header["task"] if messages else ""
        if task == "round" and round >= self.round:
            raise _JobEndsError(f"round {round + 1} is the late site's first")
        return self.inner.call(round, messages, deadline=deadline)


def replayed(drill: Drill) -> tuple[bool, dict[str, bool]]:
    """(whether the shared state is equal in every bit, site -> whether its private state is), of honest sites."""
    folder, cast = drill.folder / "replay", drill.cast
    shutil.rmtree(folder, ignore_errors=True)
    answered = {line["round"]: line["answered"] for line in drill.lines()}
    first = min(line["round"] for line in drill.lines() if cast.late in line["cohort"])
    config = HubConfig.load(drill.hub)
    begin = tuple(site for site in cast.first if site != cast.leaver)
    change = {"sites": begin, "left": (), "study": "", "starts": {}, "quorum": 1, "patience": 10**6}
    hub = folder / "hub"
    make_folder(hub)
    save_hub(hub, config.model_copy(update={**change, "starting": 600.0, "deadline": 600.0}))
    homes = {site: _home(drill, site, folder / "sites" / site) for site in (*begin, cast.late)}
    for site in begin:
        approve_here(hub, homes[site], site)
    opened = {site: open_site(homes[site]) for site in homes}
    transport = InProcess(opened)
    try:
        same = Only(transport, {RUN: answered})
        try:
            run_hub(hub, Until(same, first))
        except _JobEndsError:
            add_site(hub, cast.late)
        for site in homes:
            approve_here(hub, homes[site], site)
        run_hub(hub, same)
    finally:
        for site in opened.values():
            site.close()
        transport.close()
    mine = states(drill.hub, {site: drill.kit(site).site for site in cast.honest})
    theirs = states(hub, {site: homes[site] for site in cast.honest})
    return same_bits(mine.pop("hub"), theirs.pop("hub")), {
        site: same_bits(mine[site], theirs[site]) for site in cast.honest
    }


def _home(drill: Drill, site: str, folder: Path) -> Path:
    """A site's folder for the replay: the same rows and floors."""
    config = SiteConfig.load(drill.kit(site).site)
    make_folder(folder)
    data = {**config.data, "table": str(drill.table(site)), "schema": str(drill.folder / "schema.json")}
    config.model_copy(update={"data": data}).save(folder)
    return folder


def states(hub: Path, sites: Mapping[str, Path]) -> dict[str, Vectors]:
    """The shared state as "hub", and each site's state after the last round in which the hub used its answer."""
    name = file_name(RUN.replace("/", "__"))
    shared = HubState.load(hub / "checkpoints" / f"{name}.hub", RUN)
    assert shared is not None
    study = HubConfig.load(hub).study
    found = {"hub": shared.vectors}
    for site, folder in sites.items():
        files = (folder / "state" / study / name).glob("*.msg")
        messages = [message for path in files if (message := read_message(path)) is not None]
        rounds = {message.header["round"]: message for message in messages}
        found[site] = state_of(rounds[shared.used.get(site, -1)])
    return found
