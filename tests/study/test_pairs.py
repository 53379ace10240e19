import math

import numpy as np
import pytest
from scipy import stats

from idiolect.metrics.registry import METRICS
from idiolect.study.intervals import holm, paired
from idiolect.study.pairs import clients_of, pairs_of, reference_of
from idiolect.study.results import Results
from idiolect.study.store import Store
from tests.report.stores import NAN, experiment, finished, scored

ACCURACY, MSE = METRICS["accuracy"], METRICS["mse"]
NAMES = ["a", "b", "c", "d"]


def of_seeds(*values, counts=(400, 400, 400, 400), task="classification"):
    return [scored("m", "test", np.asarray(v, np.float64), np.asarray(counts), task) for v in values]


def test_clients_are_told_apart_only_beyond_noise():
    base = of_seeds((0.50, 0.90, 0.70, 0.5), (0.51, 0.90, 0.71, 0.5))
    ours = of_seeds((0.90, 0.50, 0.71, 0.5), (0.91, 0.50, 0.70, 0.5))
    found = clients_of(ours, base, ACCURACY, NAMES)
    assert (found.better, found.worse, found.unclear, found.hurt) == (1, 1, 2, ("b",))
    turned = clients_of(base, ours, ACCURACY, NAMES)
    assert (turned.better, turned.worse, turned.hurt) == (1, 1, ("a",))


def test_one_test_sample_proves_nothing():
    base = of_seeds((1, 1, 1, 0), (1, 1, 1, 0), counts=(1, 2, 400, 0))
    ours = of_seeds((0, 0, 0, 0), (0, 0, 0, 0), counts=(1, 2, 400, 0))
    found = clients_of(ours, base, ACCURACY, NAMES)
    assert (found.worse, found.hurt) == (1, ("c",))


def test_the_fewest_test_samples_of_a_client_count():
    """Where each seed draws its own split, a client has 400 test samples in one and 1 in the other."""
    base, ours = of_seeds((1, 1, 1, 0), (1, 1, 1, 0)), of_seeds((0, 0, 0, 0), (0, 0, 0, 0))
    assert clients_of(ours, base, ACCURACY, NAMES).worse == 3
    few = of_seeds((0, 0, 0, 0), counts=(1, 400, 400, 0))
    found = clients_of([*few, ours[1]], base, ACCURACY, NAMES)
    assert (found.worse, found.hurt) == (2, ("b", "c"))


def test_a_share_is_tested_as_agresti_and_caffo_do():
    counts, one, other = (50, 60, 50, 50), (0.6, 0.5, 0.5, 0.5), (0.9, 0.75, 0.5, 0.5)
    found = clients_of(of_seeds(one, counts=counts), of_seeds(other, counts=counts), ACCURACY, NAMES)
    p_values = []
    for n, a, b in zip(counts, one, other, strict=True):
        a, b = ((n * share + 1) / (n + 2) for share in (a, b))
        error = math.sqrt((a * (1 - a) + b * (1 - b)) / (n + 2))
        p_values.append(2 * stats.norm.sf(abs(a - b) / error))
    assert found.worse == sum(p < 0.05 for p in holm(p_values)) == 2
    assert sum(p < 0.01 for p in p_values) == 2


def test_no_difference_is_seldom_called_one():
    """Two models that are equally good on every client: any of 20 clients is called different in at most 5 %."""
    rng, wrong, tries = np.random.default_rng(0), 0, 300
    counts = np.full(20, 40)
    for _ in range(tries):
        truth = rng.uniform(0.5, 0.95, 20)
        sides = [of_seeds(*[rng.binomial(40, truth) / 40], counts=counts) for _ in range(2)]
        found = clients_of(*sides, ACCURACY, [str(i) for i in range(20)])
        wrong += found.better + found.worse > 0
    assert stats.binomtest(wrong, tries, 0.05, alternative="greater").pvalue > 0.01


def test_other_metrics_are_tested_over_seeds_and_lower_can_be_better():
    base = of_seeds((1.0, 1.0, 1.0, 1.0), (1.1, 1.1, 1.1, 1.1), (1.2, 1.2, 1.2, 1.2), task="regression")
    ours = of_seeds((2.0, 0.5, 1.1, NAN), (2.1, 0.6, 1.0, NAN), (2.2001, 0.7001, 1.2, NAN), task="regression")
    found = clients_of(ours, base, MSE, NAMES)
    assert (found.better, found.worse, found.unclear, found.hurt) == (1, 1, 1, ("a",))
    single = clients_of(ours[:1], base[:1], MSE, NAMES)
    assert (single.better, single.worse, single.unclear) == (0, 0, 3)


@pytest.fixture
def results(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}, {"name": "local"}, {"name": "ditto"}, {"name": "pfedme"}], seeds=3)
    for seed in range(3):
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.7 + seed / 10,) * 3 + (NAN,)}})
        finished(store, exp, "cell0", "local", seed, {20: {"local": (0.5 + seed / 20,) * 3 + (NAN,)}})
    finished(store, exp, "cell0", "ditto", 1, {20: {"personal": (0.9,) * 3 + (NAN,)}})
    return Results(store, exp)


def test_pairs_are_of_common_seeds_in_percent(results):
    cell = results.experiment.cells[0]
    assert reference_of(results, cell) == ("local", "local")
    fedavg, ditto = pairs_of(results, cell)
    expected = paired([70.0, 80.0, 90.0], [50.0, 55.0, 60.0])
    assert (fedavg.method, fedavg.model) == ("fedavg", "global")
    assert fedavg.difference.mean == pytest.approx(expected.mean)
    assert (fedavg.difference.low, fedavg.p) == (pytest.approx(expected.low), pytest.approx(expected.p))
    assert (ditto.method, ditto.difference) == ("ditto", None)  # one common seed
    assert math.isnan(ditto.p)


def test_p_values_are_corrected_for_the_whole_table(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "local"}, {"name": "fedavg"}, {"name": "fedprox"}], seeds=3)
    for seed in range(3):
        finished(store, exp, "cell0", "local", seed, {20: {"local": (0.5 + seed / 50,) * 4}})
        finished(store, exp, "cell0", "fedavg", seed, {20: {"global": (0.6 + seed / 30,) * 4}})
        finished(store, exp, "cell0", "fedprox", seed, {20: {"global": (0.5 + seed / 10,) * 4}})
    pairs = pairs_of(Results(store, exp), exp.cells[0])
    assert [pair.p for pair in pairs] == pytest.approx(holm([pair.difference.p for pair in pairs]))
    assert pairs[0].p == pytest.approx(2 * pairs[0].difference.p)


def test_without_local_training_the_first_method_is_the_reference(results):
    cell = results.experiment.cells[0]
    others = tuple(method for method in cell.methods if method.name != "local")
    assert reference_of(results, cell.model_copy(update={"methods": others})) == ("fedavg", "global")
