import json

import pytest

from idiolect.report.html.payload import number, numbers, script_json
from idiolect.study.store.summary import over_seeds
from tests.report.html.made import HOSTILE, compared, data_of
from tests.report.html.stores import large


def test_five_digits_and_nothing_that_is_no_number():
    assert numbers([1 / 3, 123456.7, 2.0, float("nan"), float("inf"), None]) == [0.33333, 123460, 2, None, None, None]
    assert isinstance(number(2.0), int)
    assert number(1e-9 / 3) == 3.3333e-10


def test_json_cannot_end_a_script():
    value = ["</script><!--", "a & b", "\u2028\u2029", "\ud800", "\U0001f92f"]
    text = script_json(value)
    assert not {"<", ">", "&", "\u2028", "\u2029"} & {*text}
    assert json.loads(text) == value
    text.encode()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return data_of(compared(tmp_path_factory.mktemp("runs")))


def test_it_is_plain_json_of_the_agreed_form(data):
    read = json.loads(json.dumps(data, allow_nan=False))
    assert {*read} == {
        *("title", "source", "description", "protocol", "decision", "headline", "numbers", "chips", "missing"),
        *("command", "made_with", "seeds", "leaks", "chosen", "how_to_read", "cells"),
    }
    assert [len(read[key]) for key in ("chips", "cells")] == [3, 1]
    cell = read["cells"][0]
    assert {*cell} == {
        *("id", "title", "notes", "settings", "metric", "methods", "models", "table", "tables", "shares", "curves"),
        "clients",
        *("graph", "graphs", "sweep", "decision", "headline", "numbers", "chips", "about"),
    }
    assert [model["title"] for model in cell["models"]] == [
        "Local",
        "FedAvg, global",
        "Ditto, personal",
        "Ditto, global",
    ]
    columns, rows = cell["table"]["columns"], cell["table"]["rows"]
    assert all(len(row["cells"]) == len(columns) for row in rows)
    assert [row["model"] for row in rows if row["best"]] == ["m2"]
    assert all(column["help"] for column in columns)


def test_courses_and_clients_are_of_the_models(data):
    cell = data["cells"][0]
    course = cell["curves"]["quantities"][0]["series"][2]
    assert (course["model"], course["rounds"]) == ("m2", [0, 10, 20])
    assert course["mean"] == [0.1, 0.65, 0.65]
    assert course["low"][1] == pytest.approx(0.65 - over_seeds([0.655, 0.65, 0.645]).half_width, abs=1e-5)
    clients = cell["clients"]
    assert (clients["local"], clients["shared"]) == ("m0", "m1")
    assert clients["scores"]["m2"] == [0.55, 0.65, 0.75]
    assert clients["beyond"]["m1"] == [-1, -1, -1]
    assert clients["train"] == clients["test"] == [400, 400, 400]


def test_hostile_names_change_nothing_but_what_they_say(data, tmp_path):
    methods = [{"name": name, "label": HOSTILE[i]} for i, name in enumerate(("local", "fedavg", "ditto"))]
    hostile = data_of(compared(tmp_path, names=HOSTILE[3:], methods=methods))
    text = script_json(hostile)
    assert not {"<", ">", "&", "\0", "\u2028"} & {*text}
    assert json.loads(text) == json.loads(json.dumps(hostile))
    cell, plain = hostile["cells"][0], data["cells"][0]
    assert cell["clients"]["names"] == list(HOSTILE[3:])
    for part in ("scores", "half", "beyond", "local", "shared", "train"):
        assert cell["clients"][part] == plain["clients"][part]
    assert cell["curves"] == plain["curves"]
    for row, other in zip(cell["table"]["rows"], plain["table"]["rows"], strict=True):
        assert [one["text"] for one in row["cells"][1:]] == [one["text"] for one in other["cells"][1:]]
    assert len(hostile["headline"]) < 200


def test_a_hundred_clients_are_a_small_page(tmp_path):
    results = large(tmp_path, clients=100, seeds=2)
    data = data_of(results)
    assert len(json.dumps(data)) < 200_000
    assert len(data["cells"][0]["clients"]["names"]) == 100
    assert data["cells"][0]["graph"]["title"] == "FedU: graph of the clients"


def test_unfinished_and_diverged_runs_are_named(toy, said):
    assert (
        "\u2068cell0/fedavg/seed1\u2069 diverged: round 7, client south: the loss is NaN" in data_of(toy)["missing"]
    )
    missing = data_of(said)["missing"]
    assert "\u2068cell1/mine/seed0\u2069 is not finished: 0 rounds are done." in missing
    assert "\u2068cell1\u2069: no run of \u2068mine\u2069 has ended; curves show the rounds that are done." in missing
    cell = data_of(said)["cells"][1]
    assert cell["clients"] is None
    assert cell["curves"]["quantities"][0]["series"][0]["rounds"] == [0]


def test_clients_have_half_of_their_interval_over_the_seeds(data):
    half = over_seeds([0.555, 0.55, 0.545]).half_width
    assert data["cells"][0]["clients"]["half"]["m2"][0] == pytest.approx(half, rel=1e-4)


def test_bands_end_at_the_possible_values(tmp_path):
    results = compared(tmp_path, gain=0.395)  # east has 0.99 to 1.1 of the samples right, which only a test can have
    series = data_of(results)["cells"][0]["curves"]["quantities"][0]["series"][2]
    assert (series["mean"][-1], series["high"][-1]) == (0.995, 1)
    assert series["low"][-1] == pytest.approx(0.995 - over_seeds([1.0, 0.995, 0.99]).half_width, abs=1e-5)
