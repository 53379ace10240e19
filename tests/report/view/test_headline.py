"""The rule of the headline in made situations: it is short, and claims no more than the statistics show."""

import pytest

from idiolect.metrics.registry import METRICS
from idiolect.report.view.headline import FEWEST_ROWS, WORDS, Situation, headline

ALL = ("Local", "FedAvg", "Ditto")
WON = {"gap": 2.1, "beyond": True}
SAME = {"gap": 0.4, "beyond": False}


def situation(**given):
    usual = {"metric": METRICS["accuracy"], "model": "Ditto", "methods": ALL, "seeds": 5, "of": 40, "rows": 400}
    return Situation(**usual | given)


def error(name, **given):
    return situation(metric=METRICS[name], **given)


@pytest.mark.parametrize(
    ("given", "decision", "text"),
    [
        pytest.param(situation(**WON), "use", "Use Ditto: 2.1 points better than local training.", id="clear winner"),
        pytest.param(situation(**WON, losing=3), "use",
                     "Use Ditto: 2.1 points better than local training, but 3 of 40 lose.", id="some lose"),
        pytest.param(situation(**WON, shared=True, model="FedAvg"), "use",
                     "Use one model for all (FedAvg): 2.1 points better than local training.", id="one model"),
        pytest.param(situation(**WON, shared=True, losing=3), "use",
                     "Use one model for all: 2.1 points better than local training; 3 of 40 lose.",
                     id="one model, some lose"),
        pytest.param(situation(**WON, level=("pFedMe",)), "use", "Use Ditto or pFedMe: both beat local training.",
                     id="two are level"),
        pytest.param(situation(**WON, level=("pFedMe", "FedPer")), "use",
                     "Use Ditto: 2.1 points better than local training; 2 others are level.", id="three are level"),
        pytest.param(situation(gap=0.01, beyond=True), "use",
                     "Use Ditto: 0.01 points better than local training.", id="small but shown"),
        pytest.param(situation(gap=-2.44, beyond=True), "local",
                     "Do not federate with these settings: local training is 2.4 points better.", id="local wins"),
        pytest.param(situation(**SAME), "inconclusive",
                     "Inconclusive: Ditto is not better than local training beyond noise.", id="within noise"),
        pytest.param(situation(gap=-0.4), "inconclusive",
                     "Inconclusive: Ditto is not better than local training beyond noise.", id="worse within noise"),
        pytest.param(situation(**SAME, rows=40), "inconclusive",
                     "Inconclusive: 40 test rows per client are too few.", id="few rows"),
        pytest.param(situation(**SAME, rows=FEWEST_ROWS), "inconclusive",
                     "Inconclusive: Ditto is not better than local training beyond noise.", id="enough rows"),
        pytest.param(situation(**SAME, seeds=2), "inconclusive",
                     "Inconclusive: 2 seeds do not separate Ditto from local training.", id="few seeds"),
        pytest.param(situation(**WON, seeds=1), "inconclusive", "Inconclusive: one seed is too few.", id="one seed"),
        pytest.param(situation(**WON, tested=False), "inconclusive",
                     "Inconclusive: the difference from local training could not be tested.", id="not tested"),
        pytest.param(situation(seeds=5), "inconclusive",
                     "Inconclusive: the difference from local training could not be tested.", id="no difference"),
        pytest.param(situation(**WON, local=False), "none", "No recommendation: local training was not compared.",
                     id="no local training"),
        pytest.param(situation(methods=("Ditto",), local=False), "none", "Nothing to compare: only Ditto was run.",
                     id="one method"),
        pytest.param(situation(model="", methods=("Local", "Global")), "none",
                     "No recommendation: no federated method has a score.", id="no federation"),
        pytest.param(situation(methods=()), "none", "No result yet: no run has ended with a score.", id="no run"),
        pytest.param(error("rmse", gap=0.31, beyond=True), "use", "Use Ditto: 0.31 lower RMSE than local training.",
                     id="errors, winner"),
        pytest.param(error("log-loss", gap=-0.0123, beyond=True), "local",
                     "Do not federate with these settings: local training has 0.0123 lower log-loss.",
                     id="errors, local wins"),
        pytest.param(situation(**WON, rising=frozenset({"local"})), "inconclusive",
                     "Inconclusive: local training has not converged; train more rounds.", id="local not converged"),
        pytest.param(situation(gap=-2, beyond=True, rising=frozenset({"model"})), "inconclusive",
                     "Inconclusive: Ditto has not converged; train more rounds.", id="model not converged"),
        pytest.param(situation(**WON, rising=frozenset({"model"})), "use",
                     "Use Ditto: 2.1 points better than local training.", id="the winner still improves"),
        pytest.param(situation(local=False, published={"agrees": 3, "close": 2, "consistent, wide": 1, "differs": 2,
                                                        "not run": 1}),
                     "published",
                     "Of 9 published values: 3 agree, 3 close or consistent, 2 differ, 1 not comparable.",
                     id="published values"),
        pytest.param(situation(local=False, published={"agrees": 1, "differs": 1}), "published",
                     "Of 2 published values: 1 agrees, 1 differs.", id="one published value agrees"),
        pytest.param(situation(**WON, published={"agrees": 3}), "use",
                     "Use Ditto: 2.1 points better than local training.", id="published, with local training"),
        pytest.param(situation(**WON, losing=12, model="Ditto with a label of many words, personal"), "use",
                     "Use Ditto with …personal: 2.1 points better than local training, but 12 of 40 lose.",
                     id="a long name keeps its end"),
    ],
)  # fmt: skip
def test_each_situation_has_its_headline(given, decision, text):
    found, words = headline(given)
    assert (found, words.replace("\u2068", "").replace("\u2069", "")) == (decision, text)
    assert len(words.split()) <= WORDS == 15


@pytest.mark.parametrize("losing", [0, 7])
@pytest.mark.parametrize("level", [(), ("pFedMe",), ("a " * 9, "b")])
@pytest.mark.parametrize("rising", [frozenset(), frozenset({"model"}), frozenset({"local"})])
@pytest.mark.parametrize("seeds", [0, 1, 2, 5])
@pytest.mark.parametrize("gap", [-3.0, 0.0, 3.0, float("nan")])
@pytest.mark.parametrize("beyond", [True, False])
def test_use_is_said_only_of_a_gain_beyond_noise(losing, level, rising, seeds, gap, beyond):
    given = {"losing": losing, "level": level, "rising": rising, "seeds": seeds, "gap": gap, "beyond": beyond}
    decision, words = headline(situation(**given, model="two words " * 5))
    assert len(words.split()) <= WORDS
    assert (decision == "use") == words.startswith("Use ")
    if decision == "use":
        assert beyond
        assert gap > 0
        assert seeds > 1
        assert "local" not in rising
