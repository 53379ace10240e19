"""mmFL against its equations written out, against FedAvg, and by brute force."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.mmfl import MmFL
from idiolect.algorithms.registry import build
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.models.multimodal import branches
from idiolect.models.parts import separate
from tests import contract
from tests.algorithms.mmfl_runs import choice, mmfl, trained
from tests.federations import run
from tests.modalities import FLAT, SIZES, close, problem, value_and_slope
from tests.tiers import second

KEY = jax.random.key(5)


@eqx.filter_jit
def slopes(objective, encoder, decoder, batch):
    """The gradients of the mean cross-entropy with respect to both parts, from its definition."""

    def loss(encoder, decoder):
        model = eqx.combine(encoder, decoder, objective.static)
        losses = jax.vmap(lambda x, y: -jax.nn.log_softmax(model(x))[y])(batch.x, batch.y)
        return jnp.sum(losses * batch.weight) / jnp.sum(batch.weight)

    return jax.grad(loss, (0, 1))(encoder, decoder)


def by_hand(given, params, index, rate, update, steps=3):
    """T encoder and decoder steps of one client with plain gradients."""
    batches = given.client(index).batches(stream(jax.random.key(0), "local", 0, index), steps, 4, "fresh")
    for step in range(steps):
        encoder, decoder = separate(params, "decoders")
        batch = jax.tree.map(lambda leaf, step=step: leaf[step], batches)
        for_encoder, for_decoder = slopes(given.objective, encoder, decoder, batch)
        new = tree.add_scaled(encoder, -rate, for_encoder)
        if update == "sequential":
            for_decoder = slopes(given.objective, new, decoder, batch)[1]
        params = tree.merged(tree.add_scaled(decoder, -rate, for_decoder), new)
    return params


@pytest.mark.second
@pytest.mark.parametrize("update", ["sequential", "simultaneous"])
def test_one_rate_is_federated_averaging_of_the_split_model(update):
    given = problem(**FLAT)
    state = run(given.simulation(mmfl(update=update)))
    for name, start in branches(given.params).items():
        ends = [by_hand(given, start, i, 0.3, update) for i in range(len(SIZES))]
        mean = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *ends)
        close(state.shared.params[name], mean)
        assert not np.allclose(jax.tree.leaves(mean)[0], jax.tree.leaves(start)[0], atol=1e-3)


def test_one_modality_without_a_split_is_fedavg():
    given = problem(**FLAT | {"modalities": ["acc"]})
    options = {"local_steps": 3, "batch_size": 4, "weighting": "size"}
    ours = run(given.simulation(MmFL(rates=0.3, update="simultaneous", **options), cohort=2), 3)
    theirs = run(given.simulation(FedAvg(rate=0.3, **options), cohort=2), 3)
    close(ours.shared.params["acc"], theirs.shared.params)


@pytest.mark.second
def test_sequential_and_simultaneous_steps_differ_by_the_square_of_the_rate(x64):
    given = problem(dtype=np.float64, **FLAT | {"modalities": ["acc"]})
    start, rates = branches(given.params)["acc"], np.geomspace(1e-4, 1e-2, 5)
    gaps = []
    for rate in rates:
        ends = [
            trained(mmfl(rates=jnp.asarray(rate), update=update), start, given.client(0), KEY).params
            for update in ("sequential", "simultaneous")
        ]
        gaps.append(float(jnp.sqrt(tree.squared_norm(tree.subtract(*ends)))))
    slope = np.polyfit(np.log(rates), np.log(gaps), 1)[0]
    assert abs(slope - 2) < 0.1


@pytest.mark.parametrize("select_on", ["same", second("held-out")])
def test_the_chosen_rate_is_the_argmin_by_brute_force(select_on):
    given = problem(l2=0.1, **FLAT | {"modalities": ["acc"]})
    start, rates = branches(given.params)["acc"], (3e-3, 0.4, 0.8, 1.6, 3.2, 1e30)
    method = mmfl(rates=rates, meta_size=4, meta_steps=3, select_on=select_on, modalities="acc")
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


@pytest.mark.parametrize("meta_steps", [second(1), second(2), 4])
def test_a_candidate_is_judged_after_just_meta_steps_steps(meta_steps):
    """F(theta_temp, d) after T_temp steps of each rate, not one more and not one less."""
    given = problem(l2=0.1, **FLAT | {"modalities": ["acc"]})
    start, rates = branches(given.params)["acc"], (0.05, 0.4)
    method = mmfl(rates=rates, meta_size=4, meta_steps=meta_steps, modalities="acc")
    client = given.client(0)
    d, _ = method.samples(client, KEY)
    for rate, loss in zip(rates, np.asarray(jax.jit(method.losses)(start, client, KEY)), strict=True):
        params, course = start, []
        for _ in range(meta_steps + 2):
            value, slope = value_and_slope(given.objective, params, d)
            course.append(float(value))
            params = tree.add_scaled(params, -rate, slope)
        np.testing.assert_allclose(loss, course[meta_steps], rtol=1e-5)
        assert abs(course[meta_steps + 1] - course[meta_steps]) > 1e-3 * course[meta_steps]


def test_the_client_trains_with_the_rate_that_it_chose():
    given = problem(**FLAT | {"modalities": ["acc"]})
    start = branches(given.params)["acc"]
    method = mmfl(rates=(1e-3, 0.3), meta_size=4)
    sent = trained(method, start, given.client(0), KEY)
    alone = mmfl(rates=((1e-3, 0.3)[int(sent.chosen)],))
    close(sent.params, trained(alone, start, given.client(0), KEY).params)
    assert int(sent.samples) == SIZES[0]


@pytest.mark.second
def test_how_it_is_executed_changes_nothing():
    contract.is_the_same_however_executed(
        MmFL(rates=(0.1, 0.01), decoder="tail", local_steps=2, batch_size=2), rounds=2
    )


def test_padding_is_ignored_and_nothing_is_kept():
    method = MmFL(rates=(0.1, 0.01), decoder="tail", local_steps=2, batch_size=2)
    contract.ignores_padding(method)
    contract.keeps_nothing(method)


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
        given.simulation(mmfl(modalities=["smell"]))
    with pytest.raises(ConfigError, match="'nowhere' is no part of the model"):
        given.simulation(mmfl(decoder="nowhere"))


def test_a_specification_gives_one_rate_or_several():
    assert build({"name": "mmfl", "rates": [0.1, 0.01]}).rates == (0.1, 0.01)
    assert build({"name": "mmfl", "rates": 0.1}).rates == (0.1,)
    with pytest.raises(ConfigError, match="rates"):
        build({"name": "mmfl", "rates": "fast"})
    with pytest.raises(ConfigError, match="must be a list"):
        build({"name": "mmfl", "rates": True})
