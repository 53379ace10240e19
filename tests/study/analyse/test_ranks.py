import numpy as np
import pytest
from scipy import stats

from idiolect.core.errors import ConfigError
from idiolect.study.analyse.ranks import average_ranks, critical_difference, ranks_of
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import NAN, experiment, finished


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_demsars_table(methods, q):
    """Demšar 2006, Table 5 (a)."""
    assert critical_difference(methods, 6) == pytest.approx(q * np.sqrt(methods * (methods + 1) / 36), abs=2e-3)


def test_ranks_by_hand():
    scores = np.array([[0.9, 0.8, 0.7], [0.9, 0.9, 0.1], [0.2, 0.5, 0.4], [0.8, 0.7, 0.6]])
    ranks, p = average_ranks(scores, "abcd")
    assert ranks.tolist() == [(1 + 1.5 + 3 + 1) / 4, (2 + 1.5 + 1 + 2) / 4, (3 + 3 + 2 + 3) / 4]
    assert p == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue)
    equal, p = average_ranks(np.ones((3, 4)), "abc")
    assert (equal.tolist(), p) == ([2.5] * 4, 1)


def test_the_cells_of_a_data_set_count_once():
    """Three cells of a, one of b, one of c: the ranks of a are averaged before those of the data sets."""
    scores = np.array([[0.9, 0.8, 0.7], [0.9, 0.7, 0.8], [0.7, 0.9, 0.8], [0.1, 0.2, 0.3], [0.3, 0.1, 0.2]])
    ranks, p = average_ranks(scores, "aaabc")
    of_a = np.array([(1 + 1 + 3) / 3, (2 + 3 + 1) / 3, (3 + 2 + 2) / 3])
    blocks = np.stack([of_a, [3, 2, 1], [1, 3, 2]])
    assert ranks == pytest.approx(blocks.mean(axis=0))
    assert p == pytest.approx(stats.friedmanchisquare(*blocks.T).pvalue)
    assert average_ranks(scores, "abaab")[0].sum() == pytest.approx(6)
    assert np.isnan(average_ranks(scores, "aabbb")[1])  # two data sets


def test_equal_methods_are_seldom_told_apart():
    """Nemenyi's test finds any difference among five equal methods on 20 data sets in about 5 % of the cases."""
    rng, critical = np.random.default_rng(0), critical_difference(5, 20)
    found = sum(np.ptp(average_ranks(rng.random((20, 5)), range(20))[0]) > critical for _ in range(500))
    assert stats.binomtest(found, 500, 0.05, alternative="greater").pvalue > 0.001
    assert found


