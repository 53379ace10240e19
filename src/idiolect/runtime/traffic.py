"""What travels in a round: what a client receives and sends, by the shapes of view and message."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from idiolect.client.samples import Samples
from idiolect.core import tree
from idiolect.core.random import stream
from idiolect.runtime.simulate import Simulation


def shapes_of_a_round(simulation: Simulation, samples: Samples) -> tuple[PyTree, PyTree]:
    """(view, message) of one client in a round; nothing is computed but shapes.

    samples: the training samples, or their shapes. Of arrays on several devices, or in several processes, the shapes
    alone are used.
    """
    key, number, round = jax.random.key(0), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)

    def first() -> tuple[PyTree, PyTree]:
        shared, private = simulation._first(key, simulation.params, jnp.arange(1))
        return shared, tree.gather(private, 0)

    def both(shared: PyTree, private: PyTree, samples: Samples) -> tuple[PyTree, PyTree]:
        view = simulation.algorithm.view(shared, number)
        client = simulation.plan.client(samples, number, round)
        return view, simulation.algorithm.local(view, private, client, stream(key, "local", round, number))[0]

    return jax.eval_shape(both, *jax.eval_shape(first), samples)


def bytes_a_round(simulation: Simulation) -> tuple[int, int]:
    """(down, up): bytes that a client receives and sends in a round."""
    down, up = shapes_of_a_round(simulation, simulation.arrays)
    return _bytes(down), _bytes(up)


def _bytes(of: PyTree) -> int:
    return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(of))
