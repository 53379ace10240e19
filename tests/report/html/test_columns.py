from dataclasses import replace

from idiolect.report.html.columns import COMPUTED, COUNTED, bytes_texts, columns_of
from idiolect.report.html.names import isolated
from idiolect.report.html.of_results import whole_of
from idiolect.report.html.parts import Traffic
from idiolect.report.html.payload import payload_of
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
