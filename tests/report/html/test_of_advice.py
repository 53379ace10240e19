import json
from dataclasses import replace

from idiolect.report.advice import answer, table_rows
from idiolect.report.html.make import folders_page, folders_payload
from idiolect.report.html.of_advice import advice_payload
from idiolect.report.html.render import page_html
from idiolect.study.advice.stored import store_advice
from idiolect.study.analyse.intervals import Difference
from tests.report.html.made import compared, data_of


def test_the_page_tells_what_the_advice_does(advice, tmp_path):
    data = json.loads(json.dumps(advice_payload(advice), allow_nan=False))
    assert data["answer"][0] == answer(advice).replace("**", "")
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
    assert f"\u2068{worst}\u2069" in data["questions"][2][1]
    assert data["command"] == advice.command
    assert advice.command in data["questions"][4][1]


def test_the_page_of_its_folder_is_the_same(advice, tmp_path):
    store_advice(advice, tmp_path)
    assert json.dumps(folders_payload([tmp_path, tmp_path])) == json.dumps(advice_payload(advice))
    assert folders_page([tmp_path]).read_text(encoding="utf-8") == page_html(advice_payload(advice))


def test_it_has_the_parts_of_any_page(advice, tmp_path):
    data, other = advice_payload(advice), data_of(compared(tmp_path))
    assert {*data} == {*other}
    assert {*data["cells"][0]} == {*other["cells"][0]}
    assert {*data["cells"][0]["clients"]} == {*other["cells"][0]["clients"]}


def test_who_loses_is_told_with_its_uncertainty(advice):
    first, *rest = advice.decision.clients
    lost = replace(first, call="loses", gap=replace(first.gap, mean=-0.5, low=-0.7, high=-0.3))
    decision = replace(advice.decision, clients=(lost, *rest))
    told = advice_payload(replace(advice, decision=decision))["questions"][2][1]
    assert told.startswith(
        "\u2068c0\u2069 loses most, its loss is higher than with training alone by 0.5 (95 % interval +0.3 to +0.7, "
    )
    assert told.endswith("beyond noise.")


def test_a_client_without_an_interval_has_the_reason(advice):
    none = Difference(-0.5, None, None, None, 3, "equal in every division")
    clients = tuple(replace(one, gap=none) for one in advice.decision.clients)
    data = advice_payload(replace(advice, decision=replace(advice.decision, clients=clients)))
    rows = clients[0].rows
    assert f"training alone by 0.5 (no interval: equal in every division, {rows} test rows)" in data["answer"][2]
    assert "-0.5 [—: equal in every division]" in json.dumps(data, ensure_ascii=False)
