import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from idiolect.report.advice import advice_dict, answer, page, table_rows, write_advice
from idiolect.report.html.payload import payload_of
from idiolect.report.html.render import page_html
from idiolect.report.page import folders_dict, folders_page
from idiolect.report.text import bare
from idiolect.study.advice.advise import Advice
from idiolect.study.advice.stored import store_advice, stored_advice
from idiolect.study.analyse.intervals import Difference
from tests.report.html.made import compared, data_of


def test_each_outcome_has_its_sentence(advice: Advice) -> None:
    begin = {
        "shared": "**Use one model for all (FedAvg): ",
        "personal": "**Use FedAvg: ",
        "alone": "**Do not federate: local training is as good or better.**",
        "unclear": "**Inconclusive: collect more rows.**",
    }
    for outcome, text in begin.items():
        changed = replace(advice, decision=replace(advice.decision, outcome=outcome))
        assert answer(changed).startswith(text)
        assert "95 % interval" in answer(changed)
        assert len(answer(changed).split("**")[1].split()) <= 15


def test_more_rounds_are_asked_for_where_they_would_still_help(advice: Advice) -> None:
    decision = replace(advice.decision, outcome="unclear")
    for note, needed in (
        ("fedavg: validation loss was still falling in round 2", "train more rounds"),
        ("", "collect more rows"),
    ):
        assert needed in answer(replace(advice, decision=decision, notes=(note,)))


def test_a_sign_is_that_of_the_loss_not_of_the_gain(advice: Advice) -> None:
    gain = replace(advice.decision.gain, mean=0.1, low=-0.1, high=0.3)
    decision = replace(advice.decision, outcome="unclear", gain=gain, loss=1.0)
    assert "-10.0 % (95 % interval -30.0 to +10.0)" in answer(replace(advice, decision=decision))


def test_a_gain_without_an_interval_has_the_reason(advice: Advice, tmp_path: Path) -> None:
    none = Difference(0.1, None, None, None, 3, "equal in every division")
    clients = tuple(replace(one, gap=none) for one in advice.decision.clients)
    decision = replace(advice.decision, gain=none, beyond=none, loss=1.0, clients=clients)
    lines = tuple(replace(line, gap=none) if line.gap else line for line in advice.lines)
    for outcome, shown in (("unclear", "-10.0 %"), ("shared", "-10.0 %")):
        changed = replace(advice, decision=replace(decision, outcome=outcome), lines=lines)
        assert f"{shown} (no interval: equal in every division)" in answer(changed)
    text = page(changed)
    assert "| +0.1 [—: equal in every division] |" in text
    assert "personal one: +0.1 [—: equal in every division]." in text
    write_advice(changed, tmp_path)
    frame = pd.read_csv(tmp_path / "clients.csv")
    assert frame[["gap_low", "gap_high"]].isna().all(axis=None)
    assert stored_advice(tmp_path).decision.gain == none


def test_the_page_names_every_client_and_candidate(advice: Advice) -> None:
    assert "![every client's gap](advice.png)" in page(advice)
    assert page(advice, figure=False) == page(advice).replace("![every client's gap](advice.png)\n\n", "")
    text = page(replace(advice, decision=replace(advice.decision, outcome="shared")))
    for name in ("c0", "c1", "c2", "FedAvg", "Local", "portfolio", "own ridge", "pooled guess"):
        assert name in text
    line = advice.line("fedavg")
    assert line.rounds is not None
    assert f"It takes about {line.rounds:g} rounds" in text
    assert f"all of them together {72 * line.rounds:.3g} B." in text  # 3 clients, 12 bytes down, 12 up


def test_the_folder_has_the_page_the_numbers_and_the_figure(advice: Advice, tmp_path: Path) -> None:
    write_advice(advice, tmp_path / "new")
    found = {path.name for path in (tmp_path / "new").iterdir()}
    assert found == {"advice.md", "advice.csv", "advice.json", "advice.png", "advice.svg", "clients.csv"}
    lines, clients = (pd.read_csv(tmp_path / "new" / name) for name in ("advice.csv", "clients.csv"))
    np.testing.assert_allclose(lines["loss"], [line.loss for line in advice.lines])
    assert list(clients["client"]) == ["c0", "c1", "c2"]
    assert (clients["kept_local"] + clients["kept_fedavg"] == 2).all()


def page_data(advice):
    return payload_of(advice_dict(advice))


def test_the_page_tells_what_the_advice_does(advice, tmp_path):
    data = json.loads(json.dumps(page_data(advice), allow_nan=False))
    assert bare(f"**{data['headline']}** {data['numbers']}") == answer(advice)
    cell = data["cells"][0]
    assert [[one["text"] for one in row["cells"]] for row in cell["table"]["rows"]] == table_rows(advice)[1:]
    titles = [method["title"] for method in cell["methods"]]
    assert titles[-1].endswith(", as advised")
    assert len({*titles}) == len(titles)
    clients = cell["clients"]
    assert clients["names"] == ["c0", "c1", "c2"]
    assert len(clients["label_values"]) == 3
    assert clients["scores"][clients["local"]] == [0, 0, 0]
    gaps = [client.gap.mean for client in advice.decision.clients]
    worst = advice.decision.clients[gaps.index(min(gaps))].name
    assert f"\u2068{worst}\u2069" in data["chips"][1]["text"]
    assert data["command"] == advice.command


def test_the_page_of_its_folder_is_the_same(advice, tmp_path):
    store_advice(advice, tmp_path)
    assert json.dumps(folders_dict([tmp_path, tmp_path])) == json.dumps(advice_dict(advice))
    assert folders_page([tmp_path]).read_text(encoding="utf-8") == page_html(payload_of(advice_dict(advice)))


def test_it_has_the_parts_of_any_page(advice, tmp_path):
    data, other = page_data(advice), data_of(compared(tmp_path))
    assert {*data} == {*other}
    assert {*data["cells"][0]} == {*other["cells"][0]}
    assert {*data["cells"][0]["clients"]} == {*other["cells"][0]["clients"]}


def test_who_loses_is_told_with_its_uncertainty(advice):
    first, *rest = advice.decision.clients
    lost = replace(first, call="loses", gap=replace(first.gap, mean=-0.5, low=-0.7, high=-0.3))
    decision = replace(advice.decision, clients=(lost, *rest))
    chip = page_data(replace(advice, decision=decision))["chips"][1]
    assert chip["title"].startswith("1 of 3 clients lose, tested")
    assert chip["text"].startswith(
        f"Largest loss: \u2068c0\u2069, {advice.loss_name} higher than with local training by +0.5 [+0.3, +0.7], "
    )
    assert chip["text"].endswith("beyond noise.")


def test_a_client_without_an_interval_has_the_reason(advice):
    none = Difference(-0.5, None, None, None, 3, "equal in every division")
    clients = tuple(replace(one, gap=none) for one in advice.decision.clients)
    data = page_data(replace(advice, decision=replace(advice.decision, clients=clients)))
    assert "local training by +0.5 [—: equal in every division]" in data["chips"][1]["text"]
    assert "-0.5 [—: equal in every division]" in json.dumps(data, ensure_ascii=False)
