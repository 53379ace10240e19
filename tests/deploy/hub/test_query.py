"""Queries over the transport: scores and descriptions of approved sites, compared with the pooled rows."""

import json

import numpy as np
import pandas as pd
import pytest

from idiolect.api.predict import predict
from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.deploy.hub.query import new_description, new_score, query_folder, result_of, run_query
from idiolect.deploy.messages import Message
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.transport import InProcess, QuorumError
from idiolect.metrics.base import measure_rows
from idiolect.metrics.registry import METRICS
from idiolect.models import load_model
from tests.deploy.queries import NAMES, all_approve, federation, hub_of, model_of, table_of

TABLE = table_of(rows=240)
TEST = TABLE[TABLE.split == "test"]
TRAIN = TABLE[TABLE.split == "train"]


def asked(hub, query, sites):
    run_query(hub, query.id, InProcess(sites))
    return result_of(hub, query)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_of(tmp_path_factory.mktemp("model") / "m.safetensors", TABLE)


@pytest.fixture
def both(tmp_path):
    return federation(tmp_path, TABLE)


def test_scores_are_those_of_the_model_on_the_pooled_rows(tmp_path, model):
    hub, sites = federation(tmp_path, TABLE, floors=Floors(count=1))
    query = new_score(hub, model, metric="accuracy,log-loss,auroc,macro-f1")
    all_approve(sites, query)
    result = asked(hub, query, sites)
    assert result.missing == {}
    assert result.withheld == {}
    rows = {row.where: row for row in result.rows}
    loaded = load_model(model)
    metrics = [METRICS[name] for name in result.metrics]
    for name, own in [*TEST.groupby("client"), ("all rows", TEST)]:
        expected = measure_rows(metrics, loaded.outputs(own), loaded.schema.encode_labels(own))
        row = rows[name]
        assert row.rows == len(own)
        for metric, value in expected.items():
            if (name, metric) == ("all rows", "auroc"):
                assert row.values[metric] is None  # no sums give it
            else:
                assert row.values[metric] == pytest.approx(value, abs=1e-6), (name, metric)
        assert row.loss == pytest.approx(expected["log-loss"], abs=1e-5)
        low, high = row.intervals["accuracy"]
        assert low < row.values["accuracy"] < high
    assert rows["all rows"].values["accuracy"] == pytest.approx(predict(model, TEST).scores["accuracy"], abs=1e-9)
    mean = rows["mean over sites"]
    assert mean.values["auroc"] == pytest.approx(np.mean([rows[name].values["auroc"] for name in NAMES]))
    assert mean.intervals["auroc"][0] < mean.values["auroc"] < mean.intervals["auroc"][1]


def test_nothing_but_the_log_is_written_at_a_site(both, model):
    hub, sites = both
    query = new_score(hub, model, metric="accuracy")
    all_approve(sites, query)
    before = {path for site in sites.values() for path in site.folder.rglob("*")}
    asked(hub, query, sites)
    new = {path.name for site in sites.values() for path in site.folder.rglob("*")} - {path.name for path in before}
    assert new == {"sent.jsonl", "used.sqlite", "events.jsonl", ".events.jsonl.lock", ".sent.jsonl.lock"}
    (line,) = sites["west"].outbox.lines()
    assert (line["task"], sorted(line["header"])) == ("score", ["scores"])
    assert max(int(np.prod(shape)) for _, shape in line["vectors"].values()) <= 2  # sums, no row


def test_the_result_is_written_as_json_csv_and_a_table(both, model):
    hub, sites = both
    query = new_score(hub, model, metric="accuracy")
    all_approve(sites, query)
    result = asked(hub, query, sites)
    place = query_folder(hub, query.id)
    values = json.loads((place / "result.json").read_text())
    assert values == json.loads(json.dumps(result.to_dict()))
    table = pd.read_csv(place / "result.csv")
    assert table["where"].tolist() == [row.where for row in result.rows]
    assert table["rows"].tolist() == [row.rows for row in result.rows]
    np.testing.assert_allclose(table["accuracy"], [row.values["accuracy"] for row in result.rows])
    assert "| all rows | test |" in (place / "result.md").read_text()


def test_a_site_that_has_not_approved_sends_nothing(both, model):
    hub, sites = both
    query = new_score(hub, model, metric="accuracy")
    all_approve({name: sites[name] for name in ("north", "south")}, query)
    result = asked(hub, query, sites)
    assert [row.where for row in result.rows][:2] == ["north", "south"]
    assert "study: approved no study with this id" in result.missing["west"]
    (line,) = sites["west"].outbox.lines()
    assert [*line["header"]] == ["error"]


