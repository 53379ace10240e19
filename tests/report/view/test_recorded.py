import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from idiolect import graphs
from idiolect.algorithms.registry import ALGORITHMS
from idiolect.deploy.hub.journal import Participation
from idiolect.report.view import recorded
from idiolect.report.view.from_store import part_of
from idiolect.report.view.parts import Traffic
from idiolect.report.view.recorded import (
    census_of,
    distances_of,
    method_names,
    not_chosen,
    recorded_graphs,
    recorded_predicted,
    recorded_traffic,
)
from idiolect.study.store.predicted import predicted_key
from idiolect.study.store.recorded import graph_key, graph_of, related, traffic_key
from tests.report.html.made import compared, data_of
from tests.report.stores import experiment


def named(*methods):
    return method_names(experiment(methods).cells)


def test_a_method_has_its_title_or_the_users_label():
    assert named({"name": "fedavg-ft"}, {"name": "pfedme", "label": "mine"}, {"name": "lg-fedavg"}) == {
        "fedavg-ft": "FedAvg + fine-tuning",
        "mine": "mine",
        "lg-fedavg": "LG-FedAvg",
    }


def test_two_methods_never_have_one_name():
    names = named({"name": "fedavg"}, {"name": "fedprox", "label": "FedAvg"}, {"name": "local"})
    assert names == {"fedavg": "fedavg", "FedAvg": "FedAvg", "local": "Local"}


def test_every_method_has_a_title_of_its_own():
    titles = [cls.title for cls in ALGORITHMS.values()]
    assert len({title.lower() for title in titles}) == len(ALGORITHMS)
    assert all(title[0].isalpha() and title != title.lower() for title in titles)


def test_validation_data_choose(tuned, toy, cell):
    (tuning,) = tuned.experiment.cells
    assert not_chosen(tuned, tuning) == {"bad"}
    assert not_chosen(tuned, tuning.model_copy(update={"tune": False})) == frozenset()
    # pFedMe, whose runs have not begun, is among the others; where nothing could be chosen nobody is.
    assert not_chosen(toy, cell.model_copy(update={"tune": True})) == frozenset()


def test_old_runs_tell_sizes_alone(tmp_path):
    results = compared(tmp_path)
    cell = results.experiment.cells[0]
    census = census_of(results, cell)
    assert (census.names, census.train, census.test) == (("north", "south", "east"), (400,) * 3, (400,) * 3)
    assert census.counts == census.quantiles == ()
    assert recorded_traffic(results, cell) == {}
    assert recorded_graphs(results, cell) == ()


def test_relations_are_shown_with_their_weights(tmp_path):
    results = compared(tmp_path)
    cell = results.experiment.cells[0]
    results.store.set_fact(traffic_key("cell0", "ditto"), [8, 4])
    results.store.set_fact(graph_key("cell0", "ditto"), related(np.array([[1.0, -0.5], [-0.5, 1.0]])))
    assert recorded_traffic(results, cell) == {"ditto": Traffic(8, 4)}
    graph = recorded_graphs(results, cell)[0]
    assert (graph["edges"], graph["eigenvalues"], graph["learned"]) == ([[0, 1, -0.5]], [0.5, 1.5], True)
    assert graph["title"] == "Ditto: relations that were learned"
    assert (graph["clients"], graph["spectrum"]) == (2, "Eigenvalues of the matrix of relations, in order.")


@pytest.mark.parametrize(
    ("graph", "clients", "spectrum"),
    [
        (graphs.ring(4), 4, "Eigenvalues of the graph's Laplacian; one is zero: it is connected."),
        (graphs.star(3), 3, "Eigenvalues of the graph's Laplacian, with the server as one more vertex; one is"),
        (graphs.from_edges([(0, 1, 1e-7)], 3), 3, "; 2 are zero: it has 2 connected parts."),
    ],
)
def test_the_spectrum_says_how_many_parts_a_graph_has(tmp_path, graph, clients, spectrum):
    results = compared(tmp_path)
    cell = results.experiment.cells[0]
    fact = graph_of(graph)
    for old in (False, True):  # older runs did not record how many clients there are
        results.store.set_fact(
            graph_key("cell0", "ditto"), {k: v for k, v in fact.items() if not old or k != "clients"}
        )
        (found,) = recorded_graphs(results, cell)
        assert found["clients"] == clients
        assert spectrum in found["spectrum"]
    results.store.set_fact(graph_key("cell0", "ditto"), {**fact, "eigenvalues": []})
    assert recorded_graphs(results, cell)[0]["spectrum"] == ""


