"""The conclusions of results/README.md rest on comparisons.md and its own tables, which follow from the folders."""

import re
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from idiolect.report.text import p_value
from results import cells, claims
from results.__main__ import pages
from results.scores import README, pooled, rows_of

SAID = {
    "agrees": "agrees?\\b",
    "consistent, wide": "(?:is|are) consistent with a wide interval",
    "close": "(?:is|are) close",
    "differs, explained": "differs? and (?:is|are) explained",
    "differs, unexplained": "differs? without an explanation",
    "other data": "(?:is|are) of other data",
    "not run": "(?:was|were) not run",
    "not possible": "(?:is|are) not possible",
}
"""How a paper's page says that so many of its published numbers have a status."""


@pytest.fixture(scope="module")
def text():
    return README.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def table():
    return cells.table()


@pytest.mark.second
def test_the_pages_are_what_the_folders_say():
    """`python -m results` would change nothing."""
    for file, made in pages(cells.summary(cells.table())).items():
        assert file.read_text(encoding="utf-8") == made, file.name


def test_every_comparison_links_the_folder_that_it_is_from():
    rows = claims.markdown().splitlines()
    for claim in claims.claims():
        assert any(row.startswith(f"| {claim.text} ([folder]({claim.folder}/report.md)) |") for row in rows)


def test_a_comparison_is_scipys_paired_test_of_the_runs():
    claim = next(c for c in claims.claims() if (c.folder, c.cell) == ("fedu/table3-mnist", "mnist-mlr"))
    scores = pooled("fedu/table3-mnist")
    one, other = (scores["mnist-mlr", name] for name in ("fedu/personal", "local/local"))
    assert sorted(one) == sorted(other) == list(range(5))
    expected = stats.ttest_rel([one[s] for s in range(5)], [other[s] for s in range(5)])
    low, high = expected.confidence_interval(0.95)
    assert (claim.difference.low, claim.difference.high) == pytest.approx((low, high))
    assert claim.difference.mean == pytest.approx(np.mean(list(one.values())) - np.mean(list(other.values())))


def test_scores_over_all_samples_are_those_of_the_table():
    for row in cells.rows_of("fedu/table3-mnist"):
        scores = pooled("fedu/table3-mnist")[row["cell"], f"{row['method']}/{row['model']}"]
        assert np.mean(list(scores.values())) == pytest.approx(100 * float(row["pooled"]))


def test_the_counts_in_its_sentences_are_those_of_the_table(text, table):
    count = Counter(map(cells.counted_as, table))
    explained, unexplained, apart = (
        count["differs, explained"],
        count["differs, unexplained"],
        count[cells.AFTER_TEST],
    )
    wide = count["consistent, wide"]
    measured = count["agrees"] + wide + count["close"] + explained + unexplained + apart
    words = " ".join(text.split())
    for sentence in (
        f"Of 279 published numbers {measured} were measured on the papers' data: {count['agrees']} agree, "
        f"{wide} are consistent with a wide interval, {count['close']} are close",
        f"{explained} differ for a reason that a run shows",
        f"{apart} more meet the published number with settings that were chosen after test results had been seen",
        f"{unexplained} differ and no run explains them",
        f"{count['other data']} rest on other data, {count['not run']} were not run",
        f"{count['not possible']} cannot be",
    ):
        assert sentence in words, sentence
    rows = [row for row in table if row["after_test"] and row["status"] == "consistent, wide"]
    assert f"(mmFL's networks), {len(rows)} of them with a wide interval" in words
    close = [row for row in table if row["status"] == "close"]
    pflego = [row for row in close if row["paper"] == "PFLEGO"]
    assert f"({len(pflego)} of them PFLEGO's, {sum(r['seeds'] == '1' for r in pflego)} from one seed)" in words


@pytest.mark.parametrize("paper", ["pFedMe", "FedU", "PFLEGO", "mmFL"])
def test_the_counts_of_a_papers_page_are_those_of_the_table(paper, table):
    statuses = [row["status"] for row in table if row["paper"] == paper]
    words = " ".join((cells.HERE / paper.lower() / "README.md").read_text(encoding="utf-8").split())
    assert f"Of the {len(statuses)} published numbers " in words
    said = words.partition(f"Of the {len(statuses)} published numbers ")[2].partition("([every number]")[0]
    told = {status: int(n) for status, how in SAID.items() for n in re.findall(rf"(\d+)(?: \([^)]*\))? {how}", said)}
    assert told == Counter(statuses)


