from idiolect.report.trackers.records import Sent, flat, measured_of, pictures, records
from idiolect.study.store.store import Store


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
        found = dict(measured_of(store, "cell0/fedavg/seed0", Sent()))
        sent = Sent().after(0, found[0])
        later = dict(measured_of(store, "cell0/fedavg/seed0", sent))
    assert [*found] == [0, 20]
    assert [*later] == [20]
    last = found[20]
    assert round(last["test/global/accuracy"], 4) == 0.725
    assert {name.split("/")[0] for name in last} == {"train", "test", "method"}
    assert last["method/gap"] == 0.5
    assert "method/gap" not in found[0]
    assert "test/global/macro-f1" not in last
    assert {"test/global/accuracy-mean", "test/global/accuracy-worst10", "test/global/loss"} <= {*last}


def test_what_is_measured_later_in_the_last_round_is_not_lost(folder):
    with Store(folder, create=False) as store:
        whole = dict(measured_of(store, "cell0/fedavg/seed0", Sent()))[20]
        rest = dict(measured_of(store, "cell0/fedavg/seed0", Sent(20, frozenset({"train", "method"}))))
        none = dict(measured_of(store, "cell0/fedavg/seed0", Sent().after(20, whole)))
    assert rest == {20: {name: value for name, value in whole.items() if name.startswith("test/")}}
    assert none == {}
    both = Sent().after(20, ["train/a/b"]).after(20, ["test/a/b"])
    assert both == Sent.of_text(both.to_text()) == Sent(20, frozenset({"train", "test"}))
    assert both.after(30, ["test/a/b"]) == Sent(30, frozenset({"test"}))
    assert Sent.of_text("-1") == Sent.of_text(Sent().to_text()) == Sent()


def test_a_sweeps_figure_is_one_of_the_pictures(folder, tmp_path):
    assert [path.name for path in pictures(folder)] == ["curves.png"]
    (tmp_path / "sweep.png").write_bytes(b"")
    assert [path.name for path in pictures(tmp_path)] == ["sweep.png"]
