"""The answers are those of the CSV files of the same runs, and say what is not known."""

import csv
from dataclasses import replace

import pytest

from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.view.answers import (
    ONE_SEED,
    QUESTIONS,
    TIMED,
    UNKNOWN,
    UNSCORED,
    answers_of,
    leak_sentence,
    several,
)
from idiolect.report.view.from_store import view_of
from idiolect.report.view.leaders import leaders_of
from idiolect.report.view.parts import Times, View
from idiolect.study.analyse.client_tests import Clients
from idiolect.study.analyse.intervals import Difference
from idiolect.study.analyse.pairs import Pair
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.html.made import compared, data_of, part_of
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
    three, questions, each = answers_of(view_of(results, ""))
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


LOCAL, SHARED, DITTO = ("local", "local"), ("fedavg", "global"), ("ditto", "personal")
NAN = float("nan")
NOBODY = "Who loses cannot be said: no client has scores of both training alone and a federated model."


def told(*parts, **more):
    """The three sentences of a page of these comparisons."""
    return [plain(sentence) for sentence in answers_of(View(title="", parts=parts, **more))[2][0]]


def scores(seeds=1, **levels):
    """Every client of a model has the same score in every seed."""
    keys = {"local": LOCAL, "fedavg": SHARED, "ditto": DITTO}
    return {keys[name]: dict.fromkeys(range(seeds), (level,) * 3) for name, level in levels.items()}


def pair(key=DITTO, mean=None, p=NAN, clients=(0, 0, 3), told=(0, 0, 0), least=NAN):
    """A model against training alone; mean: of a difference with an interval of one on both sides, in points."""
    difference = None if mean is None else Difference(mean, mean - 1, mean + 1, p, 3)
    return Pair(*key, difference, p, Clients(*clients, (), told), least)


@pytest.mark.parametrize(
    ("run", "pairs", "best"),
    [
        ({"local": 0.6}, [], "Training alone scores best, 60.00 % accuracy (one seed); no federated method was run "
         "beside it."),
        ({"fedavg": 0.5}, [], "FedAvg (global) scores best, 50.00 % accuracy (one seed); it is the shared model "
         "itself, and training alone was not run beside it."),
        ({"ditto": 0.65}, [], "Ditto (personal) scores best, 65.00 % accuracy (one seed); neither training alone nor "
         "a shared model was run beside it."),
        ({"fedavg": 0.5, "ditto": 0.65}, [], "Ditto (personal) scores best, 65.00 % accuracy (one seed): +15.00 "
         "points against FedAvg (global)."),
        ({"local": 0.6, "ditto": 0.65}, [pair()], "Ditto (personal) scores best, 65.00 % accuracy (one seed): +5.00 "
         "points against training alone."),
        ({"local": 0.6, "fedavg": 0.5}, [pair(SHARED)], "Training alone scores best, 60.00 % accuracy (one seed); "
         "the best federated model, FedAvg (global), has 50.00 % accuracy: -10.00 points against training alone."),
        ({"local": 0.6, "fedavg": 0.5, "ditto": 0.55}, [pair(SHARED), pair()], "Training alone scores best, 60.00 % "
         "accuracy (one seed); the best federated model, Ditto (personal), has 55.00 % accuracy: -5.00 points "
         "against training alone and +5.00 points against FedAvg (global)."),
        ({"local": 0.6, "fedavg": 0.7}, [pair(SHARED)], "FedAvg (global) scores best, 70.00 % accuracy (one seed): "
         "+10.00 points against training alone."),
    ],
    ids=["local", "shared", "personal", "without local", "without shared", "local is best", "local is best of three",
         "shared is best"],
)  # fmt: skip
def test_the_first_sentence_compares_with_what_was_run(run, pairs, best):
    assert told(part_of(scores(**run), *pairs))[0] == best


def test_a_score_is_that_of_all_samples_and_not_the_clients_mean():
    """Of 10, 20 and 30 samples: (9 + 12 + 18) / 60 and (6 + 18 + 27) / 60; the clients' means are .7 and .8."""
    low, high = (0.9, 0.6, 0.6), (0.6, 0.9, 0.9)
    for local, ditto, start, end in (
        (low, high, "Ditto (personal) scores best, 85.00 ± 0.00 % accuracy (mean of 2 seeds ± ", "+20.00 points"),
        (high, low, "Training alone scores best, 85.00 ± 0.00 % accuracy (mean of 2 seeds ± ", "-20.00 points"),
    ):
        runs = {LOCAL: dict.fromkeys((0, 1), local), DITTO: dict.fromkeys((0, 1), ditto)}
        best = told(part_of(runs, pair(), counts=(10, 20, 30), by_seed=False))[0]
        assert best.startswith(start)
        assert best.endswith(f": {end} compared with training alone (not tested).")
        assert local == low or "Ditto (personal), has 65.00 ± 0.00 % accuracy: " in best


