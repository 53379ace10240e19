from dataclasses import replace

import numpy as np
import pytest

from idiolect.report.text import isolated
from idiolect.report.view.columns import COMPUTED, COUNTED, MISSING, bytes_texts, columns_of, table_of, target_of
from idiolect.report.view.from_store import part_of as cell_part
from idiolect.report.view.from_store import view_of
from idiolect.report.view.parts import Course, Quantity, Traffic
from idiolect.study.analyse.pairs import Clients, Pair
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell
from idiolect.study.store.recorded import traffic_key
from idiolect.study.store.store import Store
from idiolect.study.store.summary import over_seeds
from tests.report.html.made import compared, page_of, part_of
from tests.report.stores import NAN, PUBLISHED, TRAINED, experiment, finished, local, record, start

RECEIVES = (
    "Bytes down and up: the numbers that one client receives and sends in a round in which it takes part, without "
    "headers, encryption and evaluations"
)


def found(part):
    """The columns that the page has, by their titles there."""
    columns = (column for column in columns_of(part) if column.page)
    return {f"{column.title}, {column.unit}" if column.unit else column.title: column for column in columns}


def texts(results):
    part = view_of(results, "").parts[0]
    return {title: [column.of(line).text for line in part.lines] for title, column in found(part).items()}


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
    assert shown["accuracy, %"][2:] == ["not run"] * 3
    assert "bytes down" not in shown


def test_the_page_says_how_its_bytes_are_known(toy):
    part = view_of(toy, "").parts[0]
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
    helps = {title: column.help for title, column in found(counted).items()}
    assert helps["bytes up"] == f"What one client sends in a round in which it takes part: {COUNTED}."
    reading = page_of(replace(view_of(toy, ""), parts=(counted,)))["how_to_read"]
    assert f"{RECEIVES}; {COUNTED}." in reading


def test_the_clients_hurt_are_counted_among_all_that_were_tested(tmp_path):
    """One client is better, two are worse, three neither; a seventh without a score does not count."""
    part = view_of(compared(tmp_path), "").parts[0]
    clients = Clients(better=1, worse=2, unclear=3, hurt=("south", "west"), told=(1, -1, 0, -1, 0, 0, None))
    nobody = Clients(better=0, worse=0, unclear=0, hurt=(), told=(None,))
    pairs = {
        ("fedavg", "global"): Pair("fedavg", "global", None, 1.0, clients),
        ("ditto", "personal"): Pair("ditto", "personal", None, 1.0, nobody),
    }
    (column,) = [found(replace(part, pairs=pairs))["hurt beyond noise"]]
    shown = {(line.method, line.model): column.of(line) for line in part.lines}
    assert shown["fedavg", "global"] == ("2 of 6", 1 / 3)
    assert shown["ditto", "personal"] == ("0 of 0", None)
    assert shown["local", "local"] == MISSING


def test_every_text_is_sorted_by_its_number(tmp_path):
    results = compared(tmp_path)
    results.store.set_fact(traffic_key("cell0", "fedavg"), [31_400, 1_500_000])
    part = view_of(results, "").parts[0]
    columns = found(part)
    numbers = {title: [column.of(line)[1] for line in part.lines] for title, column in columns.items()}
    assert numbers["accuracy, %"] == pytest.approx([0.6, 0.5, 0.65, 0.4])
    assert numbers["client mean"] == pytest.approx([0.6, 0.5, 0.65, 0.4])
    assert numbers["worst 10 %"] == pytest.approx([0.5, 0.4, 0.55, 0.3])
    assert numbers["hurt vs Local"] == [0, 1, 0, 1]
    assert numbers["bytes down"] == [None, 31_400, None, None]
    assert numbers["bytes up"] == [None, 1_500_000, None, None]
    assert numbers["seconds"] == [3] * 4
    assert [title for title, column in columns.items() if column.marked] == ["accuracy, %"]
    assert [title for title, column in columns.items() if not column.numeric] == ["method", "model"]
    assert columns["accuracy, %"].help.endswith("Higher is better.")
    assert "is lower than" in columns["hurt vs Local"].help


