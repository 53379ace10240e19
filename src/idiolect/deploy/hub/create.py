"""Create a hub's folder with its study, and change its list of sites."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from idiolect.core.errors import ConfigError, StoreError, first_of, reason_of, require
from idiolect.core.rights import make_folder
from idiolect.data.schema.schema import Schema
from idiolect.deploy.hub.agreement import table_of
from idiolect.deploy.hub.config import FILE, HubConfig
from idiolect.deploy.hub.plan import save_hub, study_of
from idiolect.deploy.hub.run import experiment_for
from idiolect.deploy.kind import Kind
from idiolect.deploy.nvflare.provision import check_site
from idiolect.deploy.study import Difference, Study, new_id
from idiolect.study.spec.experiment import Experiment


def make_hub(
    folder: Path, experiment: Experiment, sites: Sequence[str], schema: Path | None, **settings: object
) -> HubConfig:
    """Write folder/hub.json and folder/study.json.

    schema: the file by which all sites encode; None: they agree on one first.

    settings: of `HubConfig`. Raises `ConfigError` for what cannot run at sites, or a folder that holds a hub.
    """
    require(not (folder / FILE).exists(), f"'{folder}' holds a hub already; change its sites with 'idiolect hub add'")
    for site in sites:
        check_site(site)
    kind = None if schema is None else Kind.of_schema(Schema.load(schema), experiment.name).to_dict()
    values: dict[str, Any] = {"experiment": experiment.model_dump(mode="json"), "kind": kind, "sites": tuple(sites)}
    values |= {"study": new_id(experiment.name), "agree": kind is None}
    table = table_of(experiment) if kind is None else {}
    try:
        config = HubConfig.model_validate({**values, "table": table, **settings})
    except ValidationError as error:
        raise ConfigError(first_of(error)) from None
    experiment_for(config)
    config.check()
    study_of(config)  # what cannot run leaves no folder behind
    try:
        make_folder(folder)
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot write to '{folder}': {reason_of(error)}") from error
    save_hub(folder, config)
    return config


@dataclass(frozen=True)
class Changed:
    """A hub's folder after a change: its configuration, its study, and what differs from the study before."""

    config: HubConfig
    study: Study
    differences: tuple[Difference, ...]


def add_site(folder: Path, site: str) -> Changed:
    """Let a site join with the next job. Raises `ConfigError` if it is there, or has left for good."""
    config = HubConfig.load(folder)
    check_site(site)
    require(site not in config.left, f"site '{site}' has left for good; a new one needs another name")
    require(site not in config.sites, f"site '{site}' is in the federation already")
    return _changed(folder, config.model_copy(update={"sites": (*config.sites, site)}))


def remove_site(folder: Path, site: str) -> Changed:
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
    return _changed(folder, config.model_copy(update={"left": (*config.left, site)}))


def _changed(folder: Path, config: HubConfig) -> Changed:
    return Changed(config, *save_hub(folder, config))
