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


@pytest.mark.parametrize(
    ("one", "other", "gaps", "p"),
    [
        ((0.84, 0.94), (0.73, 0.74), (0.11, 0.20), 0.0312),  # 0.0693 if the variance were not divided by the seeds
        ((0.80, 0.94), (0.72, 0.74), (0.08, 0.20), 0.0939),  # 0.0139 without the variance over seeds
    ],
)
def test_the_variance_over_seeds_is_that_of_their_mean(one, other, gaps, p):
    """One client with 100 test samples and two seeds; with d the difference of their gaps, it is (d^2 / 2) / 2."""
    shares = [(100 * sum(side) / 2 + 1) / 102 for side in (one, other)]
    samples = sum(share * (1 - share) / 102 for share in shares)
    z = (shares[0] - shares[1]) / math.sqrt(samples + (gaps[1] - gaps[0]) ** 2 / 4)
    assert 2 * stats.norm.sf(z) == pytest.approx(p, abs=2e-4)
    ours, base = (of_seeds(*[(share, NAN, NAN, NAN) for share in side], counts=(100,) * 4) for side in (one, other))
    found = clients_of(ours, base, ACCURACY, NAMES)
    assert (found.better, found.unclear, found.told) == (int(p < 0.05), int(p >= 0.05), (int(p < 0.05), *[None] * 3))


def test_a_client_counts_only_with_a_value_in_every_seed_of_both():
    base = of_seeds((0.1, 0.1, NAN, 0.1), (0.1, 0.1, 0.1, 0.1))
    ours = of_seeds((0.9, 0.9, 0.9, NAN), (0.9, NAN, 0.9, NAN))
    found = clients_of(ours, base, ACCURACY, NAMES)
    assert found.told == (1, None, None, None)
    assert (found.better, found.worse, found.unclear) == (1, 0, 0)
    nobody = clients_of(of_seeds((NAN,) * 4), of_seeds((0.5,) * 4), ACCURACY, NAMES)
    assert (nobody.told, nobody.better, nobody.unclear) == ((None,) * 4, 0, 0)


def test_each_client_is_told_by_the_sign_of_its_own_gain():
    base = of_seeds((0.5, 0.9, 0.7, NAN), (0.5, 0.9, 0.7, NAN))
    ours = of_seeds((0.9, 0.5, 0.71, 0.5), (0.9, 0.5, 0.71, 0.5))
    assert clients_of(ours, base, ACCURACY, NAMES).told == (1, -1, 0, None)
    errors = [of_seeds(*values, task="regression") for values in (
        [(1.0, 1.0, 1.0, NAN), (1.1, 1.1, 1.1, NAN), (1.2, 1.2, 1.2, NAN)],
        [(2.0, 0.5, 1.1, NAN), (2.1, 0.6001, 1.0, NAN), (2.2001, 0.7, 1.2, NAN)],
    )]  # fmt: skip
    assert clients_of(errors[1], errors[0], MSE, NAMES).told == (-1, 1, 0, None)
    assert clients_of(ours, base, ACCURACY, ["a"]).hurt == ("1",)  # a client without a name has its number