def test_one_seed_without_a_reference_has_no_gain():
    assert told(part_of(scores(local=0.6)))[1:] == ["There is nothing to compare it with.", NOBODY]
    assert told(part_of(scores(ditto=0.65)))[1:] == [ONE_SEED, NOBODY]


def test_a_difference_has_its_interval_and_its_p():
    runs = scores(seeds=3, local=0.6, ditto=0.65)
    start = "Ditto (personal) scores best, 65.00 ± 0.00 % accuracy (mean of 3 seeds ± half of the 95 % interval): "
    for p, words in ((0.012, "p = 0.012"), (0.0001, "p <0.001"), (NAN, "no p value")):
        expected = f"{start}+5.00 [+4.00, +6.00] points against training alone ({words})."
        assert told(part_of(runs, pair(mean=5.0, p=p)))[0] == expected


def test_where_two_models_have_one_seed_in_common_it_gives_the_difference():
    """Of seeds 0 and 1, and 1 and 2: in seed 1 Ditto has 70 %, local training 62 %. The means are 5 points apart."""
    runs = {LOCAL: {0: (0.5,) * 3, 1: (0.62,) * 3}, DITTO: {1: (0.7,) * 3, 2: (0.52,) * 3}}
    assert told(part_of(runs, pair()))[0].endswith(": +8.00 points against training alone.")
    apart = {LOCAL: {0: (0.7,) * 3}, DITTO: {1: (0.6,) * 3}}
    best, noise, loses = told(part_of(apart))
    assert best.endswith("the best federated model, Ditto (personal), has 60.00 % accuracy.")
    assert (noise, loses) == (ONE_SEED, NOBODY)


def test_a_seed_without_a_value_does_not_hide_the_difference_of_the_other():
    """Local training has no value in seed 0, which comes first."""
    part = part_of({LOCAL: {0: (0.4,) * 3, 1: (0.6,) * 3}, DITTO: {0: (0.7,) * 3, 1: (0.65,) * 3}}, pair())
    part.scores[LOCAL][0].pooled["accuracy"] = NAN
    assert told(part)[0].endswith(": +5.00 points against training alone.")
    part.scores[LOCAL][1].pooled["accuracy"] = NAN
    assert told(part)[0].endswith(": — points against training alone.")


def test_scores_that_are_known_as_means_only_are_not_tested():
    part = part_of(scores(seeds=3, local=0.6, fedavg=0.5, ditto=0.65), pair(clients=(2, 0, 1)), by_seed=False)
    best, noise, _ = told(part)
    assert best.endswith(
        ": +5.00 points compared with training alone (not tested) and +15.00 points compared with FedAvg (global) "
        "(not tested)."
    )
    assert noise == (
        "Whether the difference is beyond the noise of the seeds is not tested: accuracy over all samples is known "
        "only as a mean over seeds. Of 3 clients, 2 are better and 0 are worse off than alone beyond noise; 1 cannot "
        "be told."
    )
    error = part_of(scores(seeds=3, local=2.0, ditto=1.5), pair(), metric="mse", by_seed=False)
    assert told(error)[0] == (
        "Ditto (personal) scores best, mse 1.500 ± 0.000 (mean of 3 seeds ± half of the 95 % interval): -0.5000 mse "
        "compared with training alone (not tested)."
    )


FEW = " seeds are few: intervals and p values are rough"
TWO = "Two seeds show only a mean difference of more than 12.7 times its standard error"


