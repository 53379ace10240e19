from dataclasses import replace

import pytest

from idiolect.report.html.columns import COMPUTED, COUNTED, MISSING, bytes_texts, columns_of
from idiolect.report.html.names import isolated
from idiolect.report.html.of_results import whole_of
from idiolect.report.html.parts import Traffic
from idiolect.report.html.payload import payload_of
from idiolect.study.pairs import Clients, Pair
from idiolect.study.recorded import traffic_key
from tests.report.html.made import compared

RECEIVES = (
    "Bytes down and up: the numbers that one client receives and sends in a round in which it takes part, without "
    "headers, encryption and evaluations"
)


def texts(results):
    part = whole_of(results, "").parts[0]
    columns = columns_of(part, part.pairs if part.local else {}, None)
    return {column.title: [column.of(line)[0] for line in part.lines] for column in columns}


def test_what_the_columns_show(tmp_path):
    results = compared(tmp_path)
    results.store.set_fact(traffic_key("cell0", "fedavg"), [31_400, 1_500_000])
    shown = texts(results)
    assert shown["accuracy, %"][0] == "60.00 ± 2.48"  # Student's t with 2 degrees of freedom: 4.303 / sqrt(3)
    assert shown["hurt vs Local"] == ["0 %", "100 %", "0 %", "100 %"]
    assert shown["hurt beyond noise"][:2] == ["—", "3 of 3"]
    assert shown["bytes down"] == ["—", "31.4 kB", "—", "—"]
    assert shown["bytes up"][1] == "1.5 MB"
    assert shown["seconds"] == ["3.00"] * 4
    assert "published" not in shown
    assert "macro-F1, %" not in shown


def test_published_values_and_what_did_not_run(toy):
    shown = texts(toy)
    assert (shown["published"][0], shown["difference"][0], shown["verdict"][0]) == ("70.00 ± 0.50", "+2.50", "close")
    assert shown["accuracy, %"][2:] == ["no score"] * 3
    assert "bytes down" not in shown


def test_the_page_says_how_its_bytes_are_known(toy):
    part = whole_of(toy, "").parts[0]
    computed = replace(part, title="One", traffic={"fedavg": Traffic(8, 4)})
    counted = replace(part, title="Two", traffic={"fedavg": Traffic(8, 4, counted=True)})
    both = replace(part, title="Three", traffic={"ditto": Traffic(1, 1), "fedavg": Traffic(8, 4, counted=True)})
    assert bytes_texts([part]) == []
    assert bytes_texts([computed, computed, part]) == [f"{RECEIVES}; {COMPUTED}."]
    assert bytes_texts([computed, counted]) == [
        f"{RECEIVES}; {COMPUTED} ({isolated('One')}).",
        f"{RECEIVES}; {COUNTED} ({isolated('Two')}).",
    ]
    assert bytes_texts([both]) == [
        f"{RECEIVES}; of {isolated('fedavg')} {COUNTED}; of {isolated('ditto')} {COMPUTED}."
    ]
    helps = {column.title: column.help for column in columns_of(counted, {}, None)}
    assert helps["bytes up"] == f"What one client sends in a round in which it takes part: {COUNTED}."
    reading = payload_of(replace(whole_of(toy, ""), parts=(counted,)))["how_to_read"]
    assert f"{RECEIVES}; {COUNTED}." in reading


def test_the_clients_hurt_are_counted_among_all_that_were_tested(tmp_path):
    """One client is worse, one better, one neither; a fourth without a score does not count."""
    part = whole_of(compared(tmp_path), "").parts[0]
    clients = Clients(better=1, worse=1, unclear=1, hurt=("south",), told=(1, -1, 0, None))
    nobody = Clients(better=0, worse=0, unclear=0, hurt=(), told=(None,))
    pairs = {
        ("fedavg", "global"): Pair("fedavg", "global", None, 1.0, clients),
        ("ditto", "personal"): Pair("ditto", "personal", None, 1.0, nobody),
    }
    (column,) = [column for column in columns_of(part, pairs, None) if column.title == "hurt beyond noise"]
    shown = {(line.method, line.model): column.of(line) for line in part.lines}
    assert shown["fedavg", "global"] == ("1 of 3", pytest.approx(1 / 3))
    assert shown["ditto", "personal"] == ("0 of 0", None)
    assert shown["local", "local"] == MISSING


def test_every_text_is_sorted_by_its_number(tmp_path):
    results = compared(tmp_path)
    results.store.set_fact(traffic_key("cell0", "fedavg"), [31_400, 1_500_000])
    part = whole_of(results, "").parts[0]
    columns = {column.title: column for column in columns_of(part, part.pairs, None)}
    numbers = {title: [column.of(line)[1] for line in part.lines] for title, column in columns.items()}
    assert numbers["accuracy, %"] == pytest.approx([0.6, 0.5, 0.65, 0.4])
    assert numbers["client mean"] == pytest.approx([0.6, 0.5, 0.65, 0.4])
    assert numbers["worst 10 %"] == pytest.approx([0.5, 0.4, 0.55, 0.3])
    assert numbers["hurt vs Local"] == [0, 1, 0, 1]
    assert numbers["bytes down"] == [None, 31_400, None, None]
    assert numbers["bytes up"] == [None, 1_500_000, None, None]
    assert numbers["seconds"] == [3] * 4
    assert [column.title for column in columns.values() if column.marked] == ["accuracy, %"]
    assert [column.title for column in columns.values() if not column.numeric] == ["method", "model"]
    assert columns["accuracy, %"].help.endswith("Higher is better.")
    assert "is lower than" in columns["hurt vs Local"].help
