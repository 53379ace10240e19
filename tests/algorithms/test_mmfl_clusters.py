"""What an absent modality may not do in mmFL, and which models are evaluated where."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Cohort
from idiolect.core import tree
from idiolect.core.random import stream
from idiolect.models.multimodal import branches
from idiolect.runtime.evaluate import Evaluator
from tests import contract
from tests.algorithms.mmfl_runs import choice, mmfl, trained
from tests.federations import bits, run, start_with
from tests.modalities import FLAT, LAYOUT, SIZES, changed, close, data_of, problem

KEY = jax.random.key(5)
HELD = (("acc", "gyro"), ("text",), ("acc", "text"), LAYOUT.names)
NAMES = ("acc", "text")  # the modalities of the model; the samples have a third


def bits_of(params):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(params)]


@eqx.filter_jit
def outputs(model, x):
    return jax.vmap(model)(x)


@cache
def held():
    """A federation in which modalities are absent, and its simulation, compiled once for several tests."""
    given = problem(data_of(HELD), **FLAT)
    return given, given.simulation(mmfl(rates=(0.5, 0.05)))


def test_a_cluster_trains_as_it_would_alone():
    whole, simulation = held()
    together = run(simulation, 2)
    alone = run(whole.simulation(mmfl(rates=(0.5, 0.05), modalities="text")), 2)
    assert list(alone.shared.params) == ["text"]
    close(alone.shared.params["text"], together.shared.params["text"])


def test_what_an_absent_modality_holds_changes_no_bit():
    """Neither its inputs nor its weights reach another modality, or the clients that have it."""
    plain, simulation = held()

    def spoil(x):
        for name in LAYOUT.names:
            gone = np.asarray(LAYOUT.present(x, name)) == 0
            np.asarray(LAYOUT.part(x, name))[gone] = 1e30  # a view of x

    spoilt = replace(plain, data=replace(plain.data, train=changed(plain.data.train, spoil)))
    assert not np.array_equal(spoilt.data.train.x, plain.data.train.x)
    assert bits(run(spoilt.simulation(mmfl(rates=(0.5, 0.05))), 2)) == bits(run(simulation, 2))
    other = jax.tree.map(lambda leaf: 3 * leaf, plain.params.encoders["text"])
    moved = eqx.tree_at(lambda params: params.encoders["text"], plain.params, other)
    ends = [simulation.advance(simulation.init(0, start), 2).shared.params for start in (plain.params, moved)]
    assert bits_of(ends[0]["acc"]) == bits_of(ends[1]["acc"])
    assert bits_of(ends[0]["text"]) != bits_of(ends[1]["text"])


@pytest.mark.second
def test_a_client_without_a_modality_sends_nothing_of_it_that_counts():
    given = problem(data_of(HELD), l2=0.1, **FLAT)  # with an L2 term even nothing has a gradient
    method, clients = mmfl(rates=(0.5, 0.05)), len(SIZES)
    shared = method.init(start_with(given.params), KEY)
    sent = [contract.sent_by(method, given.client(i), shared)[0] for i in range(clients)]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *sent)
    ids, present = jnp.arange(clients), jnp.ones(clients, bool)
    cohort = Cohort(ids, jnp.asarray(SIZES, float), present, clients, jnp.asarray(31.0), clients)
    after = method.aggregate(shared, cohort, stack)
    for name in NAMES:
        members = np.asarray([name in has for has in HELD])
        np.testing.assert_array_equal(stack[name].samples, np.where(members, SIZES, 0))
        spoilt = jax.tree.map(lambda leaf, out=~members: leaf.at[out].set(jnp.nan), stack[name].params)
        again = method.aggregate(shared, cohort, {**stack, name: stack[name]._replace(params=spoilt)})
        assert all(map(np.array_equal, jax.tree.leaves(again), jax.tree.leaves(after)))
        mean = jax.tree.map(lambda leaf, of=members: leaf[of].mean(axis=0), stack[name].params)
        close(after.params[name], mean)
    order = jnp.asarray([2, 0, 3, 1])
    close(method.aggregate(shared, cohort._replace(ids=order), tree.gather(stack, order)), after)


@pytest.mark.second
def test_a_modality_that_no_client_of_the_cohort_has_stays_as_it_is():
    given = problem(data_of([("acc",), ("acc", "gyro")] * 2), l2=0.1, **FLAT)
    start = branches(given.params)
    after = run(given.simulation(mmfl()), 2).shared.params
    assert all(map(np.array_equal, jax.tree.leaves(after["text"]), jax.tree.leaves(start["text"])))
    assert not np.array_equal(jax.tree.leaves(after["acc"])[0], jax.tree.leaves(start["acc"])[0])


@pytest.mark.second
def test_every_named_model_is_evaluated_where_it_has_something_to_say():
    given, simulation = held()
    each = tuple(f"{kind}{name}" for name in NAMES for kind in ("", "personal "))
    assert simulation.offered == ("global", "personal", *each)
    state, evaluator = run(simulation), Evaluator(simulation)
    scores = {found.model: found for found in evaluator(state)}
    params = evaluator.client_params(state, simulation.offered)
    for name in NAMES:
        counts = [n if name in has else 0 for n, has in zip(SIZES, HELD, strict=True)]
        for model in (name, f"personal {name}"):
            np.testing.assert_array_equal(scores[model].count, counts)
            np.testing.assert_array_equal(np.isnan(scores[model].values["accuracy"]), np.equal(counts, 0))
        for i in range(len(SIZES)):
            own, served = (tree.gather(params[model], i) for model in (f"personal {name}", name))
            close(served, state.shared.params[name])
            key = stream(jax.random.key(0), "local", 1, i)
            end = trained(simulation.algorithm, served, given.client(i, 1), key)
            close(own, end.params if counts[i] else served)
            if counts[i]:
                x, y = given.data.test.client(i)
                right = np.argmax(outputs(eqx.combine(served, given.objective.static), x), axis=1) == y
                assert scores[name].values["accuracy"][i] == pytest.approx(right.mean())
    fused = eqx.combine(tree.gather(params["global"], 2), given.objective.static)
    x, _ = given.data.test.client(2)
    probabilities = [
        jax.nn.log_softmax(outputs(eqx.combine(state.shared.params[name], given.objective.static), x))
        for name in HELD[2]
    ]
    close(jax.nn.softmax(outputs(fused, x)), jax.nn.softmax(sum(probabilities) / 2), atol=1e-6)
    np.testing.assert_array_equal(scores["global"].count, SIZES)


def test_diagnostics_are_the_shares_of_the_clients_that_took_each_rate():
    given, simulation = held()
    said = simulation.algorithm.diagnostics(run(simulation).shared)
    method, view = simulation.algorithm, branches(given.params)
    for name in NAMES:
        members = [i for i, has in enumerate(HELD) if name in has]
        keys = [stream(jax.random.key(0), "local", 0, i) for i in members]
        took = [int(choice(method, view[name], given.client(i), key)) for i, key in zip(members, keys, strict=True)]
        for rate in range(2):
            assert float(said[f"took rate {rate + 1} ({name})"]) == pytest.approx(np.mean(np.equal(took, rate)))
    alone = mmfl()
    assert not alone.diagnostics(alone.init(start_with(given.params), KEY))


@pytest.mark.second
def test_exact_gradients_are_those_over_the_clients_samples_of_the_modality():
    """batch_size = 0, one step: the mean over what the client has of the modality, whatever else it holds."""
    given = problem(data_of(HELD), **FLAT)
    method = mmfl(batch_size=0, local_steps=1, update="simultaneous")
    start = branches(given.params)["text"]
    sent = trained(method, start, given.client(2), KEY)
    x, y = given.data.train.client(2)

    def loss(params):
        return jnp.mean(jax.vmap(lambda x, y: -jax.nn.log_softmax(params(x))[y])(x, y))

    close(sent.params, tree.add_scaled(start, -0.3, jax.grad(loss)(start)))
