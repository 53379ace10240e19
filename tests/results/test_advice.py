"""The counts of results/advice/README.md are those of its files of draws."""

import re

import pytest

from results.advice.__main__ import FOLDER, METHODS, TRUTHS
from results.scores import rows_of

PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
DOCS = (FOLDER.parents[1] / "docs" / "advice.md").read_text(encoding="utf-8")


def draws(task):
    return rows_of("advice", f"truth-{task}.csv")


@pytest.mark.parametrize(("column", "task"), list(enumerate(METHODS)))
def test_the_table_counts_the_right_answers(column, task):
    assert f"{task}, right" in PAGE
    for truth in TRUTHS:
        right = [int(row["right"]) for row in draws(task) if row["truth"] == truth]
        assert len(right) == 100
        line = re.search(rf"^\| {truth} \|.*$", PAGE, re.M)
        assert int(line[0].split("|")[3 + column]) == sum(right)


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        ("regression", "Of alike clients, {alike} of 2,000 are named as gaining and {lost} as losing"),
        ("regression", "in groups {groups} of 2,000 and {lost}, in worlds {worlds} of 2,000 and {lost}"),
        ("classification", "Of alike clients, {alike} of 2,000 are named as gaining and {lost} as losing"),
    ],
)
def test_the_named_clients_are_counted(task, sentence):
    gains, lost = dict.fromkeys(TRUTHS, 0), 0
    for row in draws(task):
        gains[row["truth"]] += int(row["gains"])
        lost += int(row["loses"]) if row["truth"] != "mixed" else 0
    assert sentence.format(**gains, lost=lost) in " ".join(PAGE.split())


def test_groups_of_classification_are_said_as_they_were_answered():
    rows = [row for row in draws("classification") if row["truth"] == "groups"]
    said = [row["outcome"] for row in rows]
    gain, loss = (sum(float(row[key]) for row in rows) / len(rows) for key in ("gain", "local_loss"))
    words = " ".join(PAGE.split())
    assert f"{gain:.3f} of a log-loss of {loss:.3f} over all draws, {gain / loss:.0%}".replace("%", " %") in words
    assert f"right in {said.count('personal')} draws and inconclusive in {said.count('unclear')}" in words
    assert f"**{said.count('alone')} draws it says not to federate" in words
    assert "shared" not in said
    assert {row["method"] for row in rows} == {"ditto"}
    assert max(float(r["gain"]) / float(r["local_loss"]) for r in rows if r["outcome"] == "alone") < 0.05
    assert sum(int(row["gains"]) for row in rows) == 0


def test_what_else_is_said_of_classification():
    rows = draws("classification")
    assert "In groups and worlds none is named" in " ".join(PAGE.split())
    assert not any(int(row["gains"]) or int(row["loses"]) for row in rows if row["truth"] in ("groups", "worlds"))
    missed = [row for row in rows if row["truth"] == "alike" and row["right"] == "0"]
    assert [(row["outcome"], row["method"]) for row in missed] == [("personal", "fedavg-ft")]


def test_clients_of_two_kinds_are_said_as_they_were_answered():
    answers = {task: [row for row in draws(task) if row["truth"] == "mixed"] for task in METHODS}
    words = " ".join(PAGE.split())
    missed = [row for row in answers["regression"] if row["right"] == "0"]
    assert {(row["outcome"], row["method"]) for row in answers["regression"]} == {("personal", "mocha")}
    assert f"The {len(missed)} misses name one or two of the five outsiders" in words
    assert {int(row["gains"]) for row in missed} == {1, 2}
    said = [row["outcome"] for row in answers["classification"]]
    alone = f"not to federate in {said.count('alone')} draws, and it is inconclusive in {said.count('unclear')}"
    assert alone in words
    gain, loss = (sum(float(row[key]) for row in answers["classification"]) / 100 for key in ("gain", "local_loss"))
    assert f"{gain:.3f} of a log-loss of {loss:.3f}, {gain / loss:.0%}".replace("%", " %") in words
    many = [row for row in answers["classification"] if row["outcome"] == "alone" and int(row["gains"]) > 3]
    assert f"Only {len(many)} of the {said.count('alone')} draws names more than three clients" in words


def test_the_concept_page_says_how_often_it_is_right():
    right = {task: sum(int(row["right"]) for row in draws(task)) for task in METHODS}
    missed = [(row["truth"], row["outcome"]) for row in draws("classification") if row["right"] == "0"]
    words, mixed = " ".join(DOCS.split()), [outcome for truth, outcome in missed if truth == "mixed"]
    assert (
        f"{right['regression']} of 600 regressions and in {right['classification']} of 600 classifications" in words
    )
    assert f"{len(mixed)} of the {len(missed)} misses are of one kind" in words
    assert f"not to federate in {mixed.count('alone')} of 100 draws" in words
    groups = [outcome for truth, outcome in missed if truth == "groups"]
    assert f"{groups.count('unclear')} of {len(groups)}, where two groups" in words
    assert f"The other {groups.count('alone')} of these say not to federate" in words


def test_the_draws_that_the_floor_decides_are_counted_apart():
    """What is right because there are too few test rows says nothing of the intervals."""
    right = {t: sum(int(r["right"]) for r in draws(t) if r["truth"] != "few") for t in METHODS}
    for page in (PAGE, DOCS):
        words = " ".join(page.split())
        assert f"right in {right['regression']}" in words
        assert f"{right['classification']} of 500" in words
    assert all(row["outcome"] == "unclear" for t in METHODS for row in draws(t) if row["truth"] == "few")
