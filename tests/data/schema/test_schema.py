"""A schema encodes new rows as the training rows were, from memory and from its file."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.data import Schema, from_table
from idiolect.data.schema.columns import Category, Number
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import describe


def frame(count=48, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "ward": np.repeat(["north", "south", "west"], count // 3),
            "age": rng.normal(50, 10, count).round(1),
            "dose": [f"{value:.1f}".replace(".", ",") for value in rng.uniform(0, 9, count)],
            "sex": rng.choice(["f", "m"], count),
            "grade": pd.Categorical(rng.choice([1, 2, 3], count)),
            "seen": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, count), unit="D"),
            "smokes": pd.array(rng.choice([True, False], count), dtype="boolean"),
            "id": np.arange(count),
            "label": rng.choice(["ill", "well"], count),
        }
    )


@pytest.fixture
def data():
    table = frame()
    table.loc[[3, 20], "age"] = np.nan
    return from_table(table, "ward", validation=0.2)


def rows_of(data, name):
    """The table's rows that became one split, found by their encoding."""
    table = frame()
    table.loc[[3, 20], "age"] = np.nan
    x = data.schema.encode(table)
    return [int(np.flatnonzero((x == row).all(axis=1))[0]) for row in data.split(name).x]


def test_the_schema_gives_the_features_of_every_split(data):
    table = frame()
    table.loc[[3, 20], "age"] = np.nan
    for name in ("train", "validation", "test"):
        rows = rows_of(data, name)
        np.testing.assert_array_equal(data.schema.encode(table.iloc[rows]), data.split(name).x)
        np.testing.assert_array_equal(data.schema.encode_labels(table.iloc[rows]), data.split(name).y)


def test_columns_of_categories_are_known_by_their_features(data):
    """sex, grade and smokes; the others are numbers or left out."""
    names = data.schema.features
    found = {names[first].split("=")[0]: names[first : first + count] for first, count in data.categories}
    assert found["sex"] == ("sex=f", "sex=m")
    assert found["grade"] == ("grade=1", "grade=2", "grade=3")
    assert all("=" in name for part in found.values() for name in part)
    assert sum(count for _, count in data.categories) == sum("=" in name for name in names)


def test_what_each_column_means(data):
    said = dict(describe(data.schema.columns))
    assert "identifier" in said["id"]
    assert "decimal comma" in said["dose"]
    assert "date" in said["seen"]
    assert said["grade"].startswith("3 categories")
    assert data.schema.used == ("age", "dose", "sex", "grade", "seen", "smokes")
    assert data.provenance["schema"] == data.schema.to_dict()
    assert len(data.schema.features) == data.feature_shape[0]


def test_the_file_is_the_schema(data, tmp_path):
    path = tmp_path / "schema.json"
    data.schema.save(path)
    loaded = Schema.load(path)
    assert loaded == data.schema
    np.testing.assert_array_equal(loaded.encode(frame()), data.schema.encode(frame()))


def test_a_csv_file_gives_what_the_frame_gives(data, tmp_path):
    table = frame(seed=1).assign(sex="007")
    table.to_csv(tmp_path / "new.csv", index=False)
    read, _ = data.schema.read_file(tmp_path / "new.csv")
    assert read["sex"].tolist() == ["007"] * 48
    np.testing.assert_array_equal(data.schema.encode(read), data.schema.encode(table))


def test_a_row_is_encoded_by_itself(data):
    table = frame(seed=2)
    x = data.schema.encode(table)
    np.testing.assert_array_equal(data.schema.encode(table.iloc[7:8]), x[7:8])
    np.testing.assert_array_equal(data.schema.encode(table[table.columns[::-1]]), x)
    np.testing.assert_array_equal(data.schema.encode(table.drop(columns=["id", "label", "ward"])), x)


def test_new_data_by_an_existing_schema(data):
    new = frame(seed=3).assign(ward="east", label="ill", sex="x")
    other = from_table(new, schema=data.schema)
    assert other.clients == ("east",)
    assert other.classes == ("ill", "well")
    assert (other.train.y == 0).all()
    assert other.schema == data.schema
    assert "all zeros (x)" in " ".join(other.notes)
    with pytest.raises(ConfigError, match="the schema fixes what columns mean: leave out categorical"):
        from_table(new, schema=data.schema, categorical=["sex"])
    with pytest.raises(DataError, match="'dead' is none of the classes ill, well"):
        from_table(new.assign(label="dead"), schema=data.schema)
    with pytest.raises(DataError, match="no column 'age'; did you mean 'ages'"):
        from_table(new.rename(columns={"age": "ages"}), schema=data.schema)


def test_a_regressions_target_is_scaled_by_training_rows():
    table = frame().assign(label=np.random.default_rng(5).normal(50_000, 900, 48))
    data = from_table(table, "ward", standardise=False)
    assert abs(data.train.y.mean()) < 1e-5
    assert abs(data.train.y.std() - 1) < 1e-5
    kept = table["label"].to_numpy()
    decoded = data.schema.label.decode(np.concatenate([data.split(s).y for s in ("train", "validation", "test")]))
    np.testing.assert_allclose(np.sort(decoded), np.sort(kept), rtol=1e-6)
    assert data.label_scale == data.schema.label.scale


