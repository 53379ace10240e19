"""A client on features against the same client on samples."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.exact.features import on_features
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.models.parts import separate
from tests.federations import Tanh, classification, client_of, federation, flat, split_of
from tests.modalities import FLAT, close, problem, without

KEY = jax.random.key(5)
PROBLEM = classification((9, 1, 300, 4), l2=0.1)  # the third fills two tiles
BODY, HEAD = separate(PROBLEM.params, "second")


@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_head_alone_has_the_same_objective_and_gradient(index):
    client = PROBLEM.client(index)

    @jax.jit
    def both(body, head):
        held = on_features(client, body, head)
        batch, features = client.draw(KEY, 6), held.draw(KEY, 6)
        plain = client.full_value_and_grad(head, body), client.grad(head, batch, body), batch.y
        apart = held.full_value_and_grad(head), held.grad(head, features), features.y
        whole = client.objective.scores(tree.merged(head, body), batch)
        return (*plain, whole), (*apart, held.objective.scores(head, features))

    for a, b in zip(*map(jax.tree.leaves, both(BODY, HEAD)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"batch_size": 4}, {"batch_size": 4, "epochs": 2}])
def test_a_solver_trains_the_same_head_with_the_same_draws(options):
    client = PROBLEM.client(2)
    same = {"rate": 0.2, "steps": 5, **options}

    @jax.jit
    def both(body, head):
        held = on_features(client, body, head)
        return sgd(held, head, KEY, **same), sgd(client, head, KEY, fixed=body, **same)

    apart, plain = both(BODY, HEAD)
    np.testing.assert_allclose(flat(apart), flat(plain), rtol=1e-5, atol=1e-6)
    assert np.abs(flat(plain) - flat(HEAD)).max() > 0.1


def test_a_window_of_the_client_has_features_of_its_own_samples():
    client = PROBLEM.client(2)

    def slope(client):
        return jax.jit(lambda body, head: on_features(client, body, head).full_value_and_grad(head)[1])(BODY, HEAD)

    x, y = PROBLEM.data.train.client(2)
    part = federation(split_of([(x[170:190], y[170:190])]), task="classification", classes=("a", "b", "c"))
    expected = client_of(part, PROBLEM.objective, 0).full_value_and_grad(HEAD, BODY)[1]
    np.testing.assert_allclose(flat(slope(client.window(170, 20))), flat(expected), rtol=1e-5, atol=1e-6)


def narrow(classes):
    """Two clients with 2 of 4 classes, and a head with as many rows as asked for."""
    rng = np.random.default_rng(3)
    parts = [(rng.normal(size=(n, 3)).astype("f4"), rng.integers(0, 2, n).astype("i4")) for n in (7, 5)]
    train = split_of(parts) if classes == 2 else replace(split_of(parts), outputs=np.full(2, 2))
    data = federation(train, task="classification", classes=("a", "b", "c", "d")[:classes])
    first, bias, second = (rng.normal(size=shape).astype("f4") for shape in ((5, 3), (5,), (4, 5)))
    params = Tanh(jnp.asarray(first), jnp.asarray(bias), jnp.asarray(second[:classes]))
    return client_of(data, objective_of(params, "classification", l2=0.1), 1), params


def test_a_client_with_fewer_classes_has_a_head_with_fewer_rows():
    """K_i = 2 of 4 outputs: the same probabilities and gradients, and training gives the same first rows."""
    results = []
    for client, params in (narrow(4), narrow(2)):
        body, head = separate(params, "second")

        @eqx.filter_jit
        def run(client, body, head):
            held = on_features(client, body, head)
            batch = held.take(jnp.arange(5))
            scores = held.objective.scores(head, batch)
            slope = client.full_value_and_grad(tree.merged(head, body))[1]
            return sgd(held, head, KEY, rate=0.3, steps=4, batch_size=0), slope, scores

        trained, slope, scores = run(client, body, head)
        assert np.abs(trained.second[:2] - head.second[:2]).max() > 0.05
        results.append((trained.second[:2], slope.first, slope.bias, slope.second[:2], scores[:3]))
    for a, b in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_sample_that_the_whole_model_cannot_answer_counts_for_nothing_on_features_too():
    given = problem(l2=0.1, **FLAT | {"modalities": ["acc"]})
    client = given.client(2)
    client = replace(client, x=client.x.at[::3].set(without(client.x[::3], "acc")))
    body, head = separate(given.params, "decoders")

    @jax.jit
    def both(body, head):
        held = on_features(client, body, head)
        batch, features = client.draw(KEY, 6), held.draw(KEY, 6)
        plain = client.full_value_and_grad(head, body), client.grad(head, batch, body)
        return plain, (held.full_value_and_grad(head), held.grad(head, features))

    close(*both(body, head))
    assert float(client.answered(given.params)) < float(client.size)
