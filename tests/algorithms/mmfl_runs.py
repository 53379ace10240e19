"""What the tests of mmFL share: small settings, and its steps compiled once."""

import equinox as eqx

from idiolect.algorithms.mmfl import MmFL


def mmfl(**changes):
    return MmFL(**{"rates": (0.3,), "local_steps": 3, "batch_size": 4} | changes)


@eqx.filter_jit
def choice(method, start, client, key):
    return method.choice(start, client, key)


@eqx.filter_jit
def trained(method, start, client, key):
    return method.trained(start, client, key)
