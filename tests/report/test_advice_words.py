from dataclasses import replace

import pytest

from idiolect.report.advice import advice_dict, answer, figure_of, page
from idiolect.report.advice_words import MOST, POLICIES, named, takes, uses_text
from idiolect.report.text import size
from idiolect.study.advice.advise import Advice
from idiolect.study.advice.blend import BLEND
from idiolect.study.advice.policies import BY_SIZE, CHOSEN, PORTFOLIO
from tests.tiers import second


def under(advice: Advice, method: str) -> Advice:
    """The advice with a policy as its answer: client 0 uses FedAvg in most divisions, the others local training."""
    kept = {client: {"local": int(i > 0) * 5 + 1, "fedavg": 3} for i, client in enumerate(advice.about.clients)}
    return replace(advice, decision=replace(advice.decision, outcome="personal", method=method), kept=kept)


@pytest.mark.parametrize("method", [BLEND, second(PORTFOLIO), second(BY_SIZE), CHOSEN])
def test_a_policy_that_is_the_answer_is_told(advice: Advice, method: str) -> None:
    changed = under(advice, method)
    headline = answer(changed).split("**")[1]
    assert headline.startswith(f"{POLICIES[method]}: ")
    assert len(headline.split()) <= 15
    text = page(changed)
    assert f"With `{method}`, compared with local training." in text
    assert "- Local: 2 (c1, c2)\n- FedAvg: 1 (c0)" in text
    assert f"With `{method}`, " + ("the method with the largest weight" if method == BLEND else "in most") in text
    line = advice.line("fedavg")
    assert line.rounds is not None
    assert line.sent is not None
    total = size(line.rounds * sum(line.sent) * 3)
    words = f"It takes about (median rounds, bytes of all clients together): FedAvg {line.rounds:g} rounds, {total}."
    how = takes(changed).removeprefix(words)
    assert ("`idiolect combine mine" in how) is (method in (BLEND, PORTFOLIO))
    assert ("--kind portfolio" in how) is (method == PORTFOLIO)
    assert ("--methods local,fedavg --out mine" in how) is (method in (BLEND, PORTFOLIO))


def test_a_blend_takes_all_methods_and_others_only_those_in_use(advice: Advice) -> None:
    kept = {client: {"local": 2, "fedavg": 0} for client in advice.about.clients}
    assert takes(replace(under(advice, PORTFOLIO), kept=kept)) == ""
    assert ": FedAvg" in takes(replace(under(advice, BLEND), kept=kept))


def test_the_portfolio_is_told_where_a_method_is_the_answer(advice: Advice) -> None:
    assert uses_text(under(advice, "fedavg")).startswith(f"With `{PORTFOLIO}`, in most divisions:\n\n- Local: 2")


def test_a_sentence_names_the_first_clients_and_counts_the_others() -> None:
    assert named(["a", "b"]) == "a, b"
    many = [str(i) for i in range(MOST + 2)]
    assert named(many) == ", ".join(many[:MOST]) + " and 2 more"


def test_the_page_names_what_clients_reach_alone(advice: Advice) -> None:
    assert "What clients reach by themselves is local training" in page(advice)
    own = replace(advice, decision=replace(advice.decision, outcome="shared", alone="own ridge"))
    headline = answer(own).split("**")[1]
    assert headline.endswith("lower test loss than own ridge regression.")
    assert len(headline.split()) <= 15
    text = page(own)
    assert "own ridge regression, whose validation loss is lower than local training's." in text
    assert "the loss is lower than with own ridge regression" in text
    figure = figure_of(own).axes[0]
    assert figure.get_xlabel() == "test mse: own ridge regression minus federated"
    cell = advice_dict(own)["cells"][0]
    place = [line.name for line in own.lines].index("own ridge")
    assert cell["clients"]["local"] == f"m{place}"
    alone = replace(own, decision=replace(own.decision, outcome="alone"))
    assert answer(alone).startswith("**Do not federate: own ridge regression is as good or better.**")
