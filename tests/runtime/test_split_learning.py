"""Two sides that exchange arrays against the same steps on the whole model."""

from dataclasses import replace
from math import prod

import equinox as eqx
import jax
import numpy as np
import pytest

from idiolect.algorithms.mmfl import MmFL
from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.models import MLP
from idiolect.runtime.split_learning import SplitRun
from tests.federations import classification, client_of
from tests.modalities import FLAT, changed, close, data_of, problem, without
from tests.tiers import second

KEY, STEPS, BATCH, RATE = jax.random.key(2), 3, 4, 0.3
HIDDEN, CLASSES = 7, 3


def perceptron(l2=0.1):
    """A client of a perceptron with one hidden layer, and its parameters."""
    model = MLP(3, [HIDDEN], CLASSES, key=jax.random.key(1))
    client = client_of(classification().data, objective_of(model, "classification", l2), 0)
    return client, eqx.filter(model, eqx.is_inexact_array)


def run(client, params, decoder="last", **options):
    """A finished run of the two sides."""
    options = {"update": "simultaneous", "labels": "server"} | options
    two = SplitRun(client, params, rate=RATE, decoder=decoder, **options)
    two.train(KEY, steps=STEPS, batch_size=BATCH)
    return two


@pytest.mark.parametrize("labels", ["client", second("server")])
def test_one_backward_pass_over_the_cut_is_sgd_on_the_whole_model(labels):
    client, params = perceptron()
    whole = eqx.filter_jit(sgd)(client, params, KEY, rate=RATE, steps=STEPS, batch_size=BATCH)
    two = run(client, params, labels=labels)
    close(two.params, whole, atol=1e-6, rtol=0)
    assert not np.allclose(jax.tree.leaves(whole)[0], jax.tree.leaves(params)[0], atol=1e-3)


@pytest.mark.parametrize("labels", ["client", "server"])
@pytest.mark.parametrize("update", [second("sequential"), "simultaneous"])
def test_the_two_sides_are_mmfl_with_one_rate(update, labels):
    given = problem(l2=0.1, **FLAT | {"modalities": ["acc"]})
    method = MmFL(rates=RATE, update=update, local_steps=STEPS, batch_size=BATCH)
    start, client = method.clusters(given.params)["acc"], given.client(2)
    whole = eqx.filter_jit(method.trained)(start, client, KEY).params
    close(run(client, start, "decoders", update=update, labels=labels).params, whole, atol=1e-6, rtol=0)


def test_bytes_and_round_trips_are_those_of_the_arrays_that_cross():
    client, params = perceptron()
    activations, outputs, labels = (4 * BATCH * width for width in (HIDDEN, CLASSES, 1))
    expected = {  # per step: bytes up, bytes down, messages up, messages down, round trips
        ("simultaneous", "server"): (activations + labels, activations, 1, 1, 1),
        ("sequential", "server"): (2 * (activations + labels), activations, 2, 1, 1),
        ("simultaneous", "client"): (activations + outputs, outputs + activations, 2, 2, 2),
        ("sequential", "client"): (2 * (activations + outputs), 2 * outputs + activations, 4, 3, 3),
    }
    for (update, where), each in expected.items():
        link = run(client, params, update=update, labels=where).link
        counted = (link.up, link.down, link.messages_up, link.messages_down, link.round_trips)
        assert counted == tuple(STEPS * number for number in each)


def test_kept_labels_do_not_travel():
    """With labels = "client" no message holds an array of whole numbers, and none as long as the labels."""
    client, params = perceptron()
    for labels, expected in (("client", False), ("server", True)):
        two = SplitRun(client, params, rate=RATE, decoder="last", update="simultaneous", labels=labels)
        sent, send = [], two.link.send_up
        two.link.send_up = lambda arrays, sent=sent, send=send, **rest: sent.extend(arrays) or send(arrays, **rest)
        two.train(KEY, steps=1, batch_size=BATCH)
        assert any(np.issubdtype(array.dtype, np.integer) for array in sent) == expected


def test_samples_without_the_modality_are_not_sent():
    data = data_of()

    def lose(x):
        x[::2] = without(x[::2], "acc")

    given = problem(data, l2=0.1, **FLAT | {"modalities": ["acc"]})
    fewer = client_of(replace(data, train=changed(data.train, lose)), given.objective, 2)
    method = MmFL(rates=RATE, local_steps=STEPS, batch_size=BATCH)
    start = method.clusters(given.params)["acc"]
    two = run(fewer, start, "decoders", update="sequential")
    close(two.params, eqx.filter_jit(method.trained)(start, fewer, KEY).params, atol=1e-6, rtol=0)
    full = run(given.client(2), start, "decoders", update="sequential")
    assert two.link.up < full.link.up


def test_a_step_without_any_sample_is_the_decay_alone():
    client, params = perceptron()
    two = SplitRun(client, params, rate=RATE, decoder="last", update="simultaneous", labels="server")
    batch = client.batch(KEY, 0, BATCH, "fresh")
    two.step(jax.tree.map(lambda leaf: leaf[:0], batch._replace(outputs=None)))
    close(two.params, tree.add_scaled(params, -RATE * 0.1, params))
    assert two.link.up == two.link.down == 0


def test_a_model_that_cannot_be_cut_there_is_refused():
    client, params = perceptron()
    with pytest.raises(ConfigError, match="the decoder needs weights of the encoder"):
        SplitRun(client, params, rate=RATE, decoder=r"layers[0]", update="simultaneous", labels="server")
    for bad in ({"update": "both", "labels": "client"}, {"update": "sequential", "labels": "both"}):
        with pytest.raises(ConfigError, match="'both' is not one of"):
            SplitRun(client, params, rate=RATE, decoder="last", **bad)


def test_the_width_of_the_cut_is_that_of_the_features():
    client, params = perceptron()
    two = run(client, params)
    (features,) = two.near.activations(client.batch(KEY, 0, BATCH, "fresh").x)
    assert prod(features.shape) == BATCH * HIDDEN