@pytest.mark.parametrize(
    ("seeds", "metric", "tested", "noise"),
    [
        (5, "accuracy", pair(mean=5.0, p=0.01), "Beyond the noise of the seeds Ditto (personal) is better than "
         "training alone (Holm, 5 %)."),
        (5, "accuracy", pair(mean=0.5, p=0.01), "Beyond the noise of the seeds Ditto (personal) is better than "
         "training alone (Holm, 5 %)."),
        (5, "accuracy", pair(mean=-5.0, p=0.01), "Beyond the noise of the seeds Ditto (personal) is worse than "
         "training alone (Holm, 5 %)."),
        (5, "mse", pair(mean=-5.0, p=0.01), "Beyond the noise of the seeds Ditto (personal) is better than training "
         "alone (Holm, 5 %)."),
        (5, "accuracy", pair(mean=5.0, p=0.2), "The seeds do not tell Ditto (personal) from training alone (p = 0.2, "
         "Holm)."),
        (5, "accuracy", pair(mean=5.0), "The seeds do not tell Ditto (personal) from training alone (no p value, "
         "Holm)."),
        (4, "accuracy", pair(least=2.5), f"4{FEW}, and no difference below 2.50 points can be shown."),
        (3, "mse", pair(least=0.25), f"3{FEW}, and no difference below 0.2500 mse can be shown."),
        (3, "mse", pair(), f"3{FEW}."),
        (2, "accuracy", pair(least=2.5), f"{TWO}, and no difference below 2.50 points. A smaller one may exist, and "
         "so may runs that fail now and then: use five seeds or more."),
        (1, "accuracy", pair(), ONE_SEED),
    ],
)  # fmt: skip
def test_the_second_sentence_says_what_the_seeds_show(seeds, metric, tested, noise):
    part = part_of(scores(seeds=seeds, local=0.6, ditto=0.65), tested, metric=metric)
    clients = "Of 3 clients, 0 are better and 0 are worse off than alone beyond noise; 3 cannot be told."
    assert told(part)[1] == f"{noise} {clients}"


def test_without_local_training_no_gain_is_known():
    assert told(part_of(scores(seeds=5, ditto=0.6)))[1] == (
        "Training alone was not run, so that no client's gain over it is known."
    )
    assert told(part_of(scores(seeds=4, ditto=0.6)))[1] == f"4{FEW}."


def test_the_clients_of_the_second_sentence_are_counted():
    """Of 2 + 1 + 4 clients."""
    part = part_of(scores(local=0.6, ditto=0.65), pair(clients=(2, 1, 4)))
    assert told(part)[1] == (
        f"{ONE_SEED} Of 7 clients, 2 are better and 1 is worse off than alone beyond noise; 4 cannot be told."
    )


@pytest.mark.parametrize(
    ("metric", "ditto", "local", "counts", "client", "loses"),
    [
        ("accuracy", (0.7, 0.4, 0.55), (0.6, 0.6, 0.6), (10, 1234, 20), -1, "2 of 3 clients score worse with Ditto "
         "(personal) than alone; south loses most: 40.00 % against 60.00 % alone, on 1,234 test samples, beyond "
         "noise."),
        ("accuracy", (0.7, 0.0, 0.6), (0.6, 1.0, 0.6), (10, 1, 20), 0, "1 of 3 clients score worse with Ditto "
         "(personal) than alone; south loses most: 0.00 % against 100.00 % alone, on 1 test sample, which noise "
         "alone may explain."),
        ("mse", (1.0, 1.5, 2.5), (2.0, 2.0, 2.0), (9, 9, 9), 0, "1 of 3 clients score worse with Ditto (personal) "
         "than alone; east loses most: 2.500 mse against 2.000 mse alone, on 9 test samples, which noise alone may "
         "explain."),
        ("accuracy", (0.7, 0.62, 0.65), (0.6, 0.61, 0.6), (9, 9, 9), 1, "No client scores worse with Ditto "
         "(personal) than alone; south gains least (61.00 % alone, 62.00 %)."),
        ("mse", (1.0, 1.5, 1.0), (2.0, 2.0, 2.0), (9, 9, 9), 1, "No client scores worse with Ditto (personal) than "
         "alone; south gains least (2.000 mse alone, 1.500 mse)."),
    ],
)  # fmt: skip
def test_the_third_sentence_names_the_client_that_loses_most(metric, ditto, local, counts, client, loses):
    part = part_of({LOCAL: {0: local}, DITTO: {0: ditto}}, pair(told=(client,) * 3), metric=metric, counts=counts)
    assert told(part)[2] == loses


def test_of_times_only_the_least_is_told():
    """Without a time there is nothing to say; a method without one is no fastest."""
    part = part_of(
        scores(local=0.6, fedavg=0.5, ditto=0.65),
        seconds={"fedavg": (5, 6), "ditto": (3, 5)},
        times=Times("local", {}, {}),
    )
    machines = "Machines differ, so that only ratios of times compare."
    fastest = "The least time is of Ditto, 4.00 seconds a run."
    assert told(part) == [TIMED, f"{fastest} {machines}", UNSCORED]
    assert told(replace(part, lines=part.lines[:1])) == [TIMED, f"{UNKNOWN} {machines}", UNSCORED]