def test_the_ranges_in_its_sentences_are_those_of_the_comparisons(text):
    """Each "A to B points" of a conclusion is the least and the most that the named comparison has in its cells."""
    means = {}
    for claim in claims.claims():
        means.setdefault(claim.text, []).append(abs(claim.difference.mean))
    words = " ".join(text.split())
    for comparison, pattern, which in (
        (
            "local training against pFedMe's personalized model",
            "it beats pFedMe's personalized model, by {} to {} points",
            slice(1, None),
        ),
        (
            "FedAvg + 100 own steps against pFedMe's personalized model",
            "all six cells, by {} to {} points",
            slice(None),
        ),
        ("PFLEGO against FedRep", "PFLEGO* has a mean {} to {} points above FedRep's", slice(None)),
        (
            "late fusion of two modalities against the accelerometer",
            "Late fusion has a mean {} to {} points",
            slice(None),
        ),
        ("FedAvg against FedU where clients are alike", "FedAvg is {} to {} points above FedU", slice(None)),
    ):
        found = sorted(means[comparison])[which]
        digits = 0 if "FedAvg against FedU" in comparison else 1
        assert pattern.format(f"{found[0]:.{digits}f}", f"{found[-1]:.{digits}f}") in words, comparison


def test_what_the_graph_of_shared_labels_gains_is_said_against_local_training(text):
    """Equal weights lose, so a gain over them says little: the gain over local training is said first, with its p."""
    words, cell = " ".join(text.split()), ("mnist-mlr", "mnist-dnn")
    labels = by_cell("FedU on a graph of shared labels against local training")
    equal = by_cell("FedU with equal weights against local training")
    over = by_cell("FedU on a graph of shared labels against equal weights")
    mlr, dnn = (labels[name] for name in cell)
    said = (
        f"it is {mlr.difference.mean:.2f} points above local training with MLR and {dnn.difference.mean:.2f} with "
        f"the network (p is {p_value(mlr.p)} and {p_value(dnn.p)}). It is {over[cell[0]].difference.mean:.2f} above "
        "equal weights with MLR, mostly because equal weights are "
        f"{-equal[cell[0]].difference.mean:.2f} below local training"
    )
    assert said in words
    assert over[cell[0]].difference.mean == pytest.approx(mlr.difference.mean - equal[cell[0]].difference.mean)


def test_the_seconds_of_pflegos_round_are_those_of_the_cells_that_are_named(text):
    """How many times less than FedAvg's a round takes: in the four cells, and with Omniglot's network."""
    seconds = {
        (row["cell"], row["method"]): float(row["seconds"])
        for folder in ("pflego/table1-mnist", "pflego/table1-fashion-mnist", "pflego/table3")
        for row in rows_of(folder)
    }
    times = sorted(
        seconds[c, "fedavg"] / seconds[c, "pflego"] for c, m in seconds if m == "pflego" and c != "omniglot"
    )
    omniglot = seconds["omniglot", "fedavg"] / seconds["omniglot", "pflego"]
    said = "{:.1f} to {:.1f} times less than FedAvg's there, and {:.0f} times less with Omniglot's network"
    assert said.format(times[0], times[-1], omniglot) in " ".join(text.split())


def test_what_is_inconclusive_is_said_so(text):
    """A mean difference whose p is 0.05 or more by Holm's is called inconclusive, with its p."""
    words = " ".join(text.split())
    fusion = by_cell("late fusion of two modalities against the accelerometer")
    random, blocked, people = (fusion[f"{name}-cross-entropy"].p for name in ("random", "blocked", "subjects"))
    assert min(random, blocked, people) >= 0.05
    assert (
        f"three seeds are inconclusive: p is {p_value(people)} on new people, {p_value(random)} on windows at random "
        f"and {p_value(blocked)} by time"
    ) in words
    fedrep = by_cell("PFLEGO against FedRep")
    open_ = {"mnist-medium": "MNIST Medium", "fashion-mnist-high": "Fashion-MNIST High"}
    assert [cell for cell, claim in fedrep.items() if claim.p >= 0.05] == list(open_)
    told = " and ".join(p_value(fedrep[cell].p) for cell in open_)
    assert f"with p of {told} {' and '.join(open_.values())} are inconclusive" in words


