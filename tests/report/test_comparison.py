import pytest

from idiolect.report.comparison import statuses, table_of
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell
from idiolect.study.store.store import Store
from tests.report.stores import NAN, PUBLISHED, TRAINED, experiment, finished, local, record, start


def rows(table):
    return [dict(zip(table.columns, row, strict=True)) for group in table.groups for row in group]


def test_the_whole_table(toy, cell):
    table = table_of(toy, cell)
    assert table.title == "cell0: test accuracy in %, last round, 2 seeds, ± half of the 95 % interval"
    assert table.columns == (
        *("method", "model", "accuracy", "published", "difference", "verdict"),
        *("client mean", "worst 10 %", "hurt vs Local", "hurt vs FedAvg", "seconds"),
    )
    # FedAvg: (10 * .7 + 10 * .7 + 20 * .75) / 40 = .725; worse than Local for north and east of three clients.
    assert table.groups == (
        (
            (
                "fedavg",
                "global",
                "72.50",
                "70.00 ± 0.50",
                "+2.50",
                "close",
                "71.67",
                "70.00",
                "67 %",
                "0 %",
                "1.25",
            ),
        ),
        (("local", "local", "80.00 ± 31.77", "—", "—", "", "78.33 ± 21.18", "60.00 ± 0.00", "0 %", "33 %", "3.00"),),
        (
            ("pfedme", "personal", "not run", "—", "—", "", "—", "—", "—", "—", "—"),
            ("", "global", "not run", "—", "—", "", "—", "—", "—", "—", ""),
            ("", "local", "not run", "—", "—", "", "—", "—", "—", "—", ""),
        ),
    )
    assert table.best == {(1, 0)}
    assert table.notes == (
        *(
            "± in a published value: what the paper gives, its standard deviation",
            "margin: 3 points",
            "fedavg: over 1 of 2 seeds (1 diverged)",
        ),
        "pfedme: 2 not run of 2 seeds",
    )


def test_statuses(toy, cell):
    assert statuses(toy, cell, cell.methods[0]) == {"done": 1, "diverged": 1}
    assert statuses(toy, cell, cell.methods[2]) == {"not run": 2}


def test_diverged_and_unfinished_in_words(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg", "published": PUBLISHED}, {"name": "local"}], seeds=1)
    store.finish(start(store, exp, "cell0", "fedavg", 0), "diverged", "NaN")
    record(store, start(store, exp, "cell0", "local", 0), 10, local(0)[20])
    first, second = rows(table_of(Results(store, exp), exp.cells[0]))
    assert (first["accuracy"], first["verdict"], first["difference"]) == ("diverged", "diverged", "—")
    assert second["accuracy"] == "unfinished"
    assert table_of(Results(store, exp), exp.cells[0]).best == frozenset()


def test_columns_without_published_values(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "local"}], seeds=1)
    finished(store, exp, "cell0", "local", 0, local(0))
    table = table_of(Results(store, exp), exp.cells[0])
    assert table.columns[3:] == ("client mean", "worst 10 %", "hurt vs Local", "hurt vs global", "seconds")
    assert table.title.endswith("last round, 1 seed")
    assert rows(table)[0]["hurt vs global"] == "—"
    assert table.notes == ()


def test_regression_lower_is_better(tmp_path):
    store = Store(tmp_path)
    published = ({"model": "global", "value": 0.7, "within": 0.01},)
    exp = experiment([{"name": "fedavg", "published": published}, {"name": "local"}], seeds=1)
    finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.7, 0.7, 0.75, NAN)}}, task="regression")
    finished(store, exp, "cell0", "local", 0, {20: {"local": (0.9, 0.6, 0.8, NAN)}}, task="regression")
    table = table_of(Results(store, exp), exp.cells[0])
    fedavg, alone = rows(table)
    assert "test mse (lower is better), last round" in table.title
    assert (fedavg["mse"], fedavg["difference"], fedavg["verdict"]) == ("0.7250", "+0.02500", "differs, unexplained")
    assert (fedavg["worst 10 %"], alone["worst 10 %"]) == ("0.7500", "0.9000")
    assert (fedavg["hurt vs Local"], alone["hurt vs FedAvg"]) == ("33 %", "67 %")
    assert table.best == {(0, 0)}


def test_the_column_says_whose_global_model_clients_are_compared_with(tmp_path):
    store = Store(tmp_path)
    own = {20: {"personal": (0.5, 0.5, 0.5, NAN), "global": (0.6, 0.4, 0.6, NAN), "local": (0.1, 0.1, 0.1, NAN)}}
    exp = experiment([{"name": "pfedme"}, {"name": "fedavg"}], seeds=2)
    finished(store, exp, "cell0", "pfedme", 0, own)
    table = table_of(Results(store, exp), exp.cells[0])
    assert rows(table)[0]["hurt vs own global"] == "67 %"
    finished(store, exp, "cell0", "fedavg", 0, {20: {"global": (0.4, 0.6, 0.6, NAN)}})
    table = table_of(Results(store, exp), exp.cells[0])
    assert rows(table)[0]["hurt vs FedAvg"] == "67 %"
    finished(store, exp, "cell0", "pfedme", 1, own)
    table = table_of(Results(store, exp), exp.cells[0])
    assert "hurt vs global" in table.columns
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
    table = table_of(Results(store, exp), exp.cells[0])
    assert title in table.title
    assert rows(table)[0]["accuracy"] == {"last": "50.00", "best-validation": "60.00", "best-test": "90.00"}[select]
    assert table.notes == (() if chosen is None else (chosen,))


def test_equal_scores_are_all_best(tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "fedavg"}, {"name": "local"}, {"name": "global"}], seeds=1)
    for title, model, score in (("fedavg", "global", 0.9), ("local", "local", 0.90001), ("global", "global", 0.89)):
        finished(store, exp, "cell0", title, 0, {20: {model: (score, score, score, NAN)}})
    assert table_of(Results(store, exp), exp.cells[0]).best == {(0, 0), (1, 0)}


def test_macro_f1_stands_beside_accuracy_and_its_published_value_is_marked(by_class):
    table = table_of(by_class, by_class.experiment.cells[0])
    assert table.columns[2:7] == ("accuracy", "macro-F1", "published", "difference", "verdict")
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
    table = table_of(Results(store, exp), exp.cells[0])
    assert [row["verdict"] for row in rows(table)][:2] == ["differs, explained", "other data"]
    assert table.notes == (
        *("loss before a published value: it is of that metric, and so are its difference and verdict",),
        *("margin 0.5 points: a global", "margin 2 points: b global", "margin 0.1 in loss: c global"),
        *("a global differs, explained: pfedme/deviations", "other data: a part of them"),
    )


def test_the_title_is_the_cells(toy, cell):
    assert isinstance(cell, Cell)
    named = cell.model_copy(update={"title": "MNIST, clean"})
    assert table_of(toy, named).title.startswith("MNIST, clean: test accuracy")