def test_further_metrics_and_the_shared_model_have_columns_where_they_are_known(toy, by_class):
    """In percent and in units; a line without a value has a dash and nothing to be sorted by."""

    def shown(results):
        part = view_of(results, "").parts[0]
        columns = found(part)
        return columns, {title: [column.of(line) for line in part.lines] for title, column in columns.items()}

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
    part = view_of(Results(store, exp), "").parts[0]
    columns = found(part)
    lines = {line.model: line for line in part.lines}
    assert columns["mse"].of(lines["local"]) == ("2.000", 2.0)
    assert columns["mse"].help.endswith("Lower is better.")
    assert columns["worst 10 %"].of(lines["personal"]) == ("4.000", 4.0)
    assert "is higher than" in columns["hurt vs Local"].help
    assert columns["hurt vs Local"].of(lines["personal"])[1] == pytest.approx(2 / 3)


LOCAL, SHARED, DITTO = ("local", "local"), ("fedavg", "global"), ("ditto", "personal")
SCORES = {LOCAL: {0: (2.0,) * 3}, SHARED: {0: (3.0,) * 3}, DITTO: {0: (1.0,) * 3}}


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
    rounds = np.array([0.0, 7.0])
    ends = {SHARED: (9.0, 3.0), DITTO: (9.0, 3.0), LOCAL: (9.0, 4.0)}
    courses = tuple(Course(key, rounds, np.array(mean), np.full(2, NAN)) for key, mean in ends.items())
    columns = found(replace(part, quantities=(Quantity("score", "test mse", False, courses),)))
    assert list(columns)[-2:] == ["seconds", "rounds to target"]
    assert columns["rounds to target"].numeric
    assert f"reaches 3.000, the score of {isolated('FedAvg, global')} at its end" in columns["rounds to target"].help
    assert [columns["rounds to target"].of(line) for line in part.lines] == [MISSING, ("7", 7), ("7", 7)]
    assert [columns["seconds"].of(line) for line in part.lines] == [MISSING, ("2.00", 2), ("4.00", 4)]


def test_received_and_sent_bytes_stand_in_this_order():
    columns = found(part_of(SCORES, metric="mse", traffic={"ditto": Traffic(8, 4)}))
    assert list(columns)[-3:] == ["bytes down", "bytes up", "seconds"]
    assert columns["bytes down"].help == f"What one client receives in a round in which it takes part: {COMPUTED}."


def test_the_round_in_which_a_mean_reaches_the_shared_models_end(tmp_path):
    part = view_of(compared(tmp_path), "").parts[0]
    target = target_of(part)
    assert round(target.value, 6) == 0.5
    assert target.rounds == {
        ("local", "local"): 10, ("fedavg", "global"): 10, ("ditto", "personal"): 10, ("ditto", "global"): None
    }  # fmt: skip
    assert "reaches 50.00 %, the score of \u2068FedAvg, global\u2069 at its end" in target.help
    assert [target.shown(line)[0] for line in part.lines] == ["10", "10", "10", "—"]
    assert target_of(replace(part, quantities=())) is None


def printed(results, cell=None):
    return table_of(cell_part(results, cell or results.experiment.cells[0]))


def titles(table):
    return tuple(column.title for column in table.heads)


def rows(table):
    return [dict(zip(titles(table), row, strict=True)) for row in table.printed()]


def best(table):
    return {row.key for row in table.rows if row.best}


