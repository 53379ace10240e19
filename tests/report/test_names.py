from idiolect.algorithms.registry import ALGORITHMS
from idiolect.report.names import method_names, not_chosen
from tests.report.stores import experiment


def named(*methods):
    return method_names(experiment(methods).cells)


def test_a_method_has_its_title_or_the_users_label():
    assert named({"name": "fedavg-ft"}, {"name": "pfedme", "label": "mine"}, {"name": "lg-fedavg"}) == {
        "fedavg-ft": "FedAvg + fine-tuning",
        "mine": "mine",
        "lg-fedavg": "LG-FedAvg",
    }


def test_two_methods_never_have_one_name():
    names = named({"name": "fedavg"}, {"name": "fedprox", "label": "FedAvg"}, {"name": "local"})
    assert names == {"fedavg": "fedavg", "FedAvg": "FedAvg", "local": "Local"}


def test_every_method_has_a_title_of_its_own():
    titles = [cls.title for cls in ALGORITHMS.values()]
    assert len({title.lower() for title in titles}) == len(ALGORITHMS)
    assert all(title[0].isalpha() and title != title.lower() for title in titles)


def test_validation_data_choose(tuned, toy, cell):
    (tuning,) = tuned.experiment.cells
    assert not_chosen(tuned, tuning) == {"bad"}
    assert not_chosen(tuned, tuning.model_copy(update={"tune": False})) == frozenset()
    # pFedMe, whose runs have not begun, is among the others; where nothing could be chosen nobody is.
    assert not_chosen(toy, cell.model_copy(update={"tune": True})) == frozenset()
