from dataclasses import replace

import pytest

from idiolect.data import Audit
from idiolect.report.view.from_store import view_of
from idiolect.report.view.leaders import findings_of, is_severe, leaders_of, leaks_of
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.html.made import compared
from tests.report.stores import experiment, finished


def test_no_leak_is_no_severe_finding(toy):
    assert leaks_of(view_of(toy, "").parts) is None
    assert findings_of(["No leak found: none."]) == [{"text": "No leak found: none.", "severe": False}]


@pytest.mark.parametrize(
    ("line", "severe"),
    [
        ("0 of 40 test samples (0.0%) have an exact copy in the training data of the same client.", False),
        ("3 of 40 test samples (7.5%) have an exact copy in the training data of the same client.", True),
        ("1,003 of 4,000 test samples (25.1%) have an exact copy in a client's validation data.", True),
        ("Normalisation 'z': FITTED ON TEST SAMPLES TOO, so test data shape the features.", True),
        ("Normalisation 'z': fitted on training samples only.", False),
        ("Known leak: windows overlap.", True),
        ("Column 'y2' alone tells the label of every row: is it the label under another name? ...", True),
        ("9 samples, 8 of them distinct; 1 distinct samples are held by more than one client; 0 repeat ...", False),
    ],
)
def test_which_findings_are_leaks(line, severe):
    assert is_severe(line) is severe


def test_which_sentences_of_the_audit_are_leaks():
    counts = {"samples": 9, "distinct": 8, "shared": 1, "repeated": 0, "test": 4, "test_in_own_train": 2}
    counts |= {"test_in_other_train": 0, "test_in_validation": 1, "validation": 5, "validation_in_own_train": 0}
    counts |= {"validation_in_other_train": 0, "clients_with_leaked_tests": 1}
    leaky = Audit(**counts, normalisation="z", fitted_on="all", leaks=("on purpose",))
    lines = leaky.lines()
    assert [is_severe(line) for line in lines] == [False, True, False, True, False, False, True, True]
    clean = replace(leaky, test_in_own_train=0, test_in_validation=0, fitted_on="train", leaks=())
    assert [is_severe(line) for line in clean.lines()] == [False]


def stood(results):
    return leaders_of(view_of(results, "").parts[0])


def test_references_are_training_alone_and_the_shared_model(tmp_path):
    leading = stood(compared(tmp_path))
    assert (leading.best.method, leading.best.model) == ("ditto", "personal")
    assert round(leading.against_local.difference.mean, 6) == 5
    assert leading.ties == ()
    assert (leading.loser.losers, leading.loser.clients) == (0, 3)


def test_all_samples_in_one_place_are_no_federation(tmp_path):
    methods = ({"name": "local"}, {"name": "fedavg"}, {"name": "ditto"})
    part = view_of(compared(tmp_path, gain=-0.02, methods=methods), "").parts[0]
    leading = leaders_of(part)
    assert (leading.best.method, leading.federated.method) == ("local", "ditto")
    assert leading.loser.sign in (0, -1)


def test_settings_that_were_not_chosen_do_not_stand(tuned):
    leading = stood(tuned)
    assert (leading.best.method, leading.federated.method) == ("local", "good")
    assert leading.ties == ()


def test_no_score_no_leaders(timed, said):
    assert stood(timed) is None
    assert leaders_of(view_of(said, "").parts[1]) is None


def test_ties_are_those_that_the_best_is_not_told_apart_from(tmp_path):
    """Both seeds have the same gap of two test samples in 1,200: that is no lead."""
    methods = [{"name": "local"}, {"name": "fedavg"}, {"name": "fedprox"}, {"name": "ditto"}]
    store, exp = Store(tmp_path), experiment(methods, seeds=2)
    scores = {"local": ("local", 0.5), "fedavg": ("global", 0.7), "fedprox": ("global", 0.7 - 2 / 1200)}
    for seed in range(2):
        for name, (model, score) in (scores | {"ditto": ("personal", 0.2)}).items():
            finished(store, exp, "cell0", name, seed, {20: {model: (score + seed / 10,) * 4}}, counts=[300] * 4)
    leading = stood(Results(store, exp))
    assert leading.federated.method == "fedavg"
    assert leading.ties == (("fedprox", "global"),)
