"""A federation whose sites are all on this machine: each a folder with its data, private state, models and log."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from idiolect.core.errors import os_errors_as, require
from idiolect.core.rights import make_folder
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.config import FILE as HUB_FILE
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.plan import save_hub, study_of
from idiolect.deploy.hub.run import experiment_for, run_hub
from idiolect.deploy.kind import Kind
from idiolect.deploy.site.approvals import Approvals, approve
from idiolect.deploy.site.config import FILE as SITE_FILE
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.data import save_arrays
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.site import open_site
from idiolect.deploy.study import FILE as STUDY_FILE
from idiolect.deploy.study import Study, new_id
from idiolect.deploy.transport import InProcess
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment

ARRAYS = "own.data"
SITES = "sites"


def divided(experiment: Experiment, bench: Workbench, sites: int | None) -> FederatedData:
    """The experiment's data at this many sites (None: one a client); several clients in a row are merged into one.

    Raises `ConfigError` if its cells have different data, or there are fewer clients than sites.
    """
    specs = [cell.data for cell in experiment.cells]
    require(all(spec == specs[0] for spec in specs), "all cells must have the same data: name one with --only")
    automatic = any(cell.automatic for cell in experiment.cells)
    require(not automatic, "rounds = 'auto' and rate go with simulation; give rounds a number and methods their rate")
    require(not experiment.cells[0].new_splits, "sites divide their own samples once: leave new_splits out")
    data = bench.load(experiment.cells[0], experiment.first_seed)
    data.stored("train")
    require(data.held_out is None, "leave held_out out: a site that joins later is started later")
    if sites is None or sites == data.num_clients:
        return data
    require(
        1 <= sites < data.num_clients,
        f"--sites {sites}: {data.name} has {data.num_clients} clients; name at most as many",
    )
    return data.merged(sites)


def site_names(data: FederatedData) -> list[str]:
    """Names that certificates can hold: site-1, site-2, ... in the order of the clients."""
    return [f"site-{number}" for number in range(1, data.num_clients + 1)]


def prepare(out: Path, experiment: Experiment, data: FederatedData, **settings: object) -> list[str]:
    """Write out/hub.json and out/study.json; returns the sites' names. settings: of `HubConfig`.

    An existing folder is resumed if it is of the same experiment and data.
    """
    names, kind = site_names(data), Kind.of(data)
    values = {"experiment": experiment.model_dump(mode="json"), "kind": kind.to_dict(), "sites": names, **settings}
    config = HubConfig.model_validate(values)
    config.check()
    experiment_for(config)
    study_of(config.model_copy(update={"study": new_id(experiment.name)}))  # what cannot run leaves no folder behind
    if (out / HUB_FILE).is_file():
        old = HubConfig.load(out)
        same = (old.kind, old.sites) == (config.kind, config.sites)
        require(same, f"'{out}' holds a federation of other data or sites; use another --out")
        config = config.model_copy(update={"study": old.study})
    with os_errors_as(f"cannot write to '{out}'"):
        make_folder(out)
    save_hub(out, config)
    return names


def approve_here(out: Path, folder: Path, name: str) -> None:
    """Approve the study of a prepared federation for a site's folder, since hub and sites are one user's.

    Nothing changes if the site has approved it already. Raises `ConfigError`, `StoreError` as `approvals.approve`.
    """
    study = Study.load(out / STUDY_FILE)
    known = Approvals.load(folder).of(study.id)
    if known is None or known.digest != study.digest or known.revoked:
        approve(folder, name, study)


def approval_line(out: Path) -> str:
    """The line that reports this approval."""
    study = Study.load(out / STUDY_FILE)
    return f"study {study.id}: approved by this command, since all sites are folders of this machine's user"


def make_site(folder: Path, name: str, data: FederatedData, client: int) -> None:
    """Make a site's folder with one client's samples; one that is there stays as it is.

    Its site.toml has no floors: all rows belong to the user of this machine, and nothing leaves it.
    """
    if (folder / SITE_FILE).is_file():
        return
    with os_errors_as(f"cannot write to '{folder}'"):
        make_folder(folder)
    save_arrays(folder / ARRAYS, data, client)
    SiteConfig(name=name, data={"arrays": ARRAYS}, floors=Floors.none()).save(folder)


@contextmanager
def quick(out: Path, names: list[str], data: FederatedData) -> Generator[InProcess]:
    """The sites as threads of this process, their trainers as processes: no network, no certificates."""
    folders = {name: out / SITES / name for name in names}
    for client, (name, folder) in enumerate(folders.items()):
        make_site(folder, name, data, client)
        approve_here(out, folder, name)
    opened = {name: open_site(folder) for name, folder in folders.items()}
    transport = InProcess(opened)
    try:
        yield transport
    finally:
        for site in opened.values():
            site.close()
        transport.close()


def run_quick(out: Path, names: list[str], data: FederatedData) -> None:
    """Run a prepared federation by `quick`."""
    with quick(out, names, data) as transport:
        run_hub(out, transport)


def forget_samples(out: Path) -> None:
    """Remove the copies of the samples that `make_site` wrote; models, logs and private states stay."""
    for path in (out / SITES).glob(f"*/{ARRAYS}"):
        path.unlink(missing_ok=True)
