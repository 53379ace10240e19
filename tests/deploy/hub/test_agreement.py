"""Sites agree on a schema over the transport, and then train by it."""

import json

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data import from_table
from idiolect.data.schema.schema import Schema
from idiolect.deploy.hub.agreement import SCHEMA, table_of
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.plan import save_hub
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.site import Inline
from idiolect.deploy.site.trainer import trainer_of
from idiolect.deploy.transport import InProcess, QuorumError
from tests.deploy.federation import HUBS, Willing, experiment_of, participation, scores_of
from tests.deploy.schema.tables import hospitals

NAMES = ("north", "south", "west")


def site_of(folder, name, table, **allow):
    folder.mkdir(parents=True)
    table.to_csv(folder / "own.csv", index=False)
    allowed = {"summaries": True, "rarest": 1, **allow}
    config = SiteConfig(name=name, data={"table": "own.csv"}, allow=allowed)
    settings = {"folder": str(folder), "data": config.data, "name": name, "rarest": config.allow.rarest}
    return Willing(folder, config, Inline(trainer_of(settings)))


@pytest.fixture
def table():
    return hospitals(rows=20)[["client", "age", "sex", "smokes", "split", "label"]]


def federation(folder, table, **allow):
    sites = {name: site_of(folder / name, name, table[table.client == name], **allow) for name in NAMES}
    experiment = experiment_of(["fedavg"], rounds=1, eval_every=1).model_dump(mode="json")
    hub = folder / "hub"
    hub.mkdir()
    study, _ = save_hub(hub, HubConfig(experiment=experiment, kind=None, sites=NAMES, deadline=30.0))
    HUBS[study.id] = hub
    return hub, sites


def test_the_agreed_schema_is_that_of_the_pooled_table_and_a_run_follows(tmp_path, table):
    hub, sites = federation(tmp_path, table)
    run_hub(hub, InProcess(sites))
    table.to_csv(tmp_path / "all.csv", index=False)
    pooled = from_table(tmp_path / "all.csv", missing="mean").schema
    agreed = Schema.load(hub / SCHEMA)
    assert HubConfig.load(hub).agreed.schema == agreed.to_dict()
    assert agreed.features == pooled.features
    assert agreed.label == pooled.label
    mine, theirs = json.dumps(agreed.to_dict()), json.dumps(pooled.to_dict())
    numbers = [np.array([float(n) for n in leaves(json.loads(text))]) for text in (mine, theirs)]
    np.testing.assert_allclose(*numbers, rtol=1e-6)
    assert len(participation(hub)) == 1
    assert (1, "global", "test") in scores_of(hub, "t/fedavg/seed0")
    run_hub(hub, InProcess(sites))  # a finished run asks for nothing again
    for site in sites.values():
        (line,) = [line for line in site.outbox.lines() if line["task"] == "summary"]
        assert line["header"]["summary"]["site"] == site.config.name
        assert any("column 'age'" in told for told in line["listing"])


def leaves(value):
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    elif isinstance(value, int | float):
        yield value


def test_a_site_that_does_not_allow_it_sends_nothing_of_its_columns(tmp_path, table):
    hub, sites = federation(tmp_path, table, summaries=False)
    with pytest.raises(QuorumError, match=r"allow\.summaries"):
        run_hub(hub, InProcess(sites))
    assert not (hub / SCHEMA).exists()
    assert HubConfig.load(hub).kind is None
    assert all("summary" not in line["header"] for site in sites.values() for line in site.outbox.lines())


def test_sites_that_disagree_are_named(tmp_path, table):
    hub, sites = federation(tmp_path, table)
    sites["west"] = site_of(tmp_path / "other", "west", table[table.client == "west"].drop(columns="age"))
    with pytest.raises(DataError, match="site 'west' has no column 'age'"):
        run_hub(hub, InProcess(sites))
    assert HubConfig.load(hub).kind is None


def test_a_hub_asks_as_its_experiment_reads_a_table():
    experiment = experiment_of(["fedavg"])
    assert table_of(experiment) == {}
    cell = experiment.cells[0].model_copy(update={"data": {"name": "table", "path": "x.csv", "label": "y"}})
    assert table_of(experiment.model_copy(update={"cells": (cell,)})) == {"label": "y"}
