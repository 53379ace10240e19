"""Create a hub's folder, and change its list of sites."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from idiolect.core.errors import ConfigError, StoreError, first_of, require
from idiolect.core.rights import make_folder
from idiolect.data.schema.schema import Schema
from idiolect.deploy.hub.agreement import table_of
from idiolect.deploy.hub.config import FILE, HubConfig
from idiolect.deploy.hub.run import experiment_for
from idiolect.deploy.kind import Kind
from idiolect.deploy.nvflare.provision import check_site
from idiolect.study.spec.experiment import Experiment


def make_hub(
    folder: Path, experiment: Experiment, sites: Sequence[str], schema: Path | None, **settings: object
) -> HubConfig:
    """Write folder/hub.json. schema: the file by which all sites encode; None: they agree on one first.

    settings: of `HubConfig`. Raises `ConfigError` for what cannot run at sites, or a folder that holds a hub.
    """
    require(not (folder / FILE).exists(), f"'{folder}' holds a hub already; change its sites with 'idiolect hub add'")
    for site in sites:
        check_site(site)
    kind = None if schema is None else Kind.of_schema(Schema.load(schema), experiment.name).to_dict()
    values: dict[str, Any] = {"experiment": experiment.model_dump(mode="json"), "kind": kind, "sites": tuple(sites)}
    table = table_of(experiment) if kind is None else {}
    try:
        config = HubConfig.model_validate({**values, "table": table, **settings})
    except ValidationError as error:
        raise ConfigError(first_of(error)) from None
    experiment_for(config)
    config.check()
    try:
        make_folder(folder)
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot write to '{folder}': {getattr(error, 'strerror', None) or error}") from error
    config.save(folder)
    return config


def add_site(folder: Path, site: str) -> HubConfig:
    """Let a site join with the next job. Raises `ConfigError` if it is there, or has left for good."""
    config = HubConfig.load(folder)
    check_site(site)
    require(site not in config.left, f"site '{site}' has left for good; a new one needs another name")
    require(site not in config.sites, f"site '{site}' is in the federation already")
    changed = config.model_copy(update={"sites": (*config.sites, site)})
    changed.save(folder)
    return changed


def remove_site(folder: Path, site: str) -> HubConfig:
    """Never call a site again; its number stays.

    Raises `ConfigError` if it is none or the last one, or if a round needs more answers than sites would be left.
    """
    config = HubConfig.load(folder)
    require(site in config.sites, f"there is no site '{site}'; the federation has {', '.join(config.sites)}")
    require(site not in config.left, f"site '{site}' has left already")
    rest = len(config.present) - 1
    require(rest > 0, f"site '{site}' is the last one; a federation needs a site")
    require(
        (config.quorum or 0) <= rest,
        f"a round needs {config.quorum} answers, and without '{site}' there are {rest} sites; "
        f"first lower quorum in {folder / FILE}",
    )
    changed = config.model_copy(update={"left": (*config.left, site)})
    changed.save(folder)
    return changed
