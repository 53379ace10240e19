"""results/cells.csv says for each published number what was measured in its place, and agrees with the folders."""

import csv
import re
from collections import Counter

import pytest

from idiolect.study.spec.published import Published
from idiolect.study.store.summary import over_seeds
from results import cells
from tests.experiments.test_packaged import PAPERS


@pytest.fixture(scope="module")
def table():
    return cells.table()


@pytest.mark.second
def test_the_file_is_what_the_folders_say(table):
    """`python -m results` would change nothing."""
    with cells.CELLS.open(encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == table


def test_every_published_number_has_a_status_and_every_status_a_reason(table):
    assert len(table) == 279
    assert len({cells.key_of(row) for row in table}) == 279
    for row in table:
        assert row["status"] in cells.STATUSES
        measured = row["status"] not in ("not run", "not possible")
        assert bool(row["folder"]) is bool(row["measured"]) is measured
        if row["status"] not in ("agrees", "consistent, wide", "close"):
            assert row["why"]
        if row["status"] == "close" and row["seeds"] == "1":
            assert row["low"] == ""
        if row["low"]:
            low, high, within = (float(row[name]) for name in ("low", "high", "within"))
            inside, zero = -within <= low and high <= within, low <= 0 <= high
            assert (row["status"] == "agrees") is (inside and row["status"] != "other data")
            assert row["status"] in ("consistent, wide", "other data") or inside or not zero


def test_the_folders_tables_have_the_same_verdicts(table):
    """What table.csv says of a published number is what cells.csv says of it."""
    for row in table:
        if row["folder"] and row["named_model"]:
            found = [
                line
                for line in cells.rows_of(row["folder"])
                if (line["cell"], line["method"], line["model"]) == (row["cell"], row["method"], row["named_model"])
                and (line["published_metric"] == "loss") == (row["metric"] == "loss")
            ]
            assert len(found) == 1, row
            explained = ", explained" if found[0]["explained"] else ", unexplained"
            verdict = found[0]["verdict"] + (explained if found[0]["verdict"] == "differs" else "")
            assert (verdict, float(found[0]["published"])) == (row["status"], float(row["published"])), row


def test_what_explains_or_was_tried_is_there(table):
    """A difference names a folder of results, or a command, that a stranger can look at."""
    for row in table:
        if row["status"].startswith("differs"):
            named = re.findall(r"\b(?:pfedme|fedu|pflego|mmfl)/[\w.-]+", row["why"])
            assert named or "--set" in row["why"], row
            for folder in named:
                assert (cells.HERE / folder).exists(), folder


def test_the_targets_are_the_papers():
    file = PAPERS / "targets.csv"
    if not file.is_file():
        pytest.skip(f"no {file.name}; set IDIOLECT_PAPERS to the folder that holds it")
    assert cells.TARGETS.read_bytes() == file.read_bytes()


def measured(value, *seeds, **more):
    published = Published(model="global", value=value, std=0.1, **more)
    return cells.Measured("there", "as-written", "cell", "fedavg", "global", over_seeds(seeds), published)


TARGET = {
    **{"paper": "FedU", "table": "Table I", "dataset": "MNIST", "setting": "all", "model": "MLR"},
    **{"algorithm": "FedAvg", "metric": "accuracy", "value": "90.0", "std": "0.1"},
}
PLAN = {
    "reasons": [
        {"paper": "pFedMe", "status": "not possible", "why": "of another paper"},
        {"paper": "Fed", "dataset": "MNIST", "status": "not run", "why": "long"},
    ],
    "tried": [{"paper": "FedU", "why": "in vain"}],
}


def test_the_first_folder_counts_and_the_others_stand_beside():
    row = cells.row(TARGET, [measured(90.0, 90.1, 89.9, 90.0), measured(90.0, 80.0)], PLAN)
    assert (row["status"], row["measured"], row["seeds"], row["why"]) == ("agrees", "90.0000", "3", "")
    assert row["also"] == "there cell: 80.0000, differs, unexplained"
    assert float(row["low"]) < 0 < float(row["high"])


@pytest.mark.parametrize(
    ("found", "status", "why"),
    [
        ([], "not run", "long"),
        ([measured(90.0, 95.0)], "differs, unexplained", "in vain"),
        ([measured(90.0, 95.0, explained="pfedme/deviations")], "differs, explained", "pfedme/deviations"),
        ([measured(90.0, 90.0, other_data="half of it")], "other data", "half of it"),
        ([measured(90.0, 90.5)], "close", ""),
    ],
)
def test_each_status_has_its_reason(found, status, why):
    row = cells.row(TARGET, found, PLAN)
    assert (row["status"], row["why"]) == (status, why)


def test_what_the_plan_forgets_or_papers_print_otherwise_stops():
    with pytest.raises(SystemExit, match="no \\[\\[reasons\\]\\]"):
        cells.row(TARGET | {"dataset": "EMNIST"}, [], PLAN)
    with pytest.raises(SystemExit, match=r"91\.0 is published as 90\.0"):
        cells.row(TARGET, [measured(91.0, 90.0)], PLAN)


def test_the_summary_counts_every_number_once(table):
    rows = [re.findall(r"\| ([^|]*)", line) for line in cells.summary(table).splitlines()[2:]]
    *papers, whole = [[int(text or 0) for text in map(str.strip, row[1:])] for row in rows]
    assert [sum(column) for column in zip(*papers, strict=True)] == whole
    assert whole[0] == sum(whole[1:]) == 279
    assert Counter(row["status"] for row in table if not row["after_test"])["agrees"] == whole[1]


def test_what_agrees_by_settings_chosen_after_test_results_is_counted_apart(table):
    """mmFL's networks were chosen to reach its accuracy: none of its numbers counts as a reproduction."""
    mmfl = [row for row in table if row["paper"] == "mmFL" and row["folder"]]
    assert mmfl
    assert {row["after_test"] for row in mmfl} == {"yes"}
    assert not any(row["after_test"] for row in table if row["paper"] != "mmFL")
    met = [row for row in mmfl if not row["status"].startswith("differs")]
    assert met
    assert {cells.counted_as(row) for row in met} == {cells.AFTER_TEST}
    header, _, *lines = cells.summary(table).splitlines()
    column = [name.strip() for name in header.split("|")].index(cells.AFTER_TEST)
    counts = {line.split("|")[1].strip(): line.split("|")[column].strip() for line in lines}
    assert counts["mmFL, Table 1"] == counts["**all**"] == str(len(met))


@pytest.mark.parametrize("status", ["agrees", "close", "differs, unexplained", "other data", "not run"])
def test_only_numbers_that_meet_the_published_one_move_to_the_column(status):
    apart = cells.counted_as({"status": status, "after_test": "yes"})
    assert (apart == cells.AFTER_TEST) is (status in ("agrees", "close"))
    assert cells.counted_as({"status": status, "after_test": ""}) == status


def test_a_value_is_read_from_the_column_of_its_own_metric():
    over = {"pooled": "0.9", "pooled_std": "0.1", "pooled_ci95": "0.2", "macro_f1": "0.5"}
    row = {"metric": "accuracy", "seeds": "3", **over, "macro_f1_std": "", "macro_f1_ci95": "", "loss": "0.25"}
    row |= {"loss_std": "", "loss_ci95": ""}
    means = {name: cells.in_published_units(row, name).mean for name in ("accuracy", "macro-f1", "loss")}
    assert means == pytest.approx({"accuracy": 90.0, "macro-f1": 50.0, "loss": 0.25})
    with pytest.raises(KeyError):
        cells.in_published_units({**row, "metric": "auroc"}, "balanced-accuracy")
