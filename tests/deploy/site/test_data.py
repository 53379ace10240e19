"""A site's own data, of a table or of arrays."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.data import FederatedData, Modalities, Split, encode_like, from_arrays, from_table
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import read_message, write_message
from idiolect.deploy.schema.agree import agree
from idiolect.deploy.site.data import OwnData, described, own_data, own_names, own_summary, save_arrays
from tests.deploy.schema.tables import hospitals, summaries

SPLITS = ("train", "validation", "test")


def same(one: FederatedData, other: FederatedData, client: int) -> None:
    """The one client of `one` has the samples of a client of `other`, to the last bit."""
    for name in SPLITS:
        for mine, theirs in zip(one.split(name).client(0), other.split(name).client(client), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
    for field in ("task", "classes", "feature_shape", "target", "schema", "modalities"):
        assert getattr(one, field) == getattr(other, field), field


@pytest.fixture(params=["words", "amount"])
def federation(request, tmp_path):
    """A table of three sites, its pooled data, and the table in a file."""
    table = hospitals(label=request.param)
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path, from_table(tmp_path / "t.csv", missing="mean")


def test_a_site_of_a_table_has_the_rows_of_the_pooled_table(federation):
    folder, data = federation
    kind = Kind.of(data)
    for index, site in enumerate(data.clients):
        own = own_data(OwnData(site, table=folder / "t.csv"), kind)
        assert (own.clients, own.name) == ((site,), data.name)
        same(own, data, index)
    alone = pd.read_csv(folder / "t.csv").query("client == 'west'").rename(columns={"client": "who", "label": "y"})
    alone.drop(columns="who").to_csv(folder / "own.csv", index=False)
    same(own_data(OwnData("west", table=folder / "own.csv", label="y"), kind), data, 2)
    alone.to_csv(folder / "own.csv", index=False)
    same(own_data(OwnData("west", table=folder / "own.csv", label="y", client="who"), kind), data, 2)


def test_the_agreed_schema_encodes_as_the_pooled_one(federation):
    folder, data = federation
    schema, _ = agree(summaries(pd.read_csv(folder / "t.csv"), minimum=1))
    kind = Kind.of_schema(schema, "all")
    own = own_data(OwnData("south", table=folder / "t.csv"), kind)
    np.testing.assert_allclose(own.train.x, data.train.client(1)[0], atol=1e-5)
    np.testing.assert_allclose(own.train.y, data.train.client(1)[1], atol=1e-6)


def test_without_a_column_of_splits_a_site_divides_alone_and_as_encode_like_does(tmp_path):
    table = hospitals().drop(columns="split")
    data = from_table(table, missing="mean")
    data.schema.save(tmp_path / "s.json")
    table.to_csv(tmp_path / "t.csv", index=False)
    settings = OwnData("west", table=tmp_path / "t.csv", schema=tmp_path / "s.json", validation=0.0, split_seed=3)
    own = own_data(settings)
    same(own, encode_like(data, tmp_path / "t.csv", split_seed=3), 2)
    own_data(settings, Kind.of(data))
    validated = own_data(replace(settings, validation=0.2))
    assert (validated.train.count, validated.validation.count, validated.test.count) == (16, 6, 8)
    np.testing.assert_array_equal(validated.test.x, own.test.x)
    assert own_data(replace(settings, test=0.0)).test.count == 0


def images():
    """Two clients with images, each with classes of its own number."""
    rng = np.random.default_rng(0)
    splits = [
        Split(
            rng.normal(size=(5, 4, 4, 1)).astype(np.float32),
            np.array([0, 1, 0, 1, 2], np.int32),
            np.array([0, 2, 5]),
            np.array([2, 3]),
        )
        for _ in SPLITS
    ]
    names = (("cat", "dog"), ("a", "b", "c"))
    return FederatedData("own", *splits, ("s0", "s1"), "classification", ("0", "1", "2"), own_classes=names)


def modal():
    rng = np.random.default_rng(1)
    layout = Modalities(("text", "sound"), ((2,), (3, 2)))
    x = layout.pack({"text": rng.normal(size=(6, 2)), "sound": rng.normal(size=(6, 3, 2))})
    split = Split(x, rng.normal(size=6).astype(np.float32), np.array([0, 4, 6]))
    empty = Split(x[:0], split.y[:0], np.array([0, 0, 0]))
    return FederatedData("modal", split, empty, split, ("s0", "s1"), "regression", (), modalities=layout)


@pytest.mark.parametrize("make", [images, modal, lambda: from_table(hospitals(label="amount"))])
def test_arrays_come_back_as_they_were(make, tmp_path):
    data = make()
    for client in range(2):
        save_arrays(tmp_path / "a", data, client)
        own = own_data(OwnData("me", arrays=tmp_path / "a"), Kind.of(data))
        assert own.clients == ("me",)
        same(own, data, client)
        assert own.classes_of(0) == data.classes_of(client)
        assert own.own_labels == data.own_labels


def test_only_the_one_client_is_in_the_file(tmp_path):
    save_arrays(tmp_path / "a", modal(), 1)
    message = read_message(tmp_path / "a")
    assert message is not None
    assert {name: len(vector) for name, vector in message.vectors.items() if name.endswith(".x")} == {
        "train.x": 2,
        "validation.x": 0,
        "test.x": 2,
    }


def test_data_of_another_kind_are_refused(tmp_path):
    save_arrays(tmp_path / "a", modal(), 0)
    with pytest.raises(DataError, match='modal: the task differs from the federation\'s: "regression" here'):
        own_data(OwnData("s", arrays=tmp_path / "a"), Kind.of(images()))


def test_settings_and_files_that_cannot_be_used(tmp_path):
    (tmp_path / "foreign").write_bytes(b"no message")
    save_arrays(tmp_path / "a", images(), 0)
    message = read_message(tmp_path / "a")
    assert message is not None
    short = {**message.vectors, "train.y": message.vectors["train.y"][:1]}
    write_message(tmp_path / "short", replace(message, vectors=short))
    write_message(tmp_path / "other", replace(message, header={"format": "x"}))
    write_message(tmp_path / "less", replace(message, vectors={}))
    table = tmp_path / "t.csv"
    hospitals().to_csv(table, index=False)
    kind = Kind.of(from_table(table))
    for settings, agreed, error, told in [
        (OwnData("s"), None, ConfigError, "either as a table or as arrays"),
        (OwnData("s", table=table, arrays=table), None, ConfigError, "either"),
        (OwnData("s", table=table), None, ConfigError, "a table needs a schema"),
        (OwnData("s", table=table, schema=tmp_path / "none"), None, StoreError, "cannot read"),
        (OwnData("s", table=table), kind, DataError, "no row of column 'client' has the client 's'"),
        (OwnData("west", table=table, label="y"), kind, DataError, "no label column 'y'"),
        (OwnData("west", table=table, split="part"), kind, DataError, "no split column 'part'"),
        (OwnData("west", table=table, label="age"), kind, DataError, "column 'age' is there twice"),
        (OwnData("west", table=table, split="age"), kind, DataError, "column 'age' is there twice"),
        (OwnData("west", table=table, client="label"), kind, DataError, "column 'label' is there twice"),
        (OwnData("west", table=tmp_path / "none.csv"), kind, DataError, "no such file"),
        (OwnData("west", table=table, test=1.5), kind, ConfigError, "test fraction"),
        (OwnData("s", arrays=tmp_path / "none"), None, DataError, "no such file"),
        (OwnData("s", arrays=tmp_path / "foreign"), None, StoreError, "no message file"),
        (OwnData("s", arrays=tmp_path / "short"), None, DataError, "do not fit together .train.x"),
        (OwnData("s", arrays=tmp_path / "other"), None, DataError, "no file of a client's arrays"),
        (OwnData("s", arrays=tmp_path / "less"), None, DataError, "do not fit together"),
    ]:
        with pytest.raises(error, match=told) as found:
            own_data(settings, agreed)
        assert "\n" not in str(found.value)
    with pytest.raises(ConfigError, match="client = 2 must lie between 0 and 1"):
        save_arrays(tmp_path / "b", images(), 2)
    assert not (tmp_path / "b").exists()


def test_a_row_that_cannot_be_encoded_is_named_by_its_place_in_the_file(tmp_path):
    table = hospitals()
    data = from_table(table)
    row = int(table.index[table["client"] == "west"][0])
    table.loc[row, "age"] = np.inf
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=f"'age' is infinite in row {row + 1} "):
        own_data(OwnData("west", table=tmp_path / "t.csv"), Kind.of(data))


def test_arrays_of_plain_data(tmp_path):
    x = np.arange(24.0).reshape(12, 2)
    data = from_arrays({"a": (x[:6], np.arange(6) % 2), "b": (x[6:], np.arange(6) % 2)})
    save_arrays(tmp_path / "a", data, 1)
    same(own_data(OwnData("b", arrays=tmp_path / "a")), data, 1)


def test_an_administrator_reads_the_label_s_own_name_before_a_hub_has_asked(tmp_path):
    """The hub receives the name by which it asks."""
    hospitals(rows=20).rename(columns={"label": "diagnosis"}).to_csv(tmp_path / "t.csv", index=False)
    own = OwnData("a", table=tmp_path / "t.csv", client="", label="diagnosis")
    assert "in addition to the label 'diagnosis'" in described(own, 5)
    assert own_summary(own, own_names(own), 5).label.name == "diagnosis"
    assert own_summary(own, {"label": "outcome"}, 5).label.name == "outcome"
    assert own_names(OwnData("a", table=tmp_path / "t.csv")) == {}
