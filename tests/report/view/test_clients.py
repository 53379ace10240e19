import numpy as np

from idiolect.report.view.clients import clients_json, skew
from idiolect.report.view.from_store import view_of
from idiolect.report.view.parts import Census
from idiolect.study.recorded import clients_key
from tests.report.html.made import compared


def test_skew_is_the_total_variation_distance():
    census = Census(("a", "b", "c"), (4, 4, 0), (1, 1, 1), ("x", "y"), ((4, 0), (0, 4), (0, 0)))
    assert skew(census) == [0.5, 0.5, None]
    assert skew(Census(("a",), (1,), (1,))) == [None]


def test_labels_are_those_of_the_clients_by_name(tmp_path):
    results = compared(tmp_path)
    facts = {"names": ["east", "extra", "north", "south"], "train": [3, 9, 1, 2], "test": [30, 90, 10, 20]}
    facts |= {"classes": ["x", "y"], "counts": [[3, 0], [9, 0], [1, 0], [0, 2]]}
    results.store.set_fact(clients_key("d", None), facts)
    part = view_of(results, "").parts[0]
    keys = {(line.method, line.model): f"m{i}" for i, line in enumerate(part.lines)}
    found = clients_json(part, keys)
    assert (found["names"], found["train"], found["test"]) == (["north", "south", "east"], [1, 2, 3], [10, 20, 30])
    assert found["labels"] == {"names": ["x", "y"], "counts": [[1, 0], [0, 2], [3, 0]]}
    assert np.allclose(found["skew"], [1 / 3, 2 / 3, 1 / 3], atol=1e-4)


def test_one_client_and_a_client_without_test_samples(tmp_path, toy):
    one = view_of(compared(tmp_path, names=["only"]), "").parts[0]
    assert clients_json(one, {("local", "local"): "m0"})["scores"] == {"m0": [0.5]}
    part = view_of(toy, "").parts[0]
    assert np.isnan(clients_json(part, {("local", "local"): "m1"})["scores"]["m1"][3])
