"""The rows that are a site's own."""

import json

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.schema.summarise import rows_of_site, summarise
from idiolect.deploy.site.data import OwnData, own_data
from tests.deploy.schema.tables import hospitals

TABLE = pd.DataFrame({"client": ["a", " b ", "a"], "x": [1, 2, 3]})


def test_rows_of_the_site_keep_their_place():
    assert rows_of_site(TABLE, "client", "a", "t").index.tolist() == [0, 2]
    assert rows_of_site(TABLE, "client", "b", "t")["x"].tolist() == [2]
    assert len(rows_of_site(TABLE, "", "z", "t")) == 3
    assert len(rows_of_site(TABLE.drop(columns="client"), "client", "z", "t")) == 3


def test_a_site_that_is_not_there_and_a_column_that_is_not_there():
    with pytest.raises(
        DataError, match="t: no row of column 'client' has the client 'z', it has a, b; name the site"
    ):
        rows_of_site(TABLE, "client", "z", "t")
    with pytest.raises(DataError, match="t: no client column 'ward'"):
        rows_of_site(TABLE, "ward", "a", "t")


@pytest.fixture(scope="module")
def own():
    table = hospitals()
    return table[table["client"] == "south"].reset_index(drop=True)


def test_only_training_rows_and_only_own_rows_are_told_of(own):
    told = summarise(hospitals(), site="south")
    assert told == summarise(own, site="south")
    other = own.copy()
    rest = other["split"] != "train"
    other.loc[rest, ["age", "sex", "ward"]] = [999.0, "x", "secret"]
    assert summarise(other, site="south") == told
    age = told.columns[0]
    train = own[own["split"] == "train"]["age"]
    moments = age.readings["number"].moments
    assert (age.count, age.missing) == (train.count(), train.isna().sum())
    assert moments.mean == pytest.approx(train.mean(), rel=1e-14)
    assert moments.m2 == pytest.approx(train.var(ddof=0) * train.count(), rel=1e-12)


def test_rare_words_and_single_values_do_not_leave(own):
    table = own.copy()
    train = np.flatnonzero(table["split"] == "train")
    table.loc[train[:4], "ward"] = "rare-marker"
    table["marker"] = np.nan
    table.loc[train[:4], "marker"] = 424242.5
    text = json.dumps(summarise(table, site="south", minimum=5).to_dict())
    assert "rare-marker" not in text
    assert "424242" not in text
    text = json.dumps(summarise(table, site="south", minimum=4).to_dict())
    assert "rare-marker" in text
    assert "424242" in text


def test_extremes_leave_only_where_a_running_number_is_possible(own):
    whole = {column.name: column.readings for column in summarise(own, site="south").columns}
    assert whole["count"]["number"].whole.smallest is None
    assert whole["running"]["number"].whole.largest == own["running"][own["split"] == "train"].max()
    assert whole["age"]["number"].whole is None


def test_rows_are_divided_as_the_site_divides_them(own, tmp_path):
    """Without a column of splits the training rows told of are those that `own_data` trains on."""
    table = own.drop(columns=["split", "client"])[["age", "sex", "label"]]
    table.to_csv(tmp_path / "t.csv", index=False)
    options = {"test": 0.3, "validation": 0.2, "split_seed": 4}
    from idiolect.deploy.schema.agree import agree

    told = summarise(tmp_path / "t.csv", site="south", **options)
    schema, _ = agree({"south": told})
    schema.save(tmp_path / "s.json")
    data = own_data(OwnData("south", table=tmp_path / "t.csv", schema=tmp_path / "s.json", **options))
    assert told.rows == data.train.count
    assert abs(data.train.x[:, 0].mean()) < 1e-6
    assert data.train.x[:, 0].std() == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"label": "outcome"}, "no label column 'outcome'"),
        ({}, {"site": "east"}, "no row of column 'client' has the client 'east', it has south"),
        ({}, {"ignore": ["wards"]}, "no column 'wards'; did you mean 'ward'"),
        ({"age": np.inf}, {}, "'age' is infinite in row"),
        ({"label": None}, {}, "values are missing, first in row 1"),
        ({"label": "row"}, {}, "nearly every row has a label of its own"),
        ({}, {"task": "regression"}, "regression needs numbers as labels"),
        ({"label": 0.5}, {"task": "classification"}, "fractions cannot be classes"),
        ({"split": "learn"}, {}, "has 'learn' in row 1"),
        ({"split": "test"}, {}, "no train rows"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(own, change, options, message):
    value = change.get("label")
    table = own.assign(**change) if value != "row" else own.assign(label=[f"p{k}" for k in range(len(own))])
    with pytest.raises(DataError, match=message) as error:
        summarise(table, **{"site": "south", **options})
    assert "\n" not in str(error.value)


def test_a_pair_of_columns_of_one_name_is_refused():
    table = pd.DataFrame([[1, 2, "a"]], columns=["x", "x", "label"])
    with pytest.raises(DataError, match="more than once"):
        summarise(table, site="s")
