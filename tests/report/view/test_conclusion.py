"""The headline, its numbers and the chips are those of the CSV files of the same runs."""

import csv
from dataclasses import replace

from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.view.conclusion import conclusion_of, conclusions_of, default_of, leak_words, named
from idiolect.report.view.from_store import view_of
from idiolect.report.view.parts import Times, View
from idiolect.study.analyse.client_tests import Clients
from idiolect.study.analyse.intervals import Difference
from idiolect.study.analyse.pairs import Pair
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.html.made import compared, part_of
from tests.report.stores import experiment, finished

LOCAL, SHARED, DITTO = ("local", "local"), ("fedavg", "global"), ("ditto", "personal")
ONE = ("one", "personal")
NAN = float("nan")


def plain(text):
    return text.replace("\u2068", "").replace("\u2069", "")


def said(results):
    """(headline, numbers, chips as kind -> (title, text)) of a store of one comparison."""
    return words(conclusion_of(view_of(results, "").parts[0]))


def words(one):
    chips = {chip.kind: (plain(chip.title), plain(chip.text)) for chip in one.chips}
    return plain(one.headline), plain(one.numbers), chips


def scores(seeds=1, **levels):
    """Every client of a model has the same score in every seed."""
    keys = {"local": LOCAL, "fedavg": SHARED, "ditto": DITTO}
    return {keys[name]: dict.fromkeys(range(seeds), (level,) * 3) for name, level in levels.items()}


def pair(mean=None, p=NAN, clients=(0, 0, 3), key=DITTO, least=NAN, signs=(0, 0, 0)):
    """A comparison with local training of a made result."""
    difference = None if mean is None else Difference(mean, mean - 1, mean + 1, p, 5)
    names = ("south", "east")[: clients[1]]
    return Pair(*key, difference, p, Clients(*clients, names, tuple(signs)), least)


def test_the_numbers_are_those_of_the_csv_files(tmp_path):
    results = compared(tmp_path / "runs", seeds=5)
    write_csv(results, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        table = {(row["method"], row["model"]): 100 * float(row["pooled"]) for row in csv.DictReader(file)}
    first, numbers, chips = said(results)
    gap = table[DITTO] - table[LOCAL]
    assert first == f"Use Ditto: {gap:.1f} points better than local training."
    begin = (
        f"5 seeds, 3 clients; Ditto {table[DITTO]:.2f} % accuracy, difference from local training +{gap:.2f} points"
    )
    assert numbers.startswith(f"{begin} (95 % interval +")
    assert ", adjusted p " in numbers
    assert chips["gains"][0].endswith("of 3 clients gain, tested")


def test_gains_losses_and_the_rest_add_up(tmp_path):
    for gain in (0.2, 0.0, -0.2):
        _, _, chips = said(compared(tmp_path / str(gain), gain=gain, seeds=5))
        gains, loses = (int(chips[kind][0].split()[0]) for kind in ("gains", "loses"))
        assert f"{3 - gains - loses} show no difference beyond noise." in chips["gains"][1]


def test_the_largest_loss_is_the_lowest_of_the_clients(tmp_path):
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
    title, text = said(results)[2]["loses"]
    assert title == "0 of 3 clients lose, tested"
    assert text == (
        f"3 of 3 score worse, tested or not. Largest loss: {worst}, {100 * mean('ditto', worst):.2f} % "
        f"({100 * mean('local', worst):.2f} % with local training), 400 test rows, within noise."
    )


def test_local_training_may_be_the_best(tmp_path):
    first, numbers, _ = said(compared(tmp_path, gain=-0.2, seeds=5))
    assert first == "Do not federate with these settings: local training is 10.0 points better."
    assert "difference from local training -10.00 points (" in numbers


def test_one_seed_is_inconclusive(tmp_path):
    first, numbers, _ = said(compared(tmp_path, seeds=1))
    assert first == "Inconclusive: one seed is too few."
    assert numbers.endswith("difference from local training +6.50 points, not tested")
    assert numbers.startswith("1 seed, 3 clients; Ditto ")


def test_few_seeds_are_said_in_the_details(tmp_path):
    _, _, chips = said(compared(tmp_path))
    assert "3 seeds are few: intervals and p values are rough" in chips["gains"][1]


def test_a_model_that_is_level_is_recommended_only_if_it_beats_local_training():
    keys = {LOCAL: 0.6, DITTO: 0.7, ONE: 0.7}
    made = {key: {seed: (level + seed / 100,) * 3 for seed in range(5)} for key, level in keys.items()}
    both = [pair(10, 0.01), pair(10, 0.01, key=ONE)]
    part = part_of(made, *both)
    assert words(conclusion_of(part))[0] == "Use Ditto or One: both beat local training."
    part = part_of(made, both[0], pair(10, 0.2, key=ONE))
    assert words(conclusion_of(part))[0] == "Use Ditto: 10.0 points better than local training."
    high = {**made, ONE: dict.fromkeys(range(5), (0.9,) * 3)}
    part = part_of(high, both[0], pair(30, 0.2, key=ONE))
    assert words(conclusion_of(part))[0] == "Use Ditto: 10.0 points better than local training."


def test_without_local_training_no_gain_is_known(tmp_path):
    first, numbers, chips = words(conclusion_of(part_of(scores(seeds=5, fedavg=0.5, ditto=0.6))))
    assert first == "No recommendation: local training was not compared."
    assert numbers == "5 seeds, 3 clients; Ditto 60.00 % accuracy (the highest)"
    assert chips["gains"][0] == "Who gains is not known"
    assert "loses" not in chips


def test_of_errors_the_lower_is_better(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "local"}, {"name": "ditto"}], seeds=5)
    for seed in range(5):
        noise = 0.01 * (seed % 3 - 1)
        for name, model, level in (("local", "local", 2 + noise), ("ditto", "personal", 1.5 - noise / 2)):
            course = {20: {model: [level - 0.5, level, level + 0.5, level]}}
            finished(store, exp, "cell0", name, seed, course, counts=[400] * 4, task="regression")
    first, numbers, chips = said(Results(store, exp))
    assert first.startswith("Use Ditto: 0.49")
    assert first.endswith(" lower mse than local training.")
    assert "difference from local training -0.49" in numbers
    assert chips["gains"][0] == "4 of 4 clients gain, tested"
    assert "Smallest gain: " in chips["loses"][1]
    assert said(Results(store, exp))[1].count("lowest") == 0


