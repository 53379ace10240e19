"""mmFL against its equations written out, against FedAvg, and what an absent modality may not do."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import tree
from idiolect.algorithms.base import Cohort
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.mmfl import MmFL
from idiolect.algorithms.registry import build
from idiolect.errors import ConfigError
from idiolect.evaluate import Evaluator
from idiolect.models.multimodal import branches
from idiolect.models.parts import split
from idiolect.random import stream
from tests import contract
from tests.federations import bits, run
from tests.modalities import FLAT, LAYOUT, SIZES, changed, close, data_of, problem, value_and_slope

KEY = jax.random.key(5)
HELD = (("acc", "gyro"), ("text",), ("acc", "text"), LAYOUT.names)
NAMES = ("acc", "text")  # the modalities of the model; the samples have a third


def mmfl(**changes):
    return MmFL(**{"rates": (0.3,), "local_steps": 3, "batch_size": 4} | changes)


@cache
def held():
    """A federation in which modalities are absent, and its simulation, compiled once for several tests."""
    given = problem(data_of(HELD), **FLAT)
    return given, given.simulation(mmfl(rates=(0.5, 0.05)))


def prepared(given, **changes):
    return mmfl(**changes).prepared(given.data, given.params)


def by_hand(given, params, index, rate, update, steps=3):
    """T encoder and decoder steps of one client with plain gradients."""
    client = given.client(index)
    batches = client.batches(stream(jax.random.key(0), "local", 0, index), steps, 4, "fresh")

    def loss(encoder, decoder, batch):
        losses = jax.vmap(
            lambda x, y: -jax.nn.log_softmax(eqx.combine(encoder, decoder, given.objective.static)(x))[y]
        )
        return jnp.sum(losses(batch.x, batch.y) * batch.weight) / jnp.sum(batch.weight)

    slopes = jax.jit(jax.grad(loss, (0, 1)))
    for step in range(steps):
        encoder, decoder = split(params, "decoders")
        batch = jax.tree.map(lambda leaf, step=step: leaf[step], batches)
        for_encoder, for_decoder = slopes(encoder, decoder, batch)
        new = tree.add_scaled(encoder, -rate, for_encoder)
        if update == "sequential":
            for_decoder = slopes(new, decoder, batch)[1]
        params = tree.merged(tree.add_scaled(decoder, -rate, for_decoder), new)
    return params


def bits_of(params):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(params)]


@eqx.filter_jit
def choice(method, start, client, key):
    return method.choice(start, client, key)


@eqx.filter_jit
def trained(method, start, client, key):
    return method.trained(start, client, key)


@pytest.mark.parametrize("update", ["sequential", "simultaneous"])
def test_one_rate_is_federated_averaging_of_the_split_model(update):
    given = problem(**FLAT)
    state = run(given.simulation(mmfl(update=update)))
    for name, start in branches(given.params).items():
        ends = [by_hand(given, start, i, 0.3, update) for i in range(len(SIZES))]
        mean = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *ends)
        close(state.shared.params[name], mean)
        assert not np.allclose(jax.tree.leaves(mean)[0], jax.tree.leaves(start)[0], atol=1e-3)


@pytest.mark.parametrize("weighting", ["uniform", "size"])
def test_one_modality_without_a_split_is_fedavg(weighting):
    given = problem(**FLAT | {"modalities": ["acc"]})
    options = {"local_steps": 3, "batch_size": 4, "weighting": weighting}
    ours = run(given.simulation(MmFL(rates=0.3, update="simultaneous", **options), cohort=2), 3)
    theirs = run(given.simulation(FedAvg(rate=0.3, **options), cohort=2), 3)
    close(ours.shared.params["acc"], theirs.shared.params)


def test_a_cluster_trains_as_it_would_alone():
    whole, simulation = held()
    together = run(simulation, 2)
    for name in NAMES:
        alone = run(whole.simulation(mmfl(rates=(0.5, 0.05), modalities=name)), 2)
        assert list(alone.shared.params) == [name]
        close(alone.shared.params[name], together.shared.params[name])


def test_sequential_and_simultaneous_steps_differ_by_the_square_of_the_rate(x64):
    given = problem(dtype=np.float64, **FLAT | {"modalities": ["acc"]})
    start, rates = branches(given.params)["acc"], np.geomspace(1e-4, 1e-2, 5)
    gaps = []
    for rate in rates:
        ends = [
            trained(prepared(given, rates=float(rate), update=update), start, given.client(0), KEY).params
            for update in ("sequential", "simultaneous")
        ]
        gaps.append(float(jnp.sqrt(tree.squared_norm(tree.subtract(*ends)))))
    slope = np.polyfit(np.log(rates), np.log(gaps), 1)[0]
    assert abs(slope - 2) < 0.1


@pytest.mark.parametrize("candidates", ["loop", "vmap"])
@pytest.mark.parametrize("select_on", ["same", "held-out"])
def test_the_chosen_rate_is_the_argmin_by_brute_force(select_on, candidates):
    given = problem(l2=0.1, **FLAT | {"modalities": ["acc"]})
    start, rates = branches(given.params)["acc"], (3e-3, 0.4, 0.8, 1.6, 3.2, 1e30)
    method = prepared(
        given, rates=rates, meta_size=4, meta_steps=3, select_on=select_on, candidates=candidates, modalities="acc"
    )
    found = set()
    for index in range(len(SIZES)):
        for key in jax.random.split(KEY, 2):
            client = given.client(index)
            d, judge = method.samples(client, key)
            losses = []
            for rate in rates:
                params = start
                for _ in range(3):
                    params = tree.add_scaled(params, -rate, value_and_slope(given.objective, params, d)[1])
                losses.append(float(value_and_slope(given.objective, params, judge)[0]))
            assert not np.isfinite(losses[-1])  # a rate that diverges is never taken
            best = int(np.nanargmin(losses))
            assert int(choice(method, start, client, key)) == best
            found.add(best)
    assert len(found) > 1


def test_the_client_trains_with_the_rate_that_it_chose():
    given = problem(**FLAT | {"modalities": ["acc"]})
    start = branches(given.params)["acc"]
    method = prepared(given, rates=(1e-3, 0.3), meta_size=4)
    sent = trained(method, start, given.client(0), KEY)
    alone = prepared(given, rates=((1e-3, 0.3)[int(sent.chosen)],))
    close(sent.params, trained(alone, start, given.client(0), KEY).params)
    assert int(sent.samples) == SIZES[0]


def test_held_out_samples_are_others_and_as_many():
    given = problem(**FLAT | {"modalities": ["acc"]})
    for meta_size, index, count in ((3, 0, 3), (50, 0, 4), (50, 1, 2)):
        d, judge = prepared(given, meta_size=meta_size, select_on="held-out").samples(given.client(index), KEY)
        first, second = (np.asarray(part.x)[np.asarray(part.weight) > 0] for part in (d, judge))
        assert len(first) == len(second) == count
        assert len(np.unique(np.concatenate([first, second]), axis=0)) == 2 * count
        same, again = prepared(given, meta_size=meta_size).samples(given.client(index), KEY)
        assert same is again
        assert int(same.weight.sum()) == min(meta_size, SIZES[index])


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


def test_a_client_without_a_modality_sends_nothing_of_it_that_counts():
    given = problem(data_of(HELD), l2=0.1, **FLAT)  # with an L2 term even nothing has a gradient
    method, clients = prepared(given, rates=(0.5, 0.05)), len(SIZES)
    shared = method.init(given.params, KEY)
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


def test_a_modality_that_no_client_of_the_cohort_has_stays_as_it_is():
    given = problem(data_of([("acc",), ("acc", "gyro")] * 2), l2=0.1, **FLAT)
    start = branches(given.params)
    after = run(given.simulation(mmfl()), 2).shared.params
    assert all(map(np.array_equal, jax.tree.leaves(after["text"]), jax.tree.leaves(start["text"])))
    assert not np.array_equal(jax.tree.leaves(after["acc"])[0], jax.tree.leaves(start["acc"])[0])


def test_every_named_model_is_evaluated_where_it_has_something_to_say():
    given, simulation = held()
    each = tuple(f"{kind}{name}" for name in NAMES for kind in ("", "personal "))
    assert simulation.algorithm.offered == ("global", "personal", *each)
    state, evaluator = run(simulation), Evaluator(simulation)
    scores = {found.model: found for found in evaluator(state)}
    params = evaluator.client_params(state, simulation.algorithm.offered)
    for name in NAMES:
        counts = [n if name in has else 0 for n, has in zip(SIZES, HELD, strict=True)]
        for model in (name, f"personal {name}"):
            np.testing.assert_array_equal(scores[model].count, counts)
            np.testing.assert_array_equal(np.isnan(scores[model].score), np.equal(counts, 0))
        for i in range(len(SIZES)):
            own, served = (tree.gather(params[model], i) for model in (f"personal {name}", name))
            close(served, state.shared.params[name])
            key = stream(jax.random.key(0), "local", 1, i)
            end = trained(simulation.algorithm, served, given.client(i, 1), key)
            close(own, end.params if counts[i] else served)
            if counts[i]:
                x, y = given.data.test.client(i)
                model = eqx.combine(served, given.objective.static)
                right = np.argmax(jax.vmap(model)(x), axis=1) == y
                assert scores[name].score[i] == pytest.approx(right.mean())
    fused = eqx.combine(tree.gather(params["global"], 2), given.objective.static)
    x, _ = given.data.test.client(2)
    probabilities = [
        jax.nn.log_softmax(jax.vmap(eqx.combine(state.shared.params[name], given.objective.static))(x))
        for name in HELD[2]
    ]
    close(jax.nn.softmax(jax.vmap(fused)(x)), jax.nn.softmax(sum(probabilities) / 2), atol=1e-6)
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
    alone = prepared(given)
    assert not alone.diagnostics(alone.init(given.params, KEY))


def test_how_it_is_executed_changes_nothing():
    contract.is_the_same_however_executed(MmFL(rates=(0.1, 0.01), decoder="tail", local_steps=2, batch_size=2))


def test_padding_is_ignored_and_nothing_is_kept():
    method = MmFL(rates=(0.1, 0.01), decoder="tail", local_steps=2, batch_size=2)
    contract.ignores_padding(method)
    contract.keeps_nothing(method)


def test_exact_gradients_are_those_over_the_clients_samples_of_the_modality():
    """batch_size = 0, one step: the mean over what the client has of the modality, whatever else it holds."""
    given = problem(data_of(HELD), **FLAT)
    method = prepared(given, batch_size=0, local_steps=1, update="simultaneous")
    start = branches(given.params)["text"]
    sent = trained(method, start, given.client(2), KEY)
    x, y = given.data.train.client(2)

    def loss(params):
        return jnp.mean(jax.vmap(lambda x, y: -jax.nn.log_softmax(params(x))[y])(x, y))

    close(sent.params, tree.add_scaled(start, -0.3, jax.grad(loss)(start)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rates": ()}, "at least one rate"),
        ({"rates": (0.1, -1.0)}, "mmfl: rates = "),
        ({"rates": (0.1, float("nan"))}, "mmfl: rates = "),
        ({"meta_size": 0}, "mmfl: meta_size = 0"),
        ({"meta_steps": 0}, "mmfl: meta_steps = 0"),
        ({"update": "both"}, "mmfl: update = 'both'"),
        ({"select_on": "test"}, "mmfl: select_on = 'test'"),
        ({"local_steps": 0}, "mmfl: local_steps = 0"),
    ],
)
def test_what_is_out_of_range_is_named(changes, message):
    with pytest.raises(ConfigError, match=message):
        MmFL(**changes)


def test_a_model_without_such_parts_is_refused():
    given = problem(**FLAT)
    with pytest.raises(ConfigError, match="unknown modality of mmfl 'smell'"):
        prepared(given, modalities=["smell"])
    with pytest.raises(ConfigError, match="'nowhere' is no part of the model"):
        prepared(given, decoder="nowhere")


def test_a_specification_gives_one_rate_or_several():
    assert build({"name": "mmfl", "rates": [0.1, 0.01]}).rates == (0.1, 0.01)
    assert build({"name": "mmfl", "rates": 0.1}).rates == (0.1,)
    with pytest.raises(ConfigError, match="rates"):
        build({"name": "mmfl", "rates": "fast"})
    with pytest.raises(ConfigError, match="must be a list"):
        build({"name": "mmfl", "rates": True})
