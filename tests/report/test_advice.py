from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from idiolect.report.advice import answer, page, write_advice
from idiolect.study.advice.advise import Advice
from idiolect.study.advice.stored import stored_advice
from idiolect.study.analyse.intervals import Difference


def test_each_outcome_has_its_sentence(advice: Advice) -> None:
    begin = {
        "shared": "**Federate, one shared model: FedAvg.**",
        "alone": "**Do not federate:",
        "unclear": "**It cannot be told",
    }
    for outcome, text in begin.items():
        changed = replace(advice, decision=replace(advice.decision, outcome=outcome))
        assert answer(changed).startswith(text)
        assert "95 % interval" in answer(changed)


def test_more_rounds_are_asked_for_where_they_would_still_help(advice: Advice) -> None:
    decision = replace(advice.decision, outcome="unclear")
    for note, needed in (
        ("fedavg: validation loss was still falling in round 2", "rounds first"),
        ("", "not more rounds"),
    ):
        assert needed in answer(replace(advice, decision=decision, notes=(note,)))


def test_a_sign_is_that_of_the_loss_not_of_the_gain(advice: Advice) -> None:
    gain = replace(advice.decision.federated, mean=0.1, low=-0.1, high=0.3)
    decision = replace(advice.decision, outcome="unclear", federated=gain, loss=1.0)
    assert "-10.0 % (95 % interval -30.0 to +10.0)" in answer(replace(advice, decision=decision))


def test_a_gain_without_an_interval_has_the_reason(advice: Advice, tmp_path: Path) -> None:
    none = Difference(0.1, None, None, None, 3, "equal in every division")
    clients = tuple(replace(one, gap=none) for one in advice.decision.clients)
    decision = replace(advice.decision, federated=none, shared=none, beyond=none, loss=1.0, clients=clients)
    lines = tuple(replace(line, gap=none) if line.gap else line for line in advice.lines)
    for outcome, shown in (("unclear", "-10.0 %"), ("shared", "10.0 %")):
        changed = replace(advice, decision=replace(decision, outcome=outcome), lines=lines)
        assert f"{shown} (no interval: equal in every division)" in answer(changed)
    text = page(changed)
    assert "| +0.1 [—: equal in every division] |" in text
    assert "personal ones: +0.1 [—: equal in every division]." in text
    write_advice(changed, tmp_path)
    frame = pd.read_csv(tmp_path / "clients.csv")
    assert frame[["gap_low", "gap_high"]].isna().all(axis=None)
    assert stored_advice(tmp_path).decision.federated == none


def test_the_page_names_every_client_and_candidate(advice: Advice) -> None:
    assert "![every client's gap](advice.png)" in page(advice)
    assert page(advice, figure=False) == page(advice).replace("![every client's gap](advice.png)\n\n", "")
    text = page(replace(advice, decision=replace(advice.decision, outcome="shared")))
    for name in ("c0", "c1", "c2", "FedAvg", "Local", "portfolio", "own ridge", "pooled guess"):
        assert name in text
    line = advice.line("fedavg")
    assert line.rounds is not None
    assert f"It takes about {line.rounds:g} rounds" in text
    assert f"all of them {72 * line.rounds:.3g} B together" in text  # 3 clients, 12 bytes down, 12 up


def test_the_folder_has_the_page_the_numbers_and_the_figure(advice: Advice, tmp_path: Path) -> None:
    write_advice(advice, tmp_path / "new")
    found = {path.name for path in (tmp_path / "new").iterdir()}
    assert found == {"advice.md", "advice.csv", "advice.json", "advice.png", "advice.svg", "clients.csv"}
    lines, clients = (pd.read_csv(tmp_path / "new" / name) for name in ("advice.csv", "clients.csv"))
    np.testing.assert_allclose(lines["loss"], [line.loss for line in advice.lines])
    assert list(clients["client"]) == ["c0", "c1", "c2"]
    assert (clients["kept_local"] + clients["kept_fedavg"] == 2).all()
