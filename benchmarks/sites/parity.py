"""Real sites against a simulation: scores, shared and private state; and a repeated run against the first."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from benchmarks.sites.federation import Place, data_of, experiment_of, run_id, run_in_process, run_processes
from benchmarks.sites.record import machine, table, write
from idiolect.core import tree
from idiolect.data.federated import FederatedData
from idiolect.deploy.messages import Vectors
from idiolect.deploy.trees import named
from idiolect.runtime.checkpoint import load_checkpoint
from idiolect.study.run.launch import launch
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment, digest
from idiolect.study.store.store import Store

LIMIT = 1e-6
MLP = {"name": "mlp", "hidden": [5]}
RING = {"name": "dfedu", "graph": "ring", "rate": 0.05, "coupling": 0.1}
PARTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "full": (["fedavg", "pfedme", "scaffold", "ditto", RING], {}),
    "full, with a body": (["pflego"], {"model": MLP}),
    "partial": (["fedavg", "pfedme", "scaffold", "ditto"], {"cohort": 2}),
    "partial, with a body": (["pflego"], {"model": MLP, "cohort": 2}),
}
"""What is compared: methods and settings of the cell."""


def largest(one: Vectors, other: Vectors) -> float:
    """The largest difference of any element. Raises `AssertionError` if names or shapes differ."""
    assert one.keys() == other.keys(), (sorted(one), sorted(other))
    assert all(one[name].shape == other[name].shape for name in one)
    return max((float(np.abs(one[n].astype("f8") - other[n]).max()) for n in one if one[n].size), default=0.0)


def same_bits(one: Vectors, other: Vectors) -> bool:
    """Whether all bytes are equal."""
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def same_states(one: Place, other: Place, run: str) -> tuple[bool, bool]:
    """Whether (shared state, all private states) of two federations are equal in every bit."""
    mine, theirs = one.private(run), other.private(run)
    private = mine.keys() == theirs.keys() and all(same_bits(mine[site], theirs[site]) for site in mine)
    return same_bits(one.shared(run), other.shared(run)), private


def compared(
    place: Place, simulated: Path, experiment: Experiment, data: FederatedData
) -> dict[str, dict[str, float]]:
    """Method -> the largest difference of scores, of the shared state, and of private states to the simulation."""
    bench, cell = Workbench(data=data), experiment.cells[0]
    problem = bench.problem(cell, data)
    found: dict[str, dict[str, float]] = {}
    with Store(place.hub, create=False) as real, Store(simulated, create=False) as store:
        for method in cell.methods:
            run = run_id(method.title)
            row = store.run(run)
            assert row is not None
            simulation = bench.simulation(cell, method, problem)
            like = simulation.init(0, eqx.filter(model, eqx.is_inexact_array))
            point = load_checkpoint(store.checkpoint_path(run), like, digest(row.config_hash, row.data_hash))
            assert point is not None
            state, algorithm = point.state, simulation.algorithm
            difference = 0.0
            for number, kept in enumerate(place.private(run).values()):
                expected = {f"private/{n}": v for n, v in named(tree.gather(state.private, number)).items()}
                expected = {n.removesuffix("/value") if n == "private/value" else n: v for n, v in expected.items()}
                if any(name.startswith("view") for name in kept):
                    view = algorithm.view(state.shared, jnp.asarray(number, jnp.int32))
                    expected |= named({"view": view})
                difference = max(difference, largest(kept, expected))
            shared = (
                0.0
                if algorithm.peers(simulation.start) is not None
                else largest(place.shared(run), named(state.shared))
            )
            found[run] = {"scores": _scores(real, store, run), "shared": shared, "private": difference}
    return found


def _scores(real: Store, simulated: Store, run: str) -> float:
    """The largest difference of any client's loss or value of a metric, in any evaluated round."""
    assert real.evaluated(run) == simulated.evaluated(run) != []
    worst = 0.0
    for round in real.evaluated(run):
        for name in real.models(run):
            for split in real.evaluated_splits(run, round):
                one, other = real.scores(run, round, name, split), simulated.scores(run, round, name, split)
                assert one is not None
                assert other is not None
                worst = max(worst, float(np.abs(one.loss - other.loss).max()))
                for metric, values in other.values.items():
                    worst = max(worst, float(np.nanmax(np.abs(one.values[metric] - values), initial=0.0)))
    return worst


def measure(folder: Path) -> dict[str, Any]:
    """Every part between processes against the simulation, and again against itself, bit for bit."""
    found: dict[str, Any] = {}
    for number, (name, (methods, settings)) in enumerate(PARTS.items()):
        data, experiment = data_of(), experiment_of(methods, **settings)
        launch(experiment, folder / f"simulated-{number}", data=data, jobs=1)
        place = run_processes(folder / f"real-{number}", experiment, data)
        found[name] = compared(place, folder / f"simulated-{number}", experiment, data)
        again = run_in_process(folder / f"quick-{number}", experiment, data)
        twice = run_processes(folder / f"again-{number}", experiment, data)
        for run, values in found[name].items():
            values["repeated_bit_for_bit"] = all(same_states(place, twice, run))
            values["in_process_bit_for_bit"] = all(same_states(place, again, run))
        print(name, found[name], flush=True)
    return found


def report(folder: Path) -> bool:
    """Measure and write the page; whether all differences are at most 1e-6 and repeated runs equal bit for bit."""
    about = machine()
    found = measure(folder)
    rows, good = list[tuple[object, ...]](), True
    for part, runs in found.items():
        for run, values in runs.items():
            worst = max(values[key] for key in ("scores", "shared", "private"))
            good &= worst <= LIMIT and bool(values["repeated_bit_for_bit"])
            numbers = [f"{values[key]:.1e}" for key in ("scores", "shared", "private")]
            same = ["yes" if values[key] else "NO" for key in ("repeated_bit_for_bit", "in_process_bit_for_bit")]
            rows.append((part, run.split("/")[1], *numbers, *same))
    head = ("participation", "method", "scores", "shared", "private", "repeated: same bits", "in process: same bits")
    page = [
        "4 sites as processes, mutual TLS, 20 rounds: the largest absolute difference to the simulation with the "
        f"same data, of any client's loss or metric, of the hub's state, and of private states (limit {LIMIT:g}).",
        "",
        *table(head, rows),
    ]
    print(write("parity", "Real sites and a simulation", about, {"found": found}, page))
    return good