def test_cells_that_repeat_a_data_set_prove_nothing_new():
    """Ten data sets in four cells each, which rank five equal methods alike: no more false findings than in ten."""
    rng, data, wrong = np.random.default_rng(1), np.repeat(np.arange(10), 4), 0
    for _ in range(200):
        averages, _ = average_ranks(np.repeat(rng.random((10, 5)), 4, axis=0), data.tolist())
        wrong += np.ptp(averages) > critical_difference(5, len(set(data.tolist())))
    assert stats.binomtest(wrong, 200, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("shape", [(2, 5), (5, 2)])
def test_few_data_sets_or_methods_have_no_ranks(shape):
    with pytest.raises(ConfigError, match="at least 3 cells and 3 methods, there are"):
        average_ranks(np.zeros(shape), range(shape[0]))


CELLS = [
    {"data": {"name": "synthetic"}},
    {"data": {"name": "synthetic"}, "model": "mlp"},
    {"data": {"name": "har"}},
]
METHODS = [{"name": "local"}, {"name": "fedavg"}, {"name": "pfedme"}]
SCORES = {
    "local": (0.9, 0.9, 0.2, 0.2, 0.2),
    "fedavg": (0.8, 0.7, 0.5, 0.5, 0.5),
    "pfedme": (0.7, 0.6, 0.4, 0.4, 0.4),
}
MODELS = {"local": "local", "fedavg": "global", "pfedme": "personal"}


def measured(folder, cells, skip=(), **more):
    store, exp = Store(folder), experiment(METHODS, seeds=1, cells=cells, **more)
    for i, cell in enumerate(exp.cells):
        for name, scores in SCORES.items():
            if (i, name) not in skip:
                finished(store, exp, cell.id, name, 0, {20: {MODELS[name]: (scores[i],) * 3 + (NAN,)}})
    return Results(store, exp)


def test_the_methods_of_all_cells_are_ranked(tmp_path):
    ranks = ranks_of(measured(tmp_path / "a", CELLS))
    assert ranks.names == (("fedavg", "global"), ("local", "local"), ("pfedme", "personal"))
    assert ranks.averages == pytest.approx((1.5, 2, 2.5))
    assert (ranks.cells, ranks.data) == (3, 2)
    assert ranks.critical == critical_difference(3, 2)
    assert np.isnan(ranks.p)
    partition = {"data": {"name": "mnist", "partition": "pflego-high"}}
    partitions = [{"data": {"name": "mnist"}}, partition, *CELLS]
    assert ranks_of(measured(tmp_path / "p", partitions)).data == 3
    tables = [{"data": {"name": "table", "path": path}} for path in ("a.csv", "b.csv", "a.csv")]
    assert ranks_of(measured(tmp_path / "t", tables)).data == 2
    assert ranks_of(measured(tmp_path / "b", CELLS, skip=[(1, "pfedme")])) is None
    assert ranks_of(measured(tmp_path / "c", CELLS[:2])) is None
    tuned = [CELLS[0], {**CELLS[1], "tune": True, "splits": ["train", "validation", "test"]}, CELLS[2]]
    assert ranks_of(measured(tmp_path / "e", tuned)) is None
    assert (
        ranks_of(
            measured(tmp_path / "d", [{**cell, "rounds": 20 + i} for i, cell in enumerate(CELLS)], across="rounds")
        )
        is None
    )


def test_a_method_is_ranked_by_its_first_model(tmp_path):
    """Ditto's global model is recorded, too, and would be the best of all."""
    methods = [{"name": "local"}, {"name": "fedavg"}, {"name": "ditto"}]
    store, exp = Store(tmp_path), experiment(methods, seeds=1, cells=CELLS)
    scores = {"local": {"local": 0.5}, "fedavg": {"global": 0.6}, "ditto": {"personal": 0.4, "global": 0.9}}
    for cell in exp.cells:
        for name, models in scores.items():
            finished(store, exp, cell.id, name, 0, {20: {model: (s,) * 3 + (NAN,) for model, s in models.items()}})
    ranks = ranks_of(Results(store, exp))
    assert ranks.names == (("fedavg", "global"), ("local", "local"), ("ditto", "personal"))


def test_the_lowest_error_has_the_first_rank(tmp_path):
    """Three data sets with a regression each: local training has the lowest error in two of them."""
    cells = [{"data": {"name": name}} for name in ("school", "vehicle", "landmine")]
    store, exp = Store(tmp_path), experiment(METHODS, seeds=2, cells=cells)
    for i, cell in enumerate(exp.cells):
        for name, errors in {"local": (1, 1, 3), "fedavg": (3, 3, 2), "pfedme": (2, 2, 1)}.items():
            for seed in (0, 1):
                values = (errors[i] + seed / 10,) * 3 + (NAN,)
                finished(store, exp, cell.id, name, seed, {20: {MODELS[name]: values}}, task="regression")
    ranks = ranks_of(Results(store, exp))
    assert ranks.names == (("local", "local"), ("pfedme", "personal"), ("fedavg", "global"))
    assert ranks.averages == pytest.approx((5 / 3, 5 / 3, 8 / 3))
    assert ranks.p == pytest.approx(stats.friedmanchisquare((1, 1, 3), (3, 3, 2), (2, 2, 1)).pvalue)
