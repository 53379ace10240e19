"""W9: a round of mmFL, 30 clients x 2 modalities x 3 candidate rates, against an eager loop in PyTorch.

    python -m benchmarks.modalities                 # needs the extra `bench`
    python -m benchmarks.modalities --published     # FedMultimodal's encoders instead of the small ones

Random windows of 128 times and 3 channels, 20 encoder and decoder steps on mini-batches of 20. First both systems run
two rounds on samples that are alike within each client, where draws change nothing, and must agree. Then idiolect
with three candidates, idiolect with one, and the loop take turns; medians are compared.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.peers.torch_modalities import Branch, MmFL
from benchmarks.peers.torch_models import use_faster_threads
from benchmarks.samples import samples
from benchmarks.timing import advance, federation
from idiolect.algorithms.registry import build
from idiolect.client.objective import objective_of
from idiolect.data.modalities import Modalities
from idiolect.models import Multimodal
from idiolect.models import build as build_model
from idiolect.runtime.simulate import Simulation

LAYOUT = Modalities(("accelerometer", "gyroscope"), ((128, 3), (128, 3)))
CLASSES, HIDDEN, RATES = 6, 32, (0.01, 0.001, 0.0001)
SMALL: dict[str, Any] = {"channels": [16, 32, 32], "features": 32}
PUBLISHED: dict[str, Any] = {"channels": [32, 64, 128], "features": 128}


class Both:
    """The same federation, start and settings for idiolect and for the loop. names: of the model's modalities."""

    def __init__(
        self,
        sizes: dict[str, Any],
        clients: int,
        each: int,
        *,
        alike: bool = False,
        names: tuple[str, ...] = LAYOUT.names,
    ) -> None:
        self.sizes, self.names = sizes, names
        self.x, self.y = samples(clients, each, (LAYOUT.width,), CLASSES, alike=alike)
        self.x[..., -len(LAYOUT.names) :] = 1
        spec = {"name": "multimodal", "decoder": [HIDDEN], "modalities": list(names), **sizes}
        key = jax.random.key(0)
        model = build_model(spec, (LAYOUT.width,), CLASSES, "classification", key, LAYOUT)
        assert isinstance(model, Multimodal)
        self.model = model

    def own(self, rates: tuple[float, ...]) -> Simulation:
        """idiolect's."""
        method = build({"name": "mmfl", "rates": rates})
        data = federation(self.x, self.y, CLASSES)
        params = eqx.filter(self.model, eqx.is_inexact_array)
        return Simulation(data, objective_of(self.model, "classification"), params, method)

    def loop(self, *, timed: bool) -> MmFL:
        """The loop; if it is timed, with the number of threads that is faster for it."""
        x = {m: np.ascontiguousarray(np.moveaxis(LAYOUT.part(self.x, m), -1, -2)) for m in self.names}
        nets = {m: Branch(self.sizes["channels"], self.sizes["features"], HIDDEN, CLASSES) for m in self.names}
        settings: dict[str, Any] = {"rates": RATES, "steps": 20, "batch": 20, "meta": 32}
        if timed:
            use_faster_threads(MmFL({m: part[:2] for m, part in x.items()}, self.y[:2], nets, **settings).round)
        for m, net in nets.items():
            net.load(by_name(self.model, m))
        return MmFL(x, self.y, nets, **settings)


def by_name(model: Any, modality: str) -> dict[str, np.ndarray]:
    """One branch's weights by PyTorch's names, in its layout."""
    encoder, decoder = model.encoders[modality], model.decoders[modality]
    found: dict[str, Any] = {}
    for i, layer in enumerate(encoder.convolutions):
        found[f"convolutions.{i}.weight"] = np.transpose(layer.weight[:, 0], (2, 1, 0))
        found[f"convolutions.{i}.bias"] = layer.bias
    gates = encoder.recurrent.gates
    found |= {"recurrent.weight_ih_l0": gates.of_input, "recurrent.weight_hh_l0": gates.of_state}
    found |= {"recurrent.bias_ih_l0": gates.input_bias, "recurrent.bias_hh_l0": gates.state_bias}
    for i, layer in enumerate(decoder.layers):
        found |= {f"decoder.{i}.weight": layer.weight, f"decoder.{i}.bias": layer.bias}
    return {name: np.asarray(weight) for name, weight in found.items()}


def gap(both: Both, rounds: int = 2) -> tuple[float, float]:
    """(the largest difference of the two systems' weights, the largest distance that a weight has come)."""
    sim, loop = both.own(RATES), both.loop(timed=False)
    state = sim.advance(sim.init(0), rounds)
    for _ in range(rounds):
        loop.round()
    worst, moved = 0.0, 0.0
    for m, net in loop.nets.items():
        mine, start = by_name(state.shared.params[m], m), by_name(both.model, m)
        for (name, _), theirs in zip(net.named_parameters(), loop.shared[m], strict=True):
            worst = max(worst, float(np.abs(mine[name] - theirs.numpy()).max()))
            moved = max(moved, float(np.abs(mine[name] - start[name]).max()))
    return worst, moved


def timed(both: Both, repeats: int) -> dict[str, float]:
    """Median seconds of a round of each, in turn, compilation left out."""
    loop = both.loop(timed=True)
    sims = {"3 candidates": both.own(RATES), "1 rate": both.own(RATES[:1])}
    states = {name: sim.advance(sim.init(0), 1) for name, sim in sims.items()}
    seconds: dict[str, list[float]] = {name: [] for name in (*sims, "PyTorch loop, 3 candidates")}
    for _ in range(repeats):
        for name, sim in sims.items():
            states[name], took = advance(sim, states[name])
            seconds[name].append(took)
        seconds["PyTorch loop, 3 candidates"].append(_took(loop.round))
    return {name: statistics.median(each) for name, each in seconds.items()}


def _took(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Check equal work, measure, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds")
    parser.add_argument("--clients", type=int, default=30, help="clients, all in every round")
    parser.add_argument("--samples", type=int, default=240, help="training windows of a client")
    parser.add_argument("--published", action="store_true", help="FedMultimodal's encoders")
    args = parser.parse_args()
    console, sizes = Console(), PUBLISHED if args.published else SMALL
    worst, moved = gap(Both(sizes, 3, 40, alike=True))
    console.print(f"after 2 rounds on alike samples: largest difference {worst:.1e}, largest change {moved:.1e}")
    if worst > moved / 100:
        raise SystemExit("the two systems do not do the same work")
    found = timed(Both(sizes, args.clients, args.samples), args.repeats)
    table = Table(title=f"mmFL, {args.clients} clients x 2 modalities, seconds a round, {sizes}")
    for column in ("system", "s a round", "loop / system", "system / 1 rate"):
        table.add_column(column, justify="left" if column == "system" else "right")
    slowest, plain = found["PyTorch loop, 3 candidates"], found["1 rate"]
    for name, took in found.items():
        table.add_row(name, f"{took:.3f}", f"{slowest / took:.2f}", f"{took / plain:.2f}")
    console.print(table)
    console.print(f"torch threads {torch.get_num_threads()}, jax {jax.__version__}, {jax.device_count()} device(s)")


if __name__ == "__main__":
    main()
