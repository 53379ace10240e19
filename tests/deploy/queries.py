"""A hub with tables at three sites and a model file, for tests of queries."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

from idiolect.data import from_table
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.plan import save_hub
from idiolect.deploy.query import DescribeStudy, ScoreStudy
from idiolect.deploy.site.approvals import approve
from idiolect.deploy.site.config import Allowed, SiteConfig
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.site import Inline, Site
from idiolect.deploy.site.trainer import trainer_of
from idiolect.models import build
from idiolect.models.files import save_model
from tests.deploy.federation import experiment_of
from tests.deploy.schema.tables import hospitals

NAMES = ("north", "south", "west")
COLUMNS = ["client", "age", "sex", "smokes", "ward", "count", "day", "comma", "split", "label"]


def table_of(rows: int = 60, label: str = "words") -> pd.DataFrame:
    """Three sites of 60, 120 and 30 rows."""
    return hospitals(rows=rows, label=label).filter(COLUMNS)


def site_of(folder: Path, name: str, table: pd.DataFrame, floors: Floors | None = None, **allow: Any) -> Site:
    """A site with a table of its own; floors: by default those of every site."""
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "own.csv", index=False)
    limits = Floors() if floors is None else floors
    allowed = Allowed.model_validate({"summaries": True, **allow})
    config = SiteConfig(name=name, data={"table": "own.csv"}, allow=allowed, floors=limits)
    settings = {"folder": str(folder), "data": config.data, "name": name, "floors": limits.model_dump(mode="json")}
    return Site(folder, config, Inline(trainer_of(settings)))


def hub_of(folder: Path, **data: Any) -> Path:
    """A hub of the three sites."""
    folder.mkdir(parents=True)
    experiment = experiment_of(["fedavg"], rounds=1)
    cell = experiment.cells[0].model_copy(update={"data": {"name": "table", "path": "x.csv", **data}})
    values = experiment.model_copy(update={"cells": (cell,)}).model_dump(mode="json")
    save_hub(folder, HubConfig(experiment=values, kind=None, sites=NAMES, deadline=30.0))
    return folder


def federation(folder: Path, table: pd.DataFrame, **settings: Any) -> tuple[Path, dict[str, Site]]:
    """A hub, and its sites with their rows of a table; settings: of `site_of`."""
    sites = {name: site_of(folder / name, name, table.query("client == @name"), **settings) for name in NAMES}
    return hub_of(folder / "hub"), sites


def model_of(path: Path, table: pd.DataFrame, seed: int = 0) -> Path:
    """A model file for this table, with weights that were drawn."""
    source = path.with_suffix(".csv")
    table.to_csv(source, index=False)
    data = from_table(source, missing="mean")
    spec = {"name": "mlr" if data.task == "classification" else "linear"}
    module = build(spec, data.feature_shape, data.num_outputs, data.task, jax.random.key(seed))
    draws = np.random.default_rng(seed)
    module = jax.tree.map(lambda leaf: draws.normal(size=leaf.shape).astype(np.float32), module)
    save_model(
        path,
        module,
        spec=spec,
        feature_shape=data.feature_shape,
        num_outputs=data.num_outputs,
        task=data.task,
        schema=data.schema,
        target=data.target,
        extra={"classes": list(data.classes)},
    )
    return path


def all_approve(sites: dict[str, Site], query: ScoreStudy | DescribeStudy, **options: Any) -> None:
    """Let every site's administrator approve a query."""
    for name, site in sites.items():
        approve(site.folder, name, query, **options)
