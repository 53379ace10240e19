"""What travels in a round: what a client receives and sends, by the shapes of view and message."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from idiolect.client.samples import Samples, to_device
from idiolect.core import tree
from idiolect.runtime.round import client_step
from idiolect.runtime.simulate import Simulation


def shapes_of_a_round(simulation: Simulation) -> tuple[PyTree, PyTree]:
    """(view, message) of one client in a round; nothing is computed but shapes.

    One process of several may ask: the samples of its own device serve, which the others need not place, too.
    """
    key, number, round = jax.random.key(0), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)

    def first() -> tuple[PyTree, PyTree]:
        shared, private = simulation.first(key, simulation.params, jnp.arange(1))
        return shared, tree.gather(private, 0)

    def both(shared: PyTree, private: PyTree, samples: Samples) -> tuple[PyTree, PyTree]:
        view = simulation.algorithm.view(shared, number)
        client = simulation.plan.client(samples, number, round)
        return view, client_step(simulation.algorithm, view, private, client, key)[0]

    return jax.eval_shape(both, *jax.eval_shape(first), to_device(simulation.training.train))


def bytes_a_round(simulation: Simulation) -> tuple[int, int]:
    """(down, up): bytes that a client receives and sends in a round.

    Where neighbours exchange messages without a server: with all its neighbours, the mean over clients.
    """
    view, message = shapes_of_a_round(simulation)
    graph = simulation.algorithm.peers(simulation.start)
    if graph is None:
        return tree.bytes_of(view), tree.bytes_of(message)
    exchanged = round(tree.bytes_of(message) * len(graph.neighbours) / graph.num_clients)
    return exchanged, exchanged
