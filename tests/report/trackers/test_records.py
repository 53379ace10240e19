from idiolect.report.trackers.records import flat, measured_of, records
from idiolect.study.store import Store


def test_settings_are_named_with_dots_and_what_is_not_set_is_left_out():
    assert flat({"a": {"b": 1, "c": None}, "d": [1, 2], "e": ""}) == {"a.b": "1", "d": "[1, 2]", "e": ""}


def test_a_run_s_settings_and_tags_and_no_path_of_this_machine(folder):
    with Store(folder, create=False) as store:
        first, second = records(store)
    assert first.params == {
        "rounds": "20",
        "data.name": "table",
        "data.path": "own.csv",
        "data.test": "0.25",
        "method.rate": "0.1",
        "seed": "0",
    }
    assert first.tags["idiolect.cell"] == "cell0"
    assert first.tags["idiolect.method"] == "fedavg"
    assert first.key != second.key
    assert "/home" not in str(first.params) + str(first.tags)


def test_every_finite_number_by_round(folder):
    with Store(folder, create=False) as store:
        found = dict(measured_of(store, "cell0/fedavg/seed0", -1))
        later = dict(measured_of(store, "cell0/fedavg/seed0", 0))
    assert [*found] == [0, 20]
    assert [*later] == [20]
    last = found[20]
    assert round(last["test/global/accuracy"], 4) == 0.725
    assert {name.split("/")[0] for name in last} == {"train", "test", "method"}
    assert last["method/gap"] == 0.5
    assert "method/gap" not in found[0]
    assert "test/global/macro-f1" not in last
    assert {"test/global/accuracy-mean", "test/global/accuracy-worst10", "test/global/loss"} <= {*last}
