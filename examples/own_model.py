"""Train a model of your own: any function of one sample whose parameters are JAX arrays.

Run: python examples/own_model.py [ROUNDS]
"""

import sys

import equinox as eqx
import jax

import idiolect

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40


class Network(eqx.Module):
    """A body that clients share and a last layer, the head, that each client keeps."""

    body: eqx.nn.Linear
    head: eqx.nn.Linear  # the field that is declared last: methods with private heads take it as the head

    def __init__(self, inputs, outputs, key):
        first, second = jax.random.split(key)
        self.body = eqx.nn.Linear(inputs, 16, key=first)
        self.head = eqx.nn.Linear(16, outputs, key=second)

    def __call__(self, x):  # one sample, without a batch axis
        return self.head(jax.nn.relu(self.body(x)))


data = idiolect.data.synthetic(0.5, 0.5, clients=8, max_size=200)
model = Network(data.feature_shape[0], data.num_outputs, jax.random.key(0))

run = idiolect.run(data, model, idiolect.FedPer(rate=0.05), rounds=rounds)
run.show()