def test_scores_that_are_known_as_means_only_are_not_tested():
    part = part_of(scores(seeds=5, local=0.6, ditto=0.65), pair(clients=(2, 0, 1)), by_seed=False)
    first, numbers, chips = words(conclusion_of(part))
    assert first == "Inconclusive: the difference from local training could not be tested."
    assert numbers.endswith("difference from local training +5.00 points, not tested")
    assert chips["gains"][0] == "2 of 3 clients gain, tested"


def test_clients_that_lose_beyond_noise_are_named():
    tested = pair(5, 0.01, clients=(2, 1, 0), signs=(1, -1, 1))
    part = part_of({LOCAL: dict.fromkeys(range(5), (0.6,) * 3), DITTO: dict.fromkeys(range(5), (0.8, 0.4, 0.75))},
                   tested)  # fmt: skip
    first, _, chips = words(conclusion_of(part))
    assert first == "Use Ditto: 5.0 points better than local training, but 1 of 3 lose."
    assert chips["loses"] == (
        "1 of 3 clients lose, tested",
        "Beyond noise: south. 1 of 3 score worse, tested or not. Largest loss: south, 40.00 % "
        "(60.00 % with local training), 400 test rows, beyond noise.",
    )


def test_nothing_run(tmp_path):
    results = Results(Store(tmp_path), experiment([{"name": "fedavg"}, {"name": "local"}]))
    first, numbers, chips = said(results)
    assert first == "No result yet: no run has ended with a score."
    assert numbers == "No numbers yet."
    assert chips["made"][0].endswith("no leak audit")
    assert conclusions_of(View(title="", parts=()))[0].decision == "none"


def test_of_times_only_the_fastest_is_named():
    part = part_of(
        scores(local=0.6, fedavg=0.5, ditto=0.65),
        seconds={"fedavg": (5, 6), "ditto": (3, 5)},
        times=Times("local", {}, {}),
    )
    first, numbers, _ = words(conclusion_of(part))
    assert first == "Only times are compared: scores after so few rounds mean nothing."
    assert numbers == "Fastest: Ditto, 4.00 seconds per run."
    assert words(conclusion_of(replace(part, lines=part.lines[:1])))[1] == "No run has ended."


def test_several_comparisons_are_counted(tmp_path):
    parts = [
        part
        for i, gain in enumerate((0.2, -0.2, -0.2))
        for part in view_of(compared(tmp_path / str(i), gain=gain, seeds=5), "").parts
    ]
    whole, each = conclusions_of(View(title="", parts=tuple(parts)))
    assert [one.decision for one in each] == ["use", "local", "local"]
    assert [[chip.kind for chip in one.chips] for one in (whole, *each)] == [
        ["gains", "loses", "made"],
        *[["gains", "loses"]] * 3,
    ]
    first, numbers, chips = words(whole)
    assert (whole.decision, first) == ("mixed", "Of 3 comparisons: federate in 1, do not in 2.")
    assert numbers.startswith("3 comparisons, 5 seeds, up to 3 clients each; ")
    counts = [int(chips[kind][0].split()[0]) for kind in ("gains", "loses")]
    assert f"{9 - sum(counts)} show no difference beyond noise" in chips["gains"][1]
    assert conclusions_of(View(title="", parts=tuple(parts[1:])))[0].decision == "local"
    none = part_of(scores(seeds=5, fedavg=0.5, ditto=0.6))
    assert words(conclusions_of(View(title="", parts=(none, none)))[0])[0] == (
        "No recommendation: local training was not compared."
    )


def test_leaks_in_three_words():
    mild, severe = {"text": "fine.", "severe": False}, {"text": "Known leak: on purpose.", "severe": True}
    unseen = {"text": "Not audited: made up.", "severe": False}
    assert leak_words(None) == "no leak audit"
    assert leak_words([mild, severe]) == "leaks found"
    assert leak_words([mild]) == leak_words([]) == leak_words([mild, unseen]) == "no leak found"
    assert leak_words([unseen]) == "leaks partly audited"


def test_a_models_name_is_its_methods_where_it_stands_for_it(tmp_path):
    part = view_of(compared(tmp_path), "").parts[0]
    assert default_of(part, "ditto") == "personal"
    assert [plain(named(part, key)) for key in (DITTO, ("ditto", "global"), SHARED, LOCAL)] == [
        "Ditto",
        "Ditto, global",
        "FedAvg",
        "local training",
    ]
