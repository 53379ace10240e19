from idiolect.report.html.columns import columns_of
from idiolect.report.html.of_results import whole_of
from idiolect.study.recorded import traffic_key
from tests.report.html.made import compared


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
