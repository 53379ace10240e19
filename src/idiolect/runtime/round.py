"""One round of a method: what one client computes, what the server makes of the messages, and the models in between.

    shared = first_shared(method, start, seed)                  before the first round
    private = first_private(method, start, seed, id)
    message, private = client_step(method, view, private, client, seed)
    shared = server_step(method, shared, cohort, messages)
    {name: model} = models_of(method, view, private, client, seed)

Simulations map the client's functions over a cohort; a hub and its sites each run their own part; new clients and the
count of bytes use them, too. So every draw and every message is the same everywhere.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort, Start
from idiolect.client.client import Client, Federation
from idiolect.client.objective import Objective
from idiolect.client.predictor import Models
from idiolect.client.samples import Samples
from idiolect.core.random import stream


def first_shared(algorithm: Algorithm, start: Start, seed: PRNGKeyArray) -> PyTree:
    """The server's state before the first round."""
    return algorithm.init(start, stream(seed, "init"))


def first_private(algorithm: Algorithm, start: Start, seed: PRNGKeyArray, client_id: Int[Array, ""]) -> PyTree:
    """One client's private state before its first round."""
    return algorithm.init_private(start, first_draws(seed, client_id))


def first_draws(seed: PRNGKeyArray, client_id: Int[Array, ""]) -> PRNGKeyArray:
    """The key of what a client draws before its first round."""
    return stream(seed, "private", 0, client_id)


def client_of(
    samples: Samples,
    row: Int[Array, ""],
    round: Int[Array, ""],
    objective: Objective,
    federation: Federation,
    client_id: Int[Array, ""] | None = None,
) -> Client:
    """Build the client in this row of the samples. client_id: its number in the federation, by default the row."""
    x, y, start = samples.of(row)
    outputs = None if samples.outputs is None else samples.outputs[row]
    number = row if client_id is None else client_id
    return Client(x, y, start, samples.sizes[row], number, round, objective, federation, outputs)


def cohort_of(
    samples: Samples, ids: Int[Array, "cohort"], present: Bool[Array, "cohort"], population: int, expected: float
) -> Cohort:
    """The cohort as the server knows it: the numbers of its clients and what they announce."""
    sizes = samples.sizes[ids].astype(jnp.result_type(float))
    return Cohort(ids, sizes, present, population, samples.total, expected)


def client_step(
    algorithm: Algorithm, view: PyTree, private: PyTree, client: Client, seed: PRNGKeyArray
) -> tuple[PyTree, PyTree]:
    """(message, private state) of one client after one round. seed: the run's key."""
    return algorithm.local(view, private, client, draws(seed, client))


def server_step(algorithm: Algorithm, shared: PyTree, cohort: Cohort, messages: PyTree) -> PyTree:
    """The server's state after one round; unchanged if no client is present."""
    after = algorithm.aggregate(shared, cohort, messages)
    return jax.tree.map(lambda new, old: jnp.where(jnp.any(cohort.present), new, old), after, shared)


def models_of(algorithm: Algorithm, view: PyTree, private: PyTree, client: Client, seed: PRNGKeyArray) -> Models:
    """One client's models by name: from its training samples, with the draws of the round that `client` is in."""
    return algorithm.evaluated(view, private, client, draws(seed, client))


def draws(seed: PRNGKeyArray, client: Client) -> PRNGKeyArray:
    """The key of what a client draws in a round."""
    return stream(seed, "local", client.round, client.id)