def test_only_sites_without_an_answer_are_asked_again(both, model):
    hub, sites = both
    query = new_score(hub, model, metric="accuracy")
    all_approve({name: sites[name] for name in ("north", "south")}, query)
    asked(hub, query, sites)
    all_approve({"west": sites["west"]}, query)
    result = asked(hub, query, sites)
    assert result.missing == {}
    assert [len([*site.outbox.lines()]) for site in sites.values()] == [1, 1, 2]


def test_if_nobody_has_approved_the_job_ends_for_good(both, model):
    hub, sites = both
    query = new_score(hub, model)
    with pytest.raises(DataError, match=r"no site has answered .*site 'north' refuses"):
        run_query(hub, query.id, InProcess(sites))
    with pytest.raises(QuorumError, match="not connected"):
        run_query(hub, query.id, InProcess({}))


def test_the_same_question_is_the_same_query(tmp_path, model):
    hub = hub_of(tmp_path / "hub")
    first = new_score(hub, model, metric="accuracy")
    assert new_score(hub, model, metric="accuracy") == first
    assert new_score(hub, model, metric="auroc").id != first.id
    assert new_description(hub) == new_description(hub)
    assert new_description(hub, sites=["north"]).sites == ("north",)


def test_a_model_or_site_that_cannot_be_asked_leaves_nothing_behind(tmp_path, model):
    hub = hub_of(tmp_path / "hub")
    (tmp_path / "none.safetensors").write_bytes(b"no model at all")
    (tmp_path / "cut.safetensors").write_bytes(model.read_bytes()[:-9])
    with pytest.raises(StoreError, match="is not an idiolect model file"):
        new_score(hub, tmp_path / "none.safetensors")
    with pytest.raises(StoreError, match="truncated or damaged"):
        new_score(hub, tmp_path / "cut.safetensors")
    with pytest.raises(StoreError, match="no such file"):
        new_score(hub, tmp_path / "absent.safetensors")
    with pytest.raises(ConfigError, match="metric 'mse' is for regression"):
        new_score(hub, model, metric="mse")
    with pytest.raises(ConfigError, match="there is no site 'east'"):
        new_score(hub, model, sites=["east"])
    with pytest.raises(ConfigError, match="a site is named twice"):
        new_description(hub, sites=["west", "west"])
    assert not (hub / "queries").exists()


def test_an_answer_that_cannot_be_read_is_named(both, model):
    hub, sites = both
    query = new_score(hub, model, metric="accuracy")
    all_approve(sites, query)

    class Liar:
        def answer(self, message, caller, peer):
            return Message({"scores": {"model": {"test": {"count": 5, "loss": 1.0, "values": {}}}}})

    result = asked(hub, query, {**sites, "west": Liar()})
    assert "no accuracy" in result.missing["west"]
    assert [row.where for row in result.rows] == ["north", "south", "all rows", "mean over sites"]


