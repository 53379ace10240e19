"""Small stores written by hand: what a run would leave, without training anything."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from idiolect import graphs
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Experiment, experiment_of, run_id
from idiolect.study.store.recorded import graph_key, graph_of, related
from idiolect.study.store.store import RunRow, Store

NAN = float("nan")
CLIENTS = ("north", "south", "east", "west")
COUNTS = np.array([10, 10, 20, 0])  # west has no test samples
PROVENANCE = {
    "time": "2026-01-02T03:04:05+00:00",
    "python": "3.11.7",
    "machine": "x86_64",
    "device": "1 x cpu",
    "packages": {"idiolect": "0.1.0", "jax": "0.10.2"},
    "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
    "data": {},
    "notes": ["the toy data leak on purpose"],
    "clients": list(CLIENTS),
    "task": "classification",
}


def experiment(methods: Sequence[object], seeds: int = 2, cells: Sequence[Mapping[str, object]] = ({},), **more):
    base = {"data": {"name": "synthetic"}, "model": "mlr", "rounds": 20, "methods": list(methods)}
    whole = [{"id": f"cell{i}", **base, **cell} for i, cell in enumerate(cells)]
    return experiment_of({"name": "toy", "title": "A toy", "seeds": seeds, "cells": whole, **more}, "toy")


def start(store: Store, exp: Experiment, cell_id: str, title: str, seed: int, **provenance) -> str:
    cell = exp.cell(cell_id)
    method = next(m for m in cell.methods if m.title == title)
    run = run_id(cell_id, title, seed)
    facts = {**PROVENANCE, **provenance}
    store.start(RunRow(run, cell_id, title, method.name, seed, {}, "c", "d", facts, "running", 0, 0.0, 0.0, ""))
    return run


def scored(model, split, score, counts, task="classification", macro_f1=NAN) -> ClientScores:
    """One score a client, accuracy or mse; macro-F1 only over all clients."""
    pooled = float(np.average(score[counts > 0], weights=counts[counts > 0]))
    if task == "regression":
        return ClientScores(model, split, counts, 2 - score, {"mse": score}, {"mse": pooled})
    values = {"accuracy": score, "macro-f1": np.full(len(score), NAN)}
    return ClientScores(model, split, counts, 2 - score, values, {"accuracy": pooled, "macro-f1": macro_f1})


def record(store: Store, run: str, round: int, scores: Mapping[str, Sequence[float]], *, splits=("test",),
           task="classification", counts=COUNTS, seconds=3.0, diagnostics=None, macro_f1=NAN) -> None:  # fmt: skip
    rows = []
    for model, values in scores.items():
        for split in splits:
            score = np.asarray(values, np.float64)
            rows.append(scored(model, split, score, np.asarray(counts, np.int64), task, macro_f1))
    store.record(run, round, rows, seconds=seconds, compile_seconds=1.0, diagnostics=diagnostics)


def finished(store: Store, exp: Experiment, cell_id: str, title: str, seed: int, course, **more) -> str:
    """A finished run; course: round -> model -> one score a client."""
    provenance = {"task": more.get("task", "classification"), **more.pop("provenance", {})}
    run = start(store, exp, cell_id, title, seed, **provenance)
    for round, scores in course.items():
        record(store, run, round, scores, **more)
    store.finish(run, "done")
    return run


MACRO_F1 = (6 / 9 + 2 / 5) / 2
PUBLISHED = ({"model": "global", "value": 70.0, "std": 0.5, "within": 3.0},)
TRAINED = {0: {"global": (0.1, 0.1, 0.1, NAN)}, 20: {"global": (0.7, 0.7, 0.75, NAN)}}


def local(seed: int) -> dict[int, dict[str, tuple[float, ...]]]:
    """Local training: west has no test samples, east gains with the seed."""
    return {0: {"local": (0.1, 0.1, 0.1, NAN)}, 20: {"local": (0.9, 0.6, 0.8 + 0.1 * seed, NAN)}}


def toy(folder: Path) -> Results:
    """Two seeds: Local has both, FedAvg (with a published value) diverged in one, pFedMe was not run."""
    store = Store(folder)
    exp = experiment([{"name": "fedavg", "published": PUBLISHED}, {"name": "local"}, {"name": "pfedme"}])
    both = ("train", "test")
    finished(store, exp, "cell0", "fedavg", 0, TRAINED, splits=both, seconds=1.25)
    run = start(store, exp, "cell0", "fedavg", 1)
    store.finish(run, "diverged", "round 7, client south: the loss is NaN")
    for seed in (0, 1):
        finished(store, exp, "cell0", "local", seed, local(seed), splits=both)
    return Results(store, exp)


def said(folder: Path) -> Results:
    """A method with diagnostics, finished with seed 0 and begun with seed 1, and one without; two cells."""
    store = Store(folder)
    exp = experiment([{"name": "fedavg", "label": "mine"}, {"name": "local"}], cells=({}, {}))
    run = start(store, exp, "cell0", "mine", 0)
    record(store, run, 0, TRAINED[0], diagnostics={"duality gap": NAN})
    record(store, run, 20, TRAINED[20], diagnostics={"duality gap": 1 / 3, "dual objective": -12345.678})
    store.finish(run, "done")
    record(store, start(store, exp, "cell0", "mine", 1), 0, TRAINED[0], diagnostics={"duality gap": NAN})
    finished(store, exp, "cell0", "local", 0, local(0))
    run = start(store, exp, "cell1", "mine", 0)
    record(store, run, 0, TRAINED[0], diagnostics={"steps": 7.0})
    return Results(store, exp)


def by_class(folder: Path) -> Results:
    """FedAvg with macro-F1, in two seeds, beside a published one."""
    store = Store(folder)
    published = ({"model": "global", "value": 54.0, "std": 0.5, "metric": "macro-f1"},)
    exp = experiment([{"name": "fedavg", "published": published}])
    for seed in (0, 1):
        finished(store, exp, "cell0", "fedavg", seed, TRAINED, macro_f1=MACRO_F1)
    return Results(store, exp)


def timed(folder: Path) -> Results:
    """FedPer is the fastest in the paper, Ditto has not ended, Local is not in the paper."""
    methods = [
        {"name": "fedavg", "published_seconds": 16.5},
        {"name": "fedper", "published_seconds": 5.5},
        {"name": "ditto", "published_seconds": 33},
        {"name": "local"},
    ]
    store, exp = Store(folder), experiment(methods)
    for method, seconds in (("fedavg", (3.0, 5.0)), ("fedper", (1.0, 1.0)), ("local", (0.5, 1.5))):
        for seed in (0, 1):
            finished(store, exp, "cell0", method, seed, TRAINED, seconds=seconds[seed])
    start(store, exp, "cell0", "ditto", 0)
    return Results(store, exp)


def tied(folder: Path) -> Results:
    """FedU on a ring of four clients, MOCHA with relations that it learned, and Local; one seed."""
    store, exp = Store(folder), experiment([{"name": name} for name in ("fedu", "mocha", "local")], seeds=1)
    for title, model in (("fedu", "personal"), ("mocha", "personal"), ("local", "local")):
        finished(store, exp, "cell0", title, 0, {20: {model: (0.7, 0.7, 0.75, NAN)}})
    learned = np.array([[1, 0.5, 0, 0], [0.5, 1, -0.25, 0], [0, -0.25, 1, 0], [0, 0, 0, 1]])
    store.set_fact(graph_key("cell0", "fedu"), graph_of(graphs.ring(4)))
    store.set_fact(graph_key("cell0", "mocha"), related(learned))
    return Results(store, exp)


def tuned(folder: Path) -> Results:
    """FedAvg in two settings, of which validation data choose the second, and Local; two seeds."""
    methods = [{"name": "fedavg", "label": "bad"}, {"name": "fedavg", "label": "good"}, {"name": "local"}]
    cell = {"tune": True, "splits": ["train", "validation", "test"]}
    store, exp = Store(folder), experiment(methods, cells=[cell])
    for title, model, level in (("bad", "global", 0.6), ("good", "global", 0.7), ("local", "local", 0.8)):
        for seed in (0, 1):
            course = {r: {model: (level + r / 1000 + seed / 100,) * 3 + (NAN,)} for r in (0, 10, 20)}
            finished(store, exp, "cell0", title, seed, course, splits=("train", "validation", "test"))
    return Results(store, exp)


def csv_of_ranks(folder: Path, metric: str) -> Path:
    """CSV files of Local and FedAvg, two clients, three seeds, with a metric that is no mean over samples.

    Over all samples Local is better by 10 points; the mean of the clients' values has FedAvg better by 20.
    """
    key = metric.replace("-", "_")
    table = [f"cell,method,model,metric,seeds,pooled,pooled_std,pooled_ci95,mean,worst10,{key},{key}_std,{key}_ci95"]
    clients = [f"cell,method,model,seed,round,client,n,{key},loss"]
    for method, model, pooled, own in (("fedavg", "global", 0.8, 0.9), ("local", "local", 0.9, 0.7)):
        over_all = f"{pooled},0.01,0.0248"
        table.append(f"made up,{method},{model},{metric},3,{over_all},{own},{own - 0.01},{over_all}")
        for seed in range(3):
            for client, by in (("north", 0.01), ("south", -0.01)):
                clients.append(f"made up,{method},{model},{seed},20,{client},100,{own + by + seed / 1000},0.5")
    (folder / "table.csv").write_text("\n".join(table) + "\n")
    (folder / "clients.csv").write_text("\n".join(clients) + "\n")
    return folder
