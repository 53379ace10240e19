"""The answers are those of the CSV files of the same runs, and say what is not known."""

import csv

import pytest

from idiolect.report.html.answers import ONE_SEED, QUESTIONS, UNKNOWN, answers_of, leak_sentence
from idiolect.report.html.of_results import whole_of
from idiolect.report.raw import clients_csv, write_csv
from idiolect.study.results import Results
from idiolect.study.store import Store
from tests.report.html.made import compared, data_of
from tests.report.stores import experiment, finished


def plain(text):
    return text.replace("\u2068", "").replace("\u2069", "")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def answers(results):
    return {question: plain(answer) for question, answer in data_of(results)["questions"]}


@pytest.fixture(scope="module")
def rows(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    write_csv(results, folder / "table.csv")
    clients_csv(results, folder / "clients.csv")
    with (folder / "table.csv").open() as table, (folder / "clients.csv").open() as clients:
        return list(csv.DictReader(table)), list(csv.DictReader(clients))


def test_the_best_is_that_of_the_table_and_so_is_its_lead(answers, rows):
    table = {(row["method"], row["model"]): 100 * float(row["pooled"]) for row in rows[0]}
    best = max(table, key=lambda key: table[key])
    assert best == ("ditto", "personal")
    told = answers[QUESTIONS[0]]
    assert told.startswith(f"Ditto (personal) scores best, {table[best]:.2f} ± ")
    assert f"+{table[best] - table['local', 'local']:.2f} [" in told
    assert f"+{table[best] - table['fedavg', 'global']:.2f} [" in told
    assert "points against training alone (p = 0.0" in told


def test_the_clients_beyond_noise_are_all_counted(answers, rows):
    told = answers[QUESTIONS[1]]
    assert "Beyond the noise of the seeds Ditto (personal) is better than training alone (Holm, 5 %)." in told
    assert "Of 3 clients, " in told
    assert "3 seeds are few: intervals and p values are rough, and no difference below " in told


def test_who_loses_most_is_the_lowest_of_the_clients(tmp_path):
    results = compared(tmp_path / "runs", gain=-0.02)
    clients_csv(results, tmp_path / "clients.csv")
    with (tmp_path / "clients.csv").open() as file:
        rows = list(csv.DictReader(file))

    def mean(method, client):
        own = [row for row in rows if row["method"] == method and row["model"] in ("local", "personal")]
        found = [float(row["accuracy"]) for row in own if row["client"] == client]
        return sum(found) / len(found)

    gaps = {client: mean("ditto", client) - mean("local", client) for client in ("north", "south", "east")}
    worst = min(gaps, key=lambda client: gaps[client])
    told = plain(data_of(results)["questions"][2][1])
    assert told.startswith("3 of 3 clients score worse with Ditto (personal) than alone; ")
    assert f"{100 * mean('ditto', worst):.2f} % against {100 * mean('local', worst):.2f} % alone" in told
    assert "on 400 test samples, which noise alone may explain" in told


def test_training_alone_may_be_the_best_and_is_called_so(tmp_path):
    told = plain(data_of(compared(tmp_path, gain=-0.02))["answer"][0])
    assert told.startswith("Training alone scores best, 60.00 ± ")
    assert "; the best federated model, Ditto (personal), has 58.00 ± " in told
    assert ": -2.00 [" in told


def test_one_seed_proves_nothing(tmp_path):
    answer = [plain(sentence) for sentence in data_of(compared(tmp_path, seeds=1))["answer"]]
    assert "(one seed)" in answer[0]
    assert " (p =" not in answer[0]
    assert answer[1].startswith(ONE_SEED)


def test_ties_are_said(tmp_path):
    """Two Dittos that differ by nothing."""
    methods = ({"name": "local"}, {"name": "ditto", "label": "one"}, {"name": "ditto", "label": "other"})
    told = plain(data_of(compared(tmp_path, methods=methods))["answer"][1])
    assert "Not told apart from it: other (personal)." in told


def test_nothing_run(tmp_path):
    results = Results(Store(tmp_path), experiment([{"name": "fedavg"}, {"name": "local"}]))
    three, questions, each = answers_of(whole_of(results, ""))
    assert three[:2] == each[0][:2] == [UNKNOWN, UNKNOWN]
    assert dict(questions)[QUESTIONS[3]].startswith("Whether there is a leak is not known")


def test_times_have_no_best_score(timed):
    answer = data_of(timed)["answer"]
    assert answer[0].startswith("Only times are compared here")
    assert plain(answer[1]).startswith("The least time is of FedPer, 1.00 seconds a run.")


def test_how_it_was_made(answers):
    assert answers[QUESTIONS[4]] == (
        "Made by: idiolect compare --data toy, protocol as-written, seeds 0, 1, 2, idiolect 0.1.0, "
        "git commit 0123456789ab, on 2026-01-02."
    )


def test_leaks_are_told_first():
    leaks = [{"text": "fine.", "severe": False}, {"text": "Known leak: on purpose.", "severe": True}]
    assert leak_sentence(leaks) == "The audit found leaks: Known leak: on purpose."
    grave = [{"text": f"{i}.", "severe": True} for i in range(4)]
    assert leak_sentence(grave[:3]) == "The audit found leaks: 0. 1. There is 1 more finding."
    assert leak_sentence(grave) == "The audit found leaks: 0. 1. There are 2 more findings."
    assert leak_sentence(leaks[:1]) == "The audit of the data found no leak."
    assert "not known" in leak_sentence(None)
    assert leak_sentence([{"text": "Not audited: made up.", "severe": False}]).startswith("No leak is known, but: ")


def errors(folder, ditto, seeds=3):
    """Local training with errors of about 2, and Ditto with this much more."""
    store = Store(folder)
    exp = experiment([{"name": "local"}, {"name": "ditto"}], seeds=seeds)
    for seed in range(seeds):
        noise = 0.01 * (seed % 3 - 1)
        for name, model, level in (("local", "local", 2 + noise), ("ditto", "personal", 2 + ditto - noise / 2)):
            course = {20: {model: [level - 0.5, level, level + 0.5, level]}}
            finished(store, exp, "cell0", name, seed, course, counts=[400] * 4, task="regression")
    return [plain(sentence) for sentence in data_of(Results(store, exp))["answer"]]


def test_of_errors_the_lower_is_better(tmp_path):
    best, noise, loses = errors(tmp_path / "better", ditto=-0.5)
    assert best.startswith("Ditto (personal) scores best, mse 1.5")
    assert ": -0.5" in best
    assert " mse against training alone (p " in best
    assert noise.startswith("Beyond the noise of the seeds Ditto (personal) is better than training alone")
    assert "Of 4 clients, 4 are better and 0 are worse off than alone beyond noise" in noise
    assert loses.startswith("No client scores worse with Ditto (personal) than alone")
    best, noise, loses = errors(tmp_path / "worse", ditto=0.5)
    assert best.startswith("Training alone scores best, mse 2")
    assert ": +0.5" in best
    assert noise.startswith("Beyond the noise of the seeds Ditto (personal) is worse than training alone")
    assert loses.startswith("4 of 4 clients score worse with Ditto (personal) than alone")


def test_the_lead_of_a_single_seed_is_in_points(tmp_path):
    """With seed 0, local training has 1 point less than its mean, Ditto 5.5 points more than that mean."""
    best = plain(data_of(compared(tmp_path / "accuracy", seeds=1))["answer"][0])
    assert best.endswith(": +6.50 points against training alone and +16.50 points against FedAvg (global).")
    assert errors(tmp_path / "errors", ditto=-0.5, seeds=1)[0].endswith(": -0.4850 mse against training alone.")