def test_an_unseen_test_class_is_told():
    table = frame().assign(split=["train", "train", "train", "test"] * 12)
    table.loc[[3, 7], "label"] = "dead"
    notes = " ".join(from_table(table, "ward").notes)
    assert "no training row has dead, which 2 others have" in notes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(version=2), "version"),
        (lambda v: v.update(format="x"), "format"),
        (lambda v: v.update(more=1), "more"),
        (lambda v: v.pop("label"), "label"),
        (lambda v: v["columns"][0].update(scale=0), "scale"),
        (lambda v: v["columns"][0].update(kind="odd"), "column 'age': "),
        *(
            (lambda v, key=key, value=value: v["columns"][0].update({key: value}), f"column 'age': {key}: ")
            for key in ("scale", "mean", "fill")
            for value in (math.inf, math.nan, 1e300, "1", None)
        ),
        (lambda v: v["columns"][0].update(scale=-1.0), "column 'age': scale: input should be greater than 0"),
        (lambda v: v["columns"][0].update(constant=True, marks_missing=False), "'age': it is constant and marks"),
        (lambda v: v["columns"].append(v["columns"][0]), "column 'age' is there twice"),
        (lambda v: v.update(client="age"), "column 'age' is there twice"),
        (lambda v: v.update(split="label"), "column 'label' is there twice"),
        (lambda v: v.update(columns=[]), "none of its columns has a feature"),
        (lambda v: v.update(columns=[{"kind": "left out", "name": "x", "why": "y"}]), "none of its columns has a"),
        (lambda v: column(v, "sex").update(categories=["f", "f"]), "column 'sex': categories: 'f' is there twice"),
        (lambda v: column(v, "sex").update(categories=[]), "column 'sex': categories: "),
        (lambda v: v["label"].update(classes=["ill", "ill"]), "label: classes: 'ill' is there twice"),
        (lambda v: v["label"].update(type="integer"), "label: class 'ill' is not of the type integer"),
        (lambda v: v["label"].update(type="boolean"), "label: class 'ill' is not of the type boolean"),
    ],
)
def test_a_file_that_is_no_schema(data, tmp_path, change, message):
    values = data.schema.to_dict()
    change(values)
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(values))
    with pytest.raises(StoreError, match=rf"schema\.json is no schema of this version: .*{message}"):
        Schema.load(path)
    path.write_text("{")
    with pytest.raises(StoreError, match="not JSON"):
        Schema.load(path)
    with pytest.raises(StoreError, match="cannot read"):
        Schema.load(tmp_path / "none.json")
    for deep in ("[" * 100_000, "[" * 900 + "]" * 900):  # the second is just below Python's limit
        path.write_text(deep)
        with pytest.raises(StoreError, match=r"not JSON .*nested too deeply"):
            Schema.load(path)


def column(values, name):
    """The entry of a column in a schema's values."""
    return next(one for one in values["columns"] if one["name"] == name)


def test_a_deviation_of_1e400_is_refused(data, tmp_path):
    text = json.dumps(data.schema.to_dict()).replace(str(data.schema.columns[0].scale), "1e400")
    (tmp_path / "schema.json").write_text(text)
    with pytest.raises(StoreError, match="column 'age': scale: input should be "):
        Schema.load(tmp_path / "schema.json")


def test_a_value_too_far_from_the_training_mean_is_named_by_its_row(data):
    near = data.schema.model_copy(update={"columns": (data.schema.columns[0].model_copy(update={"scale": 1e-30}),)})
    table = frame()
    table["age"] = near.columns[0].mean
    table.loc[7, "age"] = 1e9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"column 'age': 1e\+09 in row 8 is too far from the training mean"):
            near.encode(table)
        table["age"] = near.columns[0].mean
        assert near.encode(table).shape == (48, 1 + near.columns[0].marks_missing)


@pytest.mark.parametrize("words", [["high", "low"], ["unknown", None], ["?", "?"]])
def test_a_number_column_without_a_number_is_refused(data, words):
    table = frame()
    table["age"] = words * 24
    with pytest.raises(DataError, match=r"table: column 'age' has no number but '.*it had numbers in training"):
        data.schema.encode(table)
    table["age"] = None  # nothing at all is missing, as before
    assert data.schema.read(table).notes
    table["age"] = ["unknown"] * 47 + ["50"]  # one number shows that the others are marks
    assert "'unknown' are read as missing" in " ".join(data.schema.read(table).notes)


def test_columns_that_the_schema_does_not_have_are_noted(data):
    table = frame().assign(weight=1.0)
    assert "columns that the schema does not have are not used: weight" in from_table(table, schema=data.schema).notes
    assert not any("does not have" in note for note in from_table(frame(), schema=data.schema).notes)


def test_a_table_with_other_names_of_its_columns(data):
    named = data.schema.named("site", "outcome", None)
    assert (named.client, named.label.name, named.columns) == ("site", "outcome", data.schema.columns)
    for client, label, split in (("age", "label", None), ("ward", "ward", None), ("ward", "label", "sex")):
        with pytest.raises(DataError, match=r"the schema does not fit: column '.*' is there twice"):
            data.schema.named(client, label, split)


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 2500])
def test_many_rows_and_features_are_written_where_each_column_alone_would_be(rows: int) -> None:
    numbers = [Number(name=f"x{i}", fill=0, mean=i, scale=2, marks_missing=i % 3 == 0) for i in range(23)]
    columns = (*numbers, Category(name="word", categories=tuple("abcdefghijklmnopqrstuvwxyz")))
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(rows, 23)), columns=[f"x{i}" for i in range(23)])
    frame["word"] = np.random.default_rng(1).choice(list("abc"), rows)
    schema = Schema(client="client", label=Target(name="label"), columns=columns)
    alone = np.concatenate([column.encode(frame[column.name])[0] for column in columns], axis=1)
    np.testing.assert_array_equal(schema.encode(frame), alone)