def test_pflego_against_fedrep_with_the_codes_settings_is_said_as_the_table_has_it(text):
    """Two labels and five on MNIST, then on Fashion-MNIST; one cell alone shows a difference."""
    found = by_cell("PFLEGO against FedRep, the published code's settings")
    order = ("mnist-high", "mnist-medium", "fashion-mnist-high", "fashion-mnist-medium")
    assert [cell for cell in order if found[cell].p < 0.05] == ["mnist-medium"]
    *first, last = (f"{found[cell].difference.mean:+.1f}" for cell in order)
    said = f"it is {', '.join(first)} and {last}, and only MNIST Medium shows a difference"
    assert f"{said} (p is {p_value(found['mnist-medium'].p)})" in " ".join(text.split())


FIVE = ("mnist-medium", "fashion-mnist-medium")
TWO_THEN_FIVE = ("mnist-high", "fashion-mnist-high", *FIVE)
"""PFLEGO's cells by their labels a client, in the order in which the first page says their numbers."""


def by_cell(comparison):
    return {claim.cell: claim for claim in claims.claims() if claim.text == comparison}


def test_pflego_against_local_training_is_said_as_the_table_has_it(text):
    """Four cells with their signs, and Holm's p of the two with five labels."""
    words, found = " ".join(text.split()), by_cell("PFLEGO against local training")
    said = (
        "it has {:+.1f} points on MNIST and {:+.1f} on Fashion-MNIST with two labels per client, "
        "{:+.1f} and {:+.1f} with five"
    )
    assert said.format(*(found[cell].difference.mean for cell in TWO_THEN_FIVE)) in words
    assert "p is {} and {} by Holm's".format(*(p_value(found[cell].p) for cell in FIVE)) in words


def test_methods_whose_last_layers_start_alike_are_said_as_the_table_has_them(text):
    """Two methods cannot be distinguished where no p is below 0.05."""
    words = " ".join(text.split())
    pflego, ditto, between = (
        by_cell(f"{comparison}, last layers start alike")
        for comparison in ("PFLEGO against local training", "Ditto against local training", "PFLEGO against Ditto")
    )
    said = "**where all start alike it is {:+.1f} and {:+.1f} with two, {:+.1f} and {:+.1f} with five**"
    assert said.format(*(pflego[cell].difference.mean for cell in TWO_THEN_FIVE)) in words
    said = "Ditto, which gains {:.1f} and {:.1f} with five, cannot be distinguished from it"
    assert said.format(*(ditto[cell].difference.mean for cell in FIVE)) in words
    assert set(between) == set(FIVE)
    assert min(claim.p for claim in between.values()) > 0.05


def test_ranks_count_each_data_set_once(text):
    """FedU's Table IV has three data sets, pFedMe's Table 1 two: MNIST in two partitions, and Synthetic."""
    fedu, pfedme = (line.split(" | ") for line in claims.ranks().splitlines()[2:])
    assert (fedu[1:4], pfedme[1:4]) == (["6", "3", "4.35"], ["6", "2", "5.33"])
    apart = {}
    for line in (fedu, pfedme):
        found = [float(rank) for rank in re.findall(r"/\w+ ([\d.]+)", line[4])]
        apart[line[0]] = found[-1] - found[0]
        assert apart[line[0]] < float(line[3])
    said = "critical difference is {}, and no two methods are more than {:.2f} apart"
    assert said.format(fedu[3], apart[fedu[0]]) in " ".join(text.split())


def test_ranks_name_every_method_once():
    for line in claims.ranks().splitlines()[2:]:
        ranks = [float(rank) for rank in re.findall(r"/\w+ ([\d.]+)", line)]
        assert ranks == sorted(ranks)
        assert sum(ranks) == pytest.approx(21, abs=0.05)