def test_the_whole_table(toy, cell):
    table = printed(toy, cell)
    assert table.title == "cell0: test accuracy in %, last round, 2 seeds, ± half of the 95 % interval"
    assert titles(table) == (
        *("method", "model", "accuracy", "published", "difference", "verdict"),
        *("client mean", "worst 10 %", "hurt vs Local", "hurt vs FedAvg", "seconds"),
    )
    # FedAvg: (10 * .7 + 10 * .7 + 20 * .75) / 40 = .725; worse than Local for north and east of three clients.
    assert table.printed() == [
        ["fedavg", "global", "72.50", "70.00 ± 0.50", "+2.50", "close", "71.67", "70.00", "67 %", "0 %", "1.25"],
        ["local", "local", "80.00 ± 31.77", "—", "—", "", "78.33 ± 21.18", "60.00 ± 0.00", "0 %", "33 %", "3.00"],
        ["pfedme", "personal", "not run", "—", "—", "", "—", "—", "—", "—", "—"],
        ["", "global", "not run", "—", "—", "", "—", "—", "—", "—", ""],
        ["", "local", "not run", "—", "—", "", "—", "—", "—", "—", ""],
    ]
    assert best(table) == {("local", "local")}
    assert table.notes == (
        *(
            "± in a published value: what the paper gives, its standard deviation",
            "margin: 3 points",
            "fedavg: over 1 of 2 seeds (1 diverged)",
        ),
        "pfedme: 2 not run of 2 seeds",
    )


def test_diverged_and_unfinished_in_words(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg", "published": PUBLISHED}, {"name": "local"}], seeds=1)
    store.finish(start(store, exp, "cell0", "fedavg", 0), "diverged", "NaN")
    record(store, start(store, exp, "cell0", "local", 0), 10, local(0)[20])
    first, second = rows(printed(Results(store, exp)))
    assert (first["accuracy"], first["verdict"], first["difference"]) == ("diverged", "diverged", "—")
    assert second["accuracy"] == "unfinished"
    assert best(printed(Results(store, exp))) == set()


def test_columns_without_published_values(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "local"}], seeds=1)
    finished(store, exp, "cell0", "local", 0, local(0))
    table = printed(Results(store, exp))
    assert titles(table)[3:] == ("client mean", "worst 10 %", "hurt vs Local", "hurt vs global", "seconds")
    assert table.title.endswith("last round, 1 seed")
    assert rows(table)[0]["hurt vs global"] == "—"
    assert table.notes == ()


def test_regression_lower_is_better(tmp_path):
    store = Store(tmp_path)
    published = ({"model": "global", "value": 0.7, "within": 0.01},)
    exp = experiment([{"name": "fedavg", "published": published}, {"name": "local"}], seeds=1)
    finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.7, 0.7, 0.75, NAN)}}, task="regression")
    finished(store, exp, "cell0", "local", 0, {20: {"local": (0.9, 0.6, 0.8, NAN)}}, task="regression")
    table = printed(Results(store, exp))
    fedavg, alone = rows(table)
    assert "test mse (lower is better), last round" in table.title
    assert (fedavg["mse"], fedavg["difference"], fedavg["verdict"]) == ("0.7250", "+0.02500", "differs, unexplained")
    assert (fedavg["worst 10 %"], alone["worst 10 %"]) == ("0.7500", "0.9000")
    assert (fedavg["hurt vs Local"], alone["hurt vs FedAvg"]) == ("33 %", "67 %")
    assert best(table) == {("fedavg", "global")}


def test_the_column_says_whose_global_model_clients_are_compared_with(tmp_path):
    store = Store(tmp_path)
    own = {20: {"personal": (0.5, 0.5, 0.5, NAN), "global": (0.6, 0.4, 0.6, NAN), "local": (0.1, 0.1, 0.1, NAN)}}
    exp = experiment([{"name": "pfedme"}, {"name": "fedavg"}], seeds=2)
    finished(store, exp, "cell0", "pfedme", 0, own)
    table = printed(Results(store, exp))
    assert rows(table)[0]["hurt vs own global"] == "67 %"
    finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.4, 0.6, 0.6, NAN)}})
    table = printed(Results(store, exp))
    assert rows(table)[0]["hurt vs FedAvg"] == "67 %"
    finished(store, exp, "cell0", "pfedme", 1, own)
    table = printed(Results(store, exp))
    assert "hurt vs global" in titles(table)
    assert any(note.startswith("hurt vs global: FedAvg's model in the seeds") for note in table.notes)


