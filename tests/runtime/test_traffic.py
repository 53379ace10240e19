from idiolect.runtime.traffic import bytes_a_round
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import experiment_of


def traffic(name, **settings):
    method = {"name": name, **settings}
    cell = {
        "id": "c",
        "data": {"name": "synthetic", "clients": 3, "max_size": 20},
        "model": "mlr",
        "methods": [method],
    }
    cell = experiment_of({"name": "toy", "cells": [cell]}, "toy").cells[0]
    bench = Workbench()
    data = bench.load(cell)
    return bytes_a_round(bench.simulation(cell, cell.methods[0], bench.problem(cell, data)))


def test_bytes_are_those_of_view_and_message():
    model = 4 * 10 * (60 + 1)  # float32: ten classes, sixty features and a bias
    assert traffic("fedavg") == (model, model)
    assert traffic("scaffold") == (2 * model, 2 * model)
    assert traffic("local") == (0, 0)


def test_neighbours_exchange_as_many_messages_as_they_have_edges():
    model = 4 * 10 * (60 + 1)
    assert traffic("dfedu") == (2 * model, 2 * model)  # three clients, each with each
    assert traffic("dfedu", graph="random(density=0.34, seed=1)") == (round(model * 4 / 3),) * 2  # two edges of three
    assert traffic("fedu") == (model, model)  # its server mixes
