from dataclasses import replace

import pytest

from idiolect.report.html.columns import COMPUTED, COUNTED, MISSING, bytes_texts, columns_of
from idiolect.report.html.names import isolated
from idiolect.report.html.of_results import whole_of
from idiolect.report.html.parts import Traffic
from idiolect.report.html.payload import payload_of
from idiolect.report.html.target import Target
from idiolect.study.analyse.pairs import Clients, Pair
from idiolect.study.analyse.results import Results
from idiolect.study.store.recorded import traffic_key
from idiolect.study.store.store import Store
from idiolect.study.store.summary import over_seeds
from tests.report.html.made import compared, part_of
from tests.report.stores import experiment, finished

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
    """One client is better, two are worse, three neither; a seventh without a score does not count."""
    part = whole_of(compared(tmp_path), "").parts[0]
    clients = Clients(better=1, worse=2, unclear=3, hurt=("south", "west"), told=(1, -1, 0, -1, 0, 0, None))
    nobody = Clients(better=0, worse=0, unclear=0, hurt=(), told=(None,))
    pairs = {
        ("fedavg", "global"): Pair("fedavg", "global", None, 1.0, clients),
        ("ditto", "personal"): Pair("ditto", "personal", None, 1.0, nobody),
    }
    (column,) = [column for column in columns_of(part, pairs, None) if column.title == "hurt beyond noise"]
    shown = {(line.method, line.model): column.of(line) for line in part.lines}
    assert shown["fedavg", "global"] == ("2 of 6", 1 / 3)
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


def test_further_metrics_and_the_shared_model_have_columns_where_they_are_known(toy, by_class):
    """In percent and in units; a line without a value has a dash and nothing to be sorted by."""

    def shown(results):
        part = whole_of(results, "").parts[0]
        found = {column.title: column for column in columns_of(part, part.pairs, None)}
        return found, {title: [column.of(line) for line in part.lines] for title, column in found.items()}

    columns, cells = shown(by_class)
    assert cells["macro-F1, %"] == [("53.33 ± 0.00", pytest.approx(0.5 + 1 / 30))]
    assert "Higher is better." in columns["macro-F1, %"].help
    assert [columns[title].numeric for title in ("published", "difference", "verdict", "macro-F1, %")] == [
        True,
        True,
        False,
        True,
    ]
    assert cells["published"] == [("macro-F1 54.00 ± 0.50", 54.0)]
    columns, cells = shown(toy)
    assert "macro-F1, %" not in columns
    assert cells["hurt vs FedAvg"] == [("0 %", 0), ("33 %", pytest.approx(1 / 3)), *[MISSING] * 3]
    assert cells["hurt vs Local"] == [("67 %", pytest.approx(2 / 3)), ("0 %", 0), *[MISSING] * 3]
    assert cells["verdict"] == [("close", "close"), *[("", None)] * 4]
    assert [number for _, number in cells["published"]] == [70.0, *[None] * 4]


def test_an_error_is_shown_in_its_units(tmp_path):
    store, exp = Store(tmp_path), experiment([{"name": "local"}, {"name": "ditto"}], seeds=1)
    finished(store, exp, "cell0", "local", 0, {20: {"local": [1.0, 2.0, 3.0]}}, counts=[9] * 3, task="regression")
    finished(store, exp, "cell0", "ditto", 0, {20: {"personal": [2.0, 1.0, 4.0]}}, counts=[9] * 3, task="regression")
    part = whole_of(Results(store, exp), "").parts[0]
    columns = {column.title: column for column in columns_of(part, part.pairs, None)}
    lines = {line.model: line for line in part.lines}
    assert columns["mse"].of(lines["local"]) == ("2.000", 2.0)
    assert columns["mse"].help.endswith("Lower is better.")
    assert columns["worst 10 %"].of(lines["personal"]) == ("4.000", 4.0)
    assert "is higher than" in columns["hurt vs Local"].help
    assert columns["hurt vs Local"].of(lines["personal"])[1] == pytest.approx(2 / 3)


LOCAL, SHARED, DITTO = ("local", "local"), ("fedavg", "global"), ("ditto", "personal")
SCORES = {LOCAL: {0: (2.0,) * 3}, SHARED: {0: (3.0,) * 3}, DITTO: {0: (1.0,) * 3}}
NAN = float("nan")


def found(part, target=None):
    return {column.title: column for column in columns_of(part, {}, target)}