@pytest.mark.parametrize(
    ("select", "protocol", "title", "chosen"),
    [
        ("last", "as-written", "last round", None),
        ("best-validation", "as-written", "round chosen on validation data", "fedavg global: round 10"),
        (
            "best-test",
            "as-published",
            "BEST ROUND ON TEST DATA (as published; optimistic)",
            "fedavg global: round 15",
        ),
    ],
)
def test_the_selection_is_named(tmp_path, select, protocol, title, chosen):
    store = Store(tmp_path)
    more = {"select": select, "splits": ["validation", "test"]}
    exp = experiment([{"name": "fedavg"}], seeds=1, cells=[more], protocol=protocol)
    run = start(store, exp, "cell0", "fedavg", 0)
    for round, (validation, test) in {10: (0.8, 0.6), 15: (0.7, 0.9), 20: (0.6, 0.5)}.items():
        record(store, run, round, {"global": (validation,) * 4}, splits=("validation",), counts=(1, 1, 1, 1))
        record(store, run, round, {"global": (test,) * 4}, counts=(1, 1, 1, 1))
    store.finish(run, "done")
    table = printed(Results(store, exp))
    assert title in table.title
    assert rows(table)[0]["accuracy"] == {"last": "50.00", "best-validation": "60.00", "best-test": "90.00"}[select]
    assert table.notes == (() if chosen is None else (chosen,))


def test_equal_scores_are_all_best(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}, {"name": "local"}, {"name": "global"}], seeds=1)
    for title, model, score in (("fedavg", "global", 0.9), ("local", "local", 0.90001), ("global", "global", 0.89)):
        finished(store, exp, "cell0", title, 0, {20: {model: (score, score, score, NAN)}})
    assert best(printed(Results(store, exp))) == {("fedavg", "global"), ("local", "local")}


def test_macro_f1_stands_beside_accuracy_and_its_published_value_is_marked(by_class):
    table = printed(by_class)
    assert titles(table)[2:7] == ("accuracy", "macro-F1", "published", "difference", "verdict")
    (row,) = rows(table)
    assert (row["accuracy"], row["macro-F1"]) == ("72.50 ± 0.00", "53.33 ± 0.00")
    assert (row["published"], row["difference"], row["verdict"]) == (
        *("macro-F1 54.00 ± 0.50", "-0.67 [-1.65, +0.31]"),
        "consistent, wide",
    )
    assert table.notes == (
        "macro-F1 before a published value: it is of that metric, and so are its difference and verdict",
        "± in a published value: what the paper gives, its standard deviation",
        "margin: 1 point",
    )


def test_margins_other_data_and_explanations_stand_under_the_table(tmp_path):
    store = Store(tmp_path)
    values = [
        {"model": "global", "value": 60.0, "within": 0.5, "explained": "pfedme/deviations"},
        {"model": "global", "value": 72.5, "within": 2.0, "other_data": "a part of them"},
        {"model": "global", "value": 0.3, "within": 0.1, "metric": "loss"},
    ]
    methods = [{"name": "fedavg", "label": name, "published": [v]} for name, v in zip("abc", values, strict=True)]
    exp = experiment(methods, seeds=1)
    for name in "abc":
        finished(store, exp, "cell0", name, 0, TRAINED)
    table = printed(Results(store, exp))
    assert [row["verdict"] for row in rows(table)][:2] == ["differs, explained", "other data"]
    assert table.notes == (
        *("loss before a published value: it is of that metric, and so are its difference and verdict",),
        *("margin 0.5 points: a global", "margin 2 points: b global", "margin 0.1 in loss: c global"),
        *("a global differs, explained: pfedme/deviations", "other data: a part of them"),
    )


def test_the_title_is_the_cells(toy, cell):
    assert isinstance(cell, Cell)
    named = cell.model_copy(update={"title": "MNIST, clean"})
    assert printed(toy, named).title.startswith("MNIST, clean: test accuracy")