def test_several_comparisons_are_told_together_and_each_by_itself():
    one, other = part_of(scores(local=0.6)), part_of(scores(ditto=0.65), seeds=(8, 1), title="Other")
    three, questions, each = answers_of(View(title="", parts=(one, other)))
    assert [plain(sentences[0])[:16] for sentences in each] == ["Training alone s", "Ditto (personal)"]
    assert three[0].startswith("Of 2 comparisons the best score has training alone in 1")
    leak = "Whether there is a leak is not known: no audit of the data is recorded here."
    assert three[2] == f"{questions[2][1]} {leak}"
    assert [question for question, _ in questions] == list(QUESTIONS)
    assert [answer for _, answer in questions[:2]] == three[:2]
    assert [answer for _, answer in questions[3:]] == [leak, "Made seeds 0, 1, 8."]


@pytest.mark.parametrize(
    ("seeds", "known", "made"),
    [
        ((), {}, "How it was made is not recorded here."),
        ((7,), {}, "Made seed 7."),
        (tuple(range(12)), {}, "Made seeds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more."),
        ((), {"command": "idiolect run"}, "Made by: idiolect run."),
        ((), {"protocol": "fair"}, "Made protocol fair."),
        ((), {"made_with": (("jax", "1"), ("date", "2026-01-02"))}, "Made on 2026-01-02."),
        ((), {"made_with": (("idiolect", "0.1"), ("git commit", "0f"))}, "Made idiolect 0.1, git commit 0f."),
    ],
)
def test_only_what_is_recorded_is_told_of_how_it_was_made(seeds, known, made):
    view = View(title="", parts=(part_of(scores(local=0.6), seeds=seeds),), **known)
    assert answers_of(view)[1][4][1] == made


def test_what_was_not_audited_is_told_only_where_nothing_was():
    not_audited = {"text": "Not audited: made up.", "severe": False}
    sites = {"text": "The samples of different sites were not compared.", "severe": False}
    clean = {"text": "No leak found.", "severe": False}
    assert leak_sentence([sites]) == f"No leak is known, but: {sites['text']}"
    assert leak_sentence([not_audited, sites]) == "No leak is known, but: Not audited: made up."
    assert leak_sentence([]) == "The audit of the data found no leak."
    assert leak_sentence([not_audited, clean]) == "The audit of the data found no leak."
    assert leak_sentence([{"text": f"{i}.", "severe": True} for i in range(2)]) == "The audit found leaks: 0. 1."


def test_the_questions_and_what_is_said_where_there_is_no_answer():
    assert QUESTIONS == (
        "Which method is best, and by how much?",
        "Is it beyond noise?",
        "Who loses most?",
        "Is there a leak?",
        "How was it made?",
    )
    assert UNKNOWN == "Nothing can be said: no run has ended with a score."
    assert TIMED == "Only times are compared here: the scores of these few rounds mean nothing."
    assert UNSCORED == "Who loses is no question of times."
    assert ONE_SEED.startswith("A single seed proves nothing: it has no interval, ")


def test_wins_are_counted_and_the_largest_loss_is_told(tmp_path):
    parts = [
        part
        for i, gain in enumerate((0.05, -0.02, -0.05))
        for part in view_of(compared(tmp_path / str(i), gain=gain), "").parts
    ]
    leaders = [leaders_of(part) for part in parts]
    told = several(parts, leaders, [[f"{name}{i}" for name in "abc"] for i in range(3)])
    assert told[0].startswith(
        "Of 3 comparisons the best score has training alone in 2, \u2068Ditto (personal)\u2069 in 1;"
    )
    assert (
        "better beyond the noise of the seeds in 1 of 3 comparisons, worse in 1, and not told apart in 1" in told[1]
    )
    assert told[2] == "Most is lost in \u2068cell0\u2069: c2"


def test_one_with_scores_among_several(tmp_path):
    part = view_of(compared(tmp_path), "").parts[0]
    told = several([part, part], [leaders_of(part), None], [["a", "b", "c"], ["x", "y", "z"]])
    assert told == ["Of 2 comparisons one has scores, \u2068cell0\u2069. a", "b", "c"]
    assert several([part], [None], [["x", "y", "z"]])[0] == "x"