def test_a_table_has_the_columns_of_what_was_run_in_their_order():
    start = ["method", "model", "mse", "client mean", "worst 10 %"]
    hurt = ["hurt vs Local", "hurt beyond noise"]
    part = part_of(SCORES, metric="mse")
    assert list(found(part)) == [*start, *hurt, "seconds"]
    assert list(found(part_of({DITTO: SCORES[DITTO]}, metric="mse"))) == [*start, "seconds"]
    shared = replace(part.lines[2], hurt_global=over_seeds([1 / 3]), global_of=("FedAvg",))
    assert list(found(replace(part, lines=(*part.lines[:2], shared)))) == [*start, *hurt, "hurt vs FedAvg", "seconds"]


def test_each_column_has_its_own_number():
    values = {
        name: over_seeds([number]) for name, number in zip(("mean", "worst10", "worst"), (5, 6, 7), strict=True)
    }
    line = replace(part_of(SCORES, metric="mse").lines[2], **values)
    columns = found(part_of(SCORES, metric="mse"))
    shown = {title: columns[title].of(line)[1] for title in ("method", "model", "mse", "client mean", "worst 10 %")}
    assert shown == {"method": "ditto", "model": "personal", "mse": 1, "client mean": 5, "worst 10 %": 6}
    assert all("half of the 95 % interval" in columns[title].help for title in ("mse", "client mean", "worst 10 %"))
    assert columns["mse"].help.startswith("Test mse over all test samples of all clients: mean ±")


def test_a_line_without_a_score_says_why():
    """Every other column has a dash, and a share that is not known has one too."""
    part = part_of({DITTO: {}, SHARED: {0: (3.0,) * 3}, LOCAL: {0: (2.0,) * 3}}, metric="mse")
    none = replace(part.lines[0], hurt_local=over_seeds([NAN]), hurt_global=over_seeds([NAN]), global_of=("FedAvg",))
    columns = found(replace(part, lines=(none, *part.lines[1:])))
    assert columns["mse"].of(none) == ("no score", None)
    assert columns["mse"].of(replace(none, failed=1)) == ("diverged", None)
    for title in ("client mean", "worst 10 %", "hurt vs Local", "hurt vs FedAvg", "seconds"):
        assert columns[title].of(none) == MISSING


@pytest.mark.parametrize(("metric", "worse"), [("accuracy", "lower"), ("mse", "higher")])
def test_the_clients_that_the_shared_model_serves_better_are_those_with_a_worse_score(metric, worse):
    part = part_of({DITTO: {0: (0.5,) * 3}}, metric=metric)
    line = replace(part.lines[0], hurt_global=over_seeds([1 / 3]), global_of=("own global",))
    column = found(replace(part, lines=(line,)))["hurt vs own global"]
    assert column.of(line) == ("33 %", pytest.approx(1 / 3))
    assert column.help == (
        f"The share of clients whose score is {worse} than with the plain shared model: FedAvg's shared model where "
        "it was run, else the method's own."
    )


def test_a_further_metric_has_a_column_if_one_line_has_a_value():
    """An infinite one is none."""
    part = part_of(SCORES, metric="mse")
    further = {"rmse": over_seeds([4.0]), "mae": over_seeds([NAN]), "r2": over_seeds([float("-inf")])}
    one = replace(part.lines[0], metrics={**part.lines[0].metrics, **further})
    other = replace(part.lines[1], metrics={"rmse": over_seeds([NAN])})
    columns = found(replace(part, lines=(one, other, part.lines[2])))
    assert [columns["RMSE"].of(line) for line in (one, other, part.lines[2])] == [("4.000", 4.0), MISSING, MISSING]
    assert columns["RMSE"].help == (
        "Test RMSE over all test samples, mean ± half of the 95 % interval over seeds (Student's t). Lower is better."
    )
    assert not {"MAE", "R2", "mae", "r2"} & {*columns}


def test_a_target_has_the_last_column_and_a_time_is_not_a_score():
    part = part_of(SCORES, metric="mse", seconds={"ditto": (3, 5), "fedavg": (2,)})
    target = Target(3.0, "FedAvg, global", {DITTO: 7, SHARED: None}, "3.000")
    columns = found(part, target)
    assert list(columns)[-2:] == ["seconds", "rounds to target"]
    assert columns["rounds to target"].numeric
    assert "reaches 3.000, the score of FedAvg, global at its end" in columns["rounds to target"].help
    assert [columns["rounds to target"].of(line) for line in part.lines] == [MISSING, MISSING, ("7", 7)]
    assert [columns["seconds"].of(line) for line in part.lines] == [MISSING, ("2.00", 2), ("4.00", 4)]


def test_received_and_sent_bytes_stand_in_this_order():
    columns = found(part_of(SCORES, metric="mse", traffic={"ditto": Traffic(8, 4)}))
    assert list(columns)[-3:] == ["bytes down", "bytes up", "seconds"]
    assert columns["bytes down"].help == f"What one client receives in a round in which it takes part: {COMPUTED}."