def test_bytes_that_real_sites_have_sent_come_before_computed_ones(tmp_path):
    results = compared(tmp_path)
    cell = results.experiment.cells[0]
    for method in ("ditto", "fedavg"):
        results.store.set_fact(traffic_key("cell0", method), [8, 4])
    log = Participation(tmp_path)
    line = {"run": "cell0/ditto/seed0", "round": 0, "asked": 2, "replies": 1, "bytes_down": 20, "bytes_up": 5}
    log.write(line)
    log.write({**line, "run": "cell0/ditto/seed1", "replies": 3, "bytes_up": 23})  # the mean over both seeds
    log.write({**line, "run": "cell1/fedavg/seed0"})
    assert recorded_traffic(results, cell) == {"ditto": Traffic(10, 7, counted=True), "fedavg": Traffic(8, 4)}


def test_what_saved_models_predict_is_told_with_its_seed(tmp_path):
    results = compared(tmp_path)
    cell = results.experiment.cells[0]
    assert recorded_predicted(results, cell) == ({}, "")
    assert any("no client has a confusion matrix" in text for text in part_of(results, cell).missing)
    matrices = [[[3, 1], [0, 2]]] * 3
    results.store.set_fact(predicted_key("cell0", "ditto"), {"seed": 4, "models": {"personal": matrices}})
    part = part_of(results, cell)
    assert part.confusion == {("ditto", "personal"): matrices}
    assert part.residuals is None
    assert part.confusion_note == "Of the models that were saved, of seed 4."
    assert not any("confusion" in text for text in part.missing)


def saved(results, method, files):
    """Model files of the first seed: name -> (owners, weights)."""
    folder = results.store.models_folder(results.store.run(f"cell0/{method}/seed0"))
    folder.mkdir(parents=True)
    lines = []
    for name, (owners, *arrays) in files.items():
        save_file(
            {f"layer{i}": np.asarray(a, np.float32) for i, a in enumerate(arrays)}, folder / f"{name}.safetensors"
        )
        lines.append({"file": f"{name}.safetensors", **owners})
    (folder / "index.json").write_text(json.dumps({"files": lines}))
    return folder


def test_each_clients_model_to_the_shared_one(tmp_path, monkeypatch):
    results = compared(tmp_path)
    cell, shared = results.experiment.cells[0], ("fedavg", "global")
    assert distances_of(results, cell, shared) is None
    saved(results, "fedavg", {"global": ({"model": "global", "clients": "all"}, [0.0, 0.0], [1.0])})
    assert distances_of(results, cell, shared) is None
    folder = saved(results, "ditto", {
        "a": ({"model": "personal", "client": "north"}, [3.0, 0.0], [5.0]),
        "b": ({"model": "personal", "client": "south"}, [0.0, 0.0], [1.0]),
        "c": ({"model": "personal", "client": "east"}, [0.0, 0.0, 0.0], [1.0]),
    })  # fmt: skip
    assert distances_of(results, cell, shared) == {("ditto", "personal"): [5.0, 0.0, None]}
    assert data_of(results)["cells"][0]["clients"]["distances"] == {"m2": [5, 0, None]}
    (folder / "b.safetensors").write_bytes(b"damaged")
    assert distances_of(results, cell, shared) == {("ditto", "personal"): [5.0, None, None]}
    assert distances_of(results, cell, None) is None
    monkeypatch.setattr(recorded, "MOST_BYTES", 10)
    assert distances_of(results, cell, shared) is None
