"""Stores of many clients, methods and seeds, filled without training: what a page is made of, and measured with.

`python -m tests.report.html.stores FOLDER CLIENTS SEEDS` writes such a store and its page's data.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from idiolect import graphs
from idiolect.report.view.from_store import view_of
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import run_id
from idiolect.study.store.recorded import clients_key, graph_key, graph_of, traffic_key
from idiolect.study.store.store import RunRow, Store
from tests.report.html.made import page_of
from tests.report.stores import PROVENANCE, experiment

SIX = ("local", "fedavg", "pfedme", "ditto", "fedu", "perfedavg")
MODELS = {
    "local": {"local": 0.80},
    "fedavg": {"global": 0.72},
    "pfedme": {"personal": 0.84, "global": 0.70},
    "ditto": {"personal": 0.86, "global": 0.73},
    "fedu": {"personal": 0.82},
    "perfedavg": {"adapted": 0.79, "global": 0.68},
}
CLASSES = 10
ROUNDS = tuple(range(0, 101, 5))


def large(folder: Path, clients: int = 100, seeds: int = 10, names: list[str] | None = None) -> Results:
    """Six methods on `clients` clients with `seeds` seeds, all ended; with labels, bytes and a graph."""
    rng = np.random.default_rng(0)
    store, exp = Store(folder), experiment([{"name": name} for name in SIX], seeds=seeds)
    store.set_fact("experiment", exp.model_dump(mode="json"))
    names = names or [f"client {i:04d}" for i in range(clients)]
    test = rng.integers(5, 200, clients)
    counts = np.stack([rng.multinomial(3 * n, rng.dirichlet(np.full(CLASSES, 0.5))) for n in test])
    facts = {"names": names, "train": counts.sum(axis=1).tolist(), "test": test.tolist()}
    facts |= {"classes": [f"class {c}" for c in range(CLASSES)], "counts": counts.tolist()}
    store.set_fact(clients_key("d", None), facts)
    store.set_fact("audit d", ["No leak found: none of 9 test samples has an exact copy in training data."])
    store.set_fact(graph_key("cell0", "fedu"), graph_of(graphs.random(clients, density=min(1.0, 8 / clients))))
    own = rng.normal(0, 0.08, clients)
    for method in SIX:
        store.set_fact(traffic_key("cell0", method), [31_400, 31_400 * (2 if method == "ditto" else 1)])
        for seed in range(seeds):
            run = run_id("cell0", method, seed)
            facts = {**PROVENANCE, "clients": names}
            row = RunRow(run, "cell0", method, method, seed, {}, "c", "d", facts, "running", 0, 0.0, 0.0, "")
            store.start(row)
            for round in ROUNDS:
                grown = 1 - np.exp(-(round + 3) / 20)
                scores = [_scores(rng, model, level * grown + own, test) for model, level in MODELS[method].items()]
                store.record(run, round, scores, seconds=round / 50, compile_seconds=1.0)
            store.finish(run, "done")
    return Results(store, exp)


def _scores(rng: np.random.Generator, model: str, share: np.ndarray, test: np.ndarray) -> ClientScores:
    right = rng.binomial(test, np.clip(share, 0.02, 0.99))
    values = {"accuracy": right / test, "macro-f1": np.full(len(test), np.nan)}
    pooled = {"accuracy": float(right.sum() / test.sum()), "macro-f1": float("nan")}
    return ClientScores(model, "test", test, 2 - right / test, values, pooled)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    began = time.perf_counter()
    results = large(target, int(sys.argv[2]), int(sys.argv[3]))
    filled = time.perf_counter()
    text = json.dumps(page_of(view_of(results, "idiolect compare --data toy")), allow_nan=False)
    print(
        f"store filled in {filled - began:.1f} s, data made in {time.perf_counter() - filled:.1f} s, {len(text):,} B"
    )
    (target / "data.json").write_text(text)
