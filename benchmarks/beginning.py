"""What all systems start from: idiolect's initial model, its cohorts and, if wanted, its mini-batches."""

from math import isqrt
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.samples import Given
from benchmarks.timing import federation, simulation
from benchmarks.workloads import Workload
from idiolect.algorithms.registry import build
from idiolect.client.objective import objective_of
from idiolect.core.random import model_key, stream
from idiolect.models import build as build_model
from idiolect.runtime.simulate import Simulation

SEED = 0


def beginning(work: Workload, rounds: int, *, rows: bool = False, alike: bool = False) -> Given:
    """The start of a run of `rounds` rounds from seed 0.

    rows: give everyone's mini-batches too, drawn by idiolect's own functions. alike: see `samples`.
    """
    model = build_model(work.model, work.shape, work.classes, "classification", model_key(SEED))
    weights = to_torch(work.model, jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))
    if work.evaluates:
        rng = np.random.default_rng(1)
        own = (rng.normal(0, 0.1, (work.clients, *weight.shape)) for weight in weights)
        nothing = np.zeros((rounds, 0), np.int64)
        return Given([weight.astype(np.float32) for weight in own], nothing, alike=alike)
    sim = of_positions(work)
    key = sim.init(SEED).seed
    cohorts = jax.vmap(lambda t: sim.sampling.draw(key, t, work.cohort)[0])(jnp.arange(rounds))
    drawn = np.stack([batches(work, sim, round) for round in range(rounds)]) if rows else None
    return Given(weights, np.asarray(cohorts), drawn, alike)


def of_positions(work: Workload) -> Simulation:
    """The workload's federation with the number of each sample in its client as its only feature."""
    shape = (work.clients, work.samples)
    x = np.broadcast_to(np.arange(work.samples, dtype=np.float32)[:, None], (*shape, 1))
    data = federation(np.ascontiguousarray(x), np.zeros(shape, np.int64), work.classes)
    model = build_model({"name": "mlr"}, (1,), work.classes, data.task, model_key(SEED))
    params = eqx.filter(model, eqx.is_inexact_array)
    return Simulation(data, objective_of(model, data.task), params, build(work.method), cohort=work.cohort)


def batches(work: Workload, sim: Simulation, round: int) -> np.ndarray:
    """Which samples the mini-batches of a round hold, (clients, steps, batch), -1 for none."""
    size = work.method["batch_size"]
    order = "epoch" if "epochs" in work.method else "fresh"
    seed = sim.init(SEED).seed

    def one(client_id: jax.Array) -> jax.Array:
        client = sim.plan.client(sim.arrays, client_id, jnp.asarray(round, jnp.int32))
        batch = client.batches(stream(seed, "local", round, client_id), work.steps, size, order)
        return jnp.where(batch.weight > 0, batch.x[..., 0], -1).astype(jnp.int32)

    return np.asarray(jax.vmap(one)(jnp.arange(work.clients)))


def simulated(work: Workload, *, alike: bool = False) -> Simulation:
    """The workload as idiolect runs it; scores are those of everyone's own model, as `local` keeps them."""
    method = {"name": "local"} if work.evaluates else work.method
    sizes = {"classes": work.classes, "clients": work.clients, "samples": work.samples, "cohort": work.cohort}
    return simulation(method, work.model, work.shape, **sizes, alike=alike)


def to_torch(model: dict[str, Any], leaves: list[Any]) -> list[np.ndarray]:
    """Parameters as PyTorch lays them out: kernels (out, in, kh, kw), features flattened channels first."""
    arrays = [np.asarray(leaf) for leaf in leaves]
    convolutions = len(model.get("channels", ()))
    for i in range(0, 2 * convolutions, 2):
        arrays[i] = arrays[i].transpose(3, 2, 0, 1)
    if convolutions:
        first, channels = arrays[2 * convolutions], model["channels"][-1]
        width = first.shape[-1]
        side = isqrt(width // channels)
        parts = first.reshape(*first.shape[:-1], side, side, channels)
        arrays[2 * convolutions] = np.moveaxis(parts, -1, -3).reshape(first.shape)
    return [np.ascontiguousarray(array) for array in arrays]
