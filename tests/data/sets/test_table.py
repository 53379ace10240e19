"""What is guessed of a table's labels is told."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, Partition, audit, from_table, table_partition
from idiolect.data.divide.division import shuffled
from idiolect.data.sets import pool
from idiolect.data.sets.pool import free_kept_table, table_kept


@pytest.mark.parametrize(
    ("distinct", "task", "asked"), [(20, None, False), (21, None, True), (21, "classification", False)]
)
def test_whole_numbers_with_many_values_are_asked_about(distinct, task, asked):
    rows = pd.DataFrame({"client": ["a", "b"] * 63, "x": np.arange(126) % 7, "label": np.arange(126) % distinct})
    told = [note for note in from_table(rows, task=task).notes if "if it is an amount" in note]
    assert (
        told
        == [
            f"label 'label' has {distinct} different whole numbers, read as classes; if it is an amount, say "
            "task='regression' (in commands --set data.task=regression)"
        ]
        * asked
    )


ROWS = [f"{client},{i},{i % 2}" for client in "abc" for i in range(12)]


def frame(clients=3, rows=12):
    rng = np.random.default_rng(0)
    count = clients * rows
    return pd.DataFrame(
        {
            "client": np.repeat([f"ward {i + 9}" for i in range(clients)], rows),
            "age": rng.normal(50, 10, count).round(1),
            "sex": rng.choice(["f", "m"], count),
            "label": rng.choice(["ill", "well"], count),
        }
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_reads_every_source_alike(tmp_path, kind):
    table = frame()
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "parquet":
        table.to_parquet(path)
    data = from_table(table if kind == "frame" else path)
    assert data.clients == ("ward 9", "ward 10", "ward 11")
    assert data.classes == ("ill", "well")
    assert data.feature_shape == (3,)
    assert data.provenance["features"] == ["age", "sex=f", "sex=m"]
    assert data.fingerprint == from_table(frame()).fingerprint
    assert data.train.sizes.tolist() == [8, 8, 8]
    assert audit(data).fitted_on == "train"


def test_client_names_are_text(tmp_path):
    table = frame(2).assign(client=["007"] * 12 + ["7"] * 12)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert sorted(from_table(tmp_path / "t.csv").clients) == ["007", "7"]
    numbers = from_table(table.assign(client=[10] * 12 + [9] * 12))
    assert numbers.clients == ("9", "10")


def test_standardised_on_training_rows():
    data = from_table(frame())
    assert abs(data.train.x[:, 0].mean()) < 1e-6
    assert abs(data.train.x[:, 0].std() - 1) < 1e-6
    assert abs(data.test.x[:, 0].mean()) > 1e-3


def test_a_changed_test_value_changes_no_training_feature():
    table = frame()
    data = from_table(table)
    reference = from_table(table, standardise=False)
    row = int(np.argmin(np.abs(table["age"].to_numpy() - reference.test.x[0, 0])))
    table.loc[row, "age"] = 1000.0
    np.testing.assert_array_equal(from_table(table).train.x, data.train.x)
    assert from_table(table).test.x[0, 0] > 50


def test_split_column_is_honoured():
    table = frame()
    table["split"] = ["train"] * 8 + ["validation"] + ["Test"] * 3 + (["train"] * 9 + ["test"] * 3) * 2
    data = from_table(table)
    assert data.train.sizes.tolist() == [8, 9, 9]
    assert data.validation.sizes.tolist() == [1, 0, 0]
    assert "those of the column 'split'" in " ".join(data.notes)
    table = table.rename(columns={"split": "part"})
    assert from_table(table, split="part").fingerprint == data.fingerprint
    table.loc[0, "part"] = "dev"
    with pytest.raises(DataError, match="column 'part' has 'dev' in row 1"):
        from_table(table, split="part")
    table["part"] = ["train"] * 24 + ["test"] * 12
    with pytest.raises(DataError, match=r"client 'ward 9' has no test rows|client 'ward 11' has no train rows"):
        from_table(table, split="part")


def test_regression_and_task():
    table = frame().assign(label=np.linspace(0, 1, 36))
    assert from_table(table).task == "regression"
    assert from_table(table).train.y.dtype == np.float32
    table["label"] = np.resize([0.0, 1.0, 2.0], 36)
    assert from_table(table).classes == ("0", "1", "2")
    assert from_table(table, task="regression").classes == ()
    assert "read as classification (3 classes)" in from_table(table).notes[0]


def test_minimum_ignore_and_categorical():
    table = pd.concat([frame(), frame().iloc[:1].assign(client="lonely")])
    data = from_table(table, minimum=2, ignore=["sex"], categorical=["age"], title="wards")
    assert data.name == "wards"
    assert data.num_clients == 3
    assert "1 of 4 clients have fewer than minimum=2 samples and are dropped: lonely" in data.notes[0]
    assert all(name.startswith("age=") for name in data.provenance["features"])


@pytest.mark.parametrize("place", [0, 18, 36])
def test_every_row_keeps_its_own_label_where_a_client_is_dropped(place):
    """The label repeats the first feature, so that a shift by the dropped rows is seen."""
    table = frame().assign(age=np.tile([1.0, 2.0, 3.0, 5.0], 9), label=np.tile(["a", "b", "c", "e"], 9))
    lonely = pd.DataFrame({"client": "lonely", "age": [9.0, 9.0, 9.0], "sex": "f", "label": "z"})
    mixed = pd.concat([table.iloc[:place], lonely, table.iloc[place:]])
    for options in ({}, {"task": "regression"}):
        if options:
            mixed = mixed.assign(label=mixed["age"])
        data = from_table(mixed, minimum=4, standardise=False, **options)
        assert data.clients == ("ward 9", "ward 10", "ward 11")
        for split in SPLITS:
            ages, y = data.split(split).x[:, 0], data.split(split).y
            expected = data.schema.encode_labels(pd.DataFrame({"label": ages})) if options else None
            np.testing.assert_array_equal(y, np.searchsorted([1, 2, 3, 5], ages) if expected is None else expected)
            assert not (ages == 9).any()


def test_the_split_seed_divides_the_rows():
    table = frame().assign(age=np.arange(36.0))

    def tested(**options):
        return from_table(table, standardise=False, keep=["age"], **options).test.x[:, 0].tolist()

    draws = [tested(split_seed=seed) for seed in range(4)]
    assert draws[0] == tested()
    assert len(set(map(tuple, draws))) == 4
    for seed, drawn in enumerate(draws):
        for client, own in enumerate(np.split(np.arange(36), 3)):
            _, _, expected = shuffled(own, client, seed, 0.25, 0.1)
            assert drawn[3 * client : 3 * client + 3] == expected.tolist()


def test_the_fractions_are_those_asked_for():
    data = from_table(frame(), test=0.5, validation=0.25)
    assert [data.split(name).sizes.tolist() for name in SPLITS] == [[3] * 3, [3] * 3, [6] * 3]


def test_dropped_and_missing_are_told():
    table = frame().assign(hospital="A", weight=1.0)
    table.loc[:5, "weight"] = np.nan
    notes = " ".join(from_table(table).notes)
    assert "'hospital' is left out" in notes
    assert "'weight': 6 missing values" in notes


def test_labels_that_are_nearly_all_one_class_are_told():
    table = pd.concat([frame()] * 3, ignore_index=True).assign(label=["ill"] * 107 + ["well"])
    told = " ".join(from_table(table).notes)
    assert "of the training rows are 'ill', so accuracy says little" in told
    assert "accuracy says" not in " ".join(from_table(frame()).notes)


def test_order_of_clients_in_the_file_does_not_matter():
    table = frame()
    moved = pd.concat([table.iloc[24:], table.iloc[:24]])
    assert from_table(moved).train.sizes.tolist() == from_table(table).train.sizes.tolist()
    np.testing.assert_allclose(np.sort(from_table(moved).train.y), np.sort(from_table(table).train.y))
    assert from_table(moved).clients == from_table(table).clients


def _with(**changes):
    table = frame()
    for column, (rows, value) in changes.items():
        table[column] = table[column].astype(object) if isinstance(value, str) else table[column]
        table.loc[rows, column] = value
    return table


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (frame().rename(columns={"client": "clients"}), {}, "no client column 'client'; did you mean 'clients'"),
        (frame().rename(columns={"client": "q"}), {}, "no client column 'client'; it has: q, age, sex, label"),
        (frame(), {"label": "agee"}, "no label column 'agee'; did you mean 'age'"),
        (frame(), {"split": "sx"}, "no split column 'sx'; did you mean 'sex'"),
        (frame(), {"ignore": ["ag"]}, "no column 'ag'; did you mean 'age'"),
        (_with(label=([4, 7], None)), {}, "column 'label': 2 values are missing, first in row 5"),
        (_with(client=([3], None)), {}, "column 'client': 1 value is missing, first in row 4"),
        (_with(client=([3], " ")), {}, "blank client name in row 4"),
        (_with(client=([3], "solo")), {}, "client 'solo' has 1 sample, too few .* minimum=2"),
        (_with(age=([30], np.inf)), {}, "column 'age' is infinite in row 31 .1 in all."),
        (frame().assign(label=1), {}, "all labels are '1'"),
        (frame().iloc[:0], {}, "no rows"),
        (frame()[["client", "label"]], {}, "no feature column"),
        (frame().assign(age=1, sex="f"), {}, "no feature is left"),
        (frame().assign(age=[[1, 2]] * 36), {}, "column 'age' holds a list, not one value a row"),
        (frame().assign(age=[b"x"] * 36), {}, "column 'age' holds bytes, not numbers or text"),
        (_with(age=([3], 1e300)), {}, r"column 'age' is beyond 1e\+30 in row 4"),
        (frame().assign(age=1j), {}, "column 'age' holds complex numbers"),
        (frame().assign(label=pd.Timestamp("2020-01-01")), {}, "column 'label' holds dates"),
        (frame().assign(label=[f"p{k}" for k in range(36)]), {}, "every row has a label of its own"),
        (frame(), {"label": "client"}, "column 'client' is named for two of client, label and split"),
        (frame(), {"minimum": 13}, "every client has fewer than minimum=13"),
        (pd.concat([frame(), frame()[["age"]]], axis=1), {}, "column 'age' appears more than once"),
    ],
)
def test_refuses(table, options, message):
    with pytest.raises(DataError, match=message):
        from_table(table, **options)


def test_refuses_bad_files(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        from_table(tmp_path / "none.csv")
    for name, content in (("a.csv", b""), ("b.parquet", b"PAR1 not really"), ("c.csv", b"\xff\xfe\x00bad\x81")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name}: .*cannot be read as") as error:
            from_table(tmp_path / name)
        assert "\n" not in str(error.value)
    frame().rename(columns={"label": "y"}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError, match=r"d\.csv: no label column 'label'"):
        from_table(tmp_path / "d.csv")


def test_refuses_an_unknown_task():
    with pytest.raises(ConfigError, match="did you mean 'regression'"):
        from_table(frame(), task="regresion")


@pytest.mark.parametrize(
    ("header", "rows", "words"),
    [
        ("patient,x,label", None, "client"),
        ("client,x,label", [f"{c},{i},{'' if i == 3 else i % 2}" for c in "abc" for i in range(12)], "label"),
        ("client,x,label", [*ROWS, "d,1,1"], "'d'"),
    ],
)
def test_the_command_line_names_the_table_and_what_is_wrong(commandline, tmp_path, header, rows, words):
    path, here = tmp_path / "t.csv", tmp_path / "here"
    path.write_text("\n".join([header, *(rows or ROWS)]))
    code, out, err = commandline("compare", "--data", path, "--methods", "local", "--out", here)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "t.csv" in err
    assert words in err
    assert not here.exists()


@pytest.mark.parametrize(("suffix", "separator"), [("tsv", "\t"), ("csv", ","), ("TSV", "\t"), ("txt", ",")])
@pytest.mark.parametrize("packed", [False, True])
def test_the_suffix_says_the_separator(tmp_path, suffix, separator, packed):
    table = frame().assign(remark=["a,b\tc"] * 36)
    path = tmp_path / (f"wards.x.{suffix}" + (".gz" if packed else ""))
    table.to_csv(path, index=False, sep=separator, compression="gzip" if packed else None)
    assert from_table(path).fingerprint == from_table(table).fingerprint


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_the_separator_is_found_and_told_where_it_is_not_the_usual_one(tmp_path, separator, suffix):
    frame().to_csv(tmp_path / f"t.{suffix}", index=False, sep=separator, decimal="," if separator == ";" else ".")
    data = from_table(tmp_path / f"t.{suffix}")
    assert data.fingerprint == from_table(frame()).fingerprint
    told = [note for note in data.notes if "-separated" in note]
    assert bool(told) == (separator != {"csv": ",", "tsv": "\t"}[suffix])


def test_a_saved_partition_is_used_and_a_changed_table_refused(tmp_path):
    table, file = frame(), tmp_path / "p.npz"
    table_partition(table, split_seed=7, test=0.5).save(file)
    drawn = from_table(table, split_seed=7, test=0.5)
    for saved in (file, str(file), Partition.load(file)):
        again = from_table(table, partition=saved)
        assert again.fingerprint == drawn.fingerprint
        assert again.clients == drawn.clients
    longer = pd.concat([table, table.iloc[:1]])
    changes = {
        "age": table.assign(age=table["age"].where(table.index != 3, 99.0)),
        "label": table.assign(label=table["label"].replace("ill", "sick")),
        "client": table.assign(client=table["client"].replace("ward 9", "ward 8")),
        "order": table.iloc[::-1],
        "longer": longer,
        "shorter": table.iloc[:20],
    }
    for changed in changes.values():
        with pytest.raises(DataError, match="table: partition 'by-client' was made for another pool of samples"):
            from_table(changed, partition=file)
    with pytest.raises(ConfigError, match=r"p\.npz fixes everything: leave out test, split_seed"):
        from_table(table, partition=file, test=0.5, split_seed=7)


def test_a_saved_partition_without_small_clients_and_with_a_split_column():
    table = pd.concat([frame(), frame().iloc[:1].assign(client="lonely", label="other")])
    saved = table_partition(table, minimum=2)
    assert from_table(table, partition=saved).fingerprint == from_table(table, minimum=2).fingerprint
    table = frame()
    table["split"] = (["train"] * 9 + ["test"] * 3) * 3
    assert from_table(table, partition=table_partition(table)).fingerprint == from_table(table).fingerprint


def test_inside_the_block_a_file_is_read_once_for_all_divisions_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, reads = tmp_path / "own.csv", list[object]()
    frame().to_csv(path, index=False)
    alone = [from_table(path, split_seed=seed).fingerprint for seed in range(3)]
    read = pool.read_table
    monkeypatch.setattr(pool, "read_table", lambda *args: reads.append(args) or read(*args))
    with table_kept():
        assert [from_table(path, split_seed=seed).fingerprint for seed in range(3)] == alone
        assert len(reads) == 1
        from_table(path, ignore=["age"])  # other settings
        assert len(reads) == 2
        frame(clients=4).to_csv(path, index=False)
        assert from_table(path, split_seed=0).num_clients == 4
        assert len(reads) == 3
        free_kept_table()
        assert from_table(path, split_seed=0).num_clients == 4
        assert len(reads) == 4
        with pytest.raises(DataError, match="no such file"):
            from_table(tmp_path / "none.csv")
    free_kept_table()  # nothing is kept, nothing is freed
    reads.clear()
    for _ in range(2):
        from_table(path)
    assert len(reads) == 2