def test_a_description_is_that_of_the_pooled_rows(both):
    """Exact where no count of few rows was withheld; quantiles lie within their bounds."""
    hub, sites = both
    query = new_description(hub)
    all_approve(sites, query)
    result = asked(hub, query, sites)
    columns = {column.name: column for column in result.columns}
    assert [*columns] == ["label", "age", "sex", "smokes", "ward", "count", "day", "comma"]
    assert result.to_dict()["rows"] == len(TRAIN)
    numbers = {
        "age": TRAIN.age,
        "count": TRAIN["count"],
        "smokes": TRAIN.smokes.astype(float),
        "comma": TRAIN.comma.str.replace(",", ".").astype(float),
        "day": (pd.to_datetime(TRAIN.day) - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
    }
    for name, values in numbers.items():
        found = columns[name]
        assert (found.few_missing, found.withheld) == ((), {}), name  # else it would not be exact
        assert (found.rows, found.missing) == (values.notna().sum(), values.isna().sum())
        np.testing.assert_allclose([found.mean, found.deviation], [values.mean(), values.std()], rtol=1e-6)
        for one in found.quantiles:
            expected = values.quantile(one.share)
            assert (-np.inf if one.low is None else one.low) <= expected, name
            assert (np.inf if one.high is None else one.high) >= expected, name
            if 0.2 < one.share < 0.8:
                assert one.high - one.low <= 1.5 * values.std()
                assert abs(one.value - expected) <= one.high - one.low
    for name in ("sex", "label"):
        assert columns[name].categories == TRAIN[name].value_counts().to_dict()
        assert not columns[name].at_least
    assert columns["smokes"].categories == {"0": int((~TRAIN.smokes).sum()), "1": int(TRAIN.smokes.sum())}
    assert result.per_site == {}


def test_a_description_is_written_as_table_json_csv_and_part_of_a_page(tmp_path):
    table = TABLE.assign(sex=TABLE.sex.replace({"f": "<b>|f"}))
    hub, sites = federation(tmp_path, table)
    query = new_description(hub)
    all_approve(sites, query)
    result = asked(hub, query, sites)
    place = query_folder(hub, query.id)
    assert json.loads((place / "description.json").read_text()) == json.loads(json.dumps(result.to_dict()))
    assert pd.read_csv(place / "description.csv")["column"].tolist() == [column.name for column in result.columns]
    page = (place / "description.html").read_text()
    assert "<td>age</td>" in page
    assert "&lt;b&gt;|f" in page
    assert "<b>" not in page
    assert "<b>\\|f" in (place / "description.md").read_text()


def test_counts_of_few_rows_stay_at_their_site(tmp_path):
    """A rare word, a rare number, and few missing values: no message and no result has their counts."""
    table = TABLE.copy()
    south = table.index[(table.client == "south") & (table.split == "train")]
    table["ward"] = table.ward.fillna("c")
    table.loc[south[:3], "ward"] = "isolation"
    table.loc[south[:2], "comma"] = None
    table["carrier"] = 0
    table.loc[south[:4], "carrier"] = 1
    hub, sites = federation(tmp_path, table, per_site=True)
    query = new_description(hub)
    all_approve(sites, query)
    result = asked(hub, query, sites)
    columns = {column.name: column for column in result.columns}
    assert "isolation" not in (sites["south"].folder / "sent.jsonl").read_text()
    ward = columns["ward"]
    assert ward.at_least
    assert ward.others > 3
    assert sum(ward.categories.values()) + ward.others == ward.rows
    assert columns["comma"].few_missing == ("south",)
    assert columns["comma"].missing == 0
    carrier = columns["carrier"]
    others = TRAIN.client != "south"
    assert carrier.categories == {"0": int(others.sum())}
    assert carrier.used == others.sum()
    assert carrier.withheld == {"south": "its mean, because a value has too few rows"}
    south_only = {column.name: column for column in result.per_site["south"]}
    assert south_only["carrier"].mean is None
    assert south_only["carrier"].categories == {}


@pytest.mark.parametrize(
    ("allowing", "expected"), [(NAMES, NAMES), (NAMES[:2], ()), (NAMES[:1], NAMES[:1]), ((), ())]
)
def test_a_single_site_that_is_not_shown_cannot_be_subtracted(tmp_path, allowing, expected):
    hub, sites = federation(tmp_path, TABLE)
    for name in allowing:
        allow = sites[name].config.allow.model_copy(update={"per_site": True})
        sites[name].config = sites[name].config.model_copy(update={"allow": allow})
        sites[name].queries.config = sites[name].config
    query = new_description(hub)
    all_approve(sites, query)
    assert tuple(asked(hub, query, sites).per_site) == expected


def test_grids_stay_as_they_were_asked_first(both):
    """A site that answers later gets the same grid: sites answer one grid per column."""
    hub, sites = both
    query = new_description(hub)
    all_approve({name: sites[name] for name in ("north", "south")}, query)
    asked(hub, query, sites)
    first = (query_folder(hub, query.id) / "grids.json").read_text()
    all_approve({"west": sites["west"]}, query)
    assert asked(hub, query, sites).missing == {}
    assert (query_folder(hub, query.id) / "grids.json").read_text() == first


def test_columns_that_sites_read_in_different_ways_are_left_out(tmp_path):
    hub, sites = federation(tmp_path, TABLE)
    (sites["west"].folder / "own.csv").write_text(TABLE[TABLE.client == "west"].assign(age="old").to_csv(index=False))
    query = new_description(hub)
    all_approve(sites, query)
    result = asked(hub, query, sites)
    assert "age" not in [column.name for column in result.columns]
    assert any("column 'age' is read as" in note for note in result.notes)


def test_floors_none_are_free(tmp_path):
    hub, sites = federation(tmp_path, TABLE, floors=Floors.none())
    query = new_description(hub)
    all_approve(sites, query)
    result = asked(hub, query, sites)
    assert not any(column.others or column.few_missing for column in result.columns)
