from idiolect.report.view.from_store import view_of
from idiolect.report.view.leaders import leaders_of
from idiolect.study.results import Results
from idiolect.study.store import Store
from tests.report.html.made import compared
from tests.report.stores import experiment, finished


def stood(results):
    return leaders_of(view_of(results, "").parts[0])


def test_references_are_training_alone_and_the_shared_model(tmp_path):
    leading = stood(compared(tmp_path))
    assert (leading.best.method, leading.best.model) == ("ditto", "personal")
    assert round(leading.against_local.difference.mean, 6) == 5
    assert round(leading.against_shared.difference.mean, 6) == 15
    assert leading.ties == ()
    assert (leading.loser.losers, leading.loser.clients) == (0, 3)


def test_all_samples_in_one_place_are_no_federation(tmp_path):
    methods = ({"name": "local"}, {"name": "fedavg"}, {"name": "ditto"})
    part = view_of(compared(tmp_path, gain=-0.02, methods=methods), "").parts[0]
    leading = leaders_of(part)
    assert (leading.best.method, leading.federated.method) == ("local", "ditto")
    assert leading.loser.told in (0, -1)


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
