"""Clusters on quadratics, where every step and every loss is known, and on messages written by hand."""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Cohort
from idiolect.algorithms.parts.modality_clusters import WHOLE, Clusters, ModalityClusters, Trained
from idiolect.client.predictor import Shared
from idiolect.core.errors import ConfigError
from idiolect.data.modalities import Modalities
from idiolect.models import build
from idiolect.models.multimodal import branches
from idiolect.models.parts import separate
from tests.federations import DIM, flat, quadratics, start_with
from tests.modalities import FLAT, MODEL
from tests.modalities import problem as of_modalities
from tests.tiers import second

KEY = jax.random.key(5)


class Clustered(ModalityClusters):
    name: ClassVar[str] = "clustered"
    summary: ClassVar[str] = "test"
    source: ClassVar[str] = "test"
    model_names: ClassVar[tuple[str, ...]] = ("global", "personal")


class Known(Clustered):
    """Training adds one, and of the model's two parts a client has samples for x alone."""

    def trained(self, start, client, key):
        samples = 0.0 if start["x"] is None else 4.0
        return Trained(jax.tree.map(lambda leaf: leaf + 1, start), jnp.asarray(samples), jnp.asarray(0))


TWO = {"x": {"x": jnp.asarray([1.0, 2.0]), "y": None}, "y": {"x": None, "y": jnp.asarray([3.0])}}


def clustered(**changes):
    return Clustered(**{"rates": (0.1,), "batch_size": 0, "local_steps": 3, "decoder": "tail"} | changes)


@eqx.filter_jit
def trained(method, start, client):
    return method.trained(start, client, KEY)


@eqx.filter_jit
def losses(method, start, client):
    return method.losses(start, client, KEY)


@pytest.fixture(scope="module")
def problem():
    return quadratics()


@pytest.fixture(scope="module")
def noisy():
    return quadratics((3, 1, 6, 2), noise=1.0)


@pytest.fixture(scope="module")
def multimodal():
    return of_modalities(**FLAT)


def by_hand(problem, index, rate, centres, update="simultaneous"):
    """A step for each centre, of the whole or of the encoder (the first two numbers) and then the decoder."""
    theta, parts = flat(problem.params).astype(float), (slice(0, DIM),)
    if update == "sequential":
        parts = slice(0, 2), slice(2, DIM)
    for centre in centres:
        for part in parts:
            theta[part] -= rate * (problem.a[index] @ (theta - centre))[part]
    return theta


# ---- steps of a client


@pytest.mark.parametrize("update", ["sequential", "simultaneous"])
def test_the_decoders_step_is_made_at_the_new_encoder_or_with_it(problem, update):
    sent = trained(clustered(update=update), problem.params, problem.client(2))
    np.testing.assert_allclose(flat(sent.params), by_hand(problem, 2, 0.1, [problem.c[2]] * 3, update), atol=1e-5)
    assert (float(sent.samples), int(sent.chosen)) == (6, 0)
    other = {"sequential": "simultaneous", "simultaneous": "sequential"}[update]
    gap = flat(sent.params) - by_hand(problem, 2, 0.1, [problem.c[2]] * 3, other)
    assert np.abs(gap).max() > 1e-3


def test_mini_batches_are_those_of_local_steps(noisy):
    method = clustered(update="simultaneous", batch_size=2, batches="cyclic", local_steps=4)
    x = noisy.data.train.client(2)[0][:, :, DIM].astype(float)
    centres = [x[first : first + 2].mean(axis=0) for first in (0, 2, 4, 0)]
    sent = trained(method, noisy.params, noisy.client(2))
    np.testing.assert_allclose(flat(sent.params), by_hand(noisy, 2, 0.1, centres), atol=1e-5)


def test_epochs_are_passes(problem):
    sent = trained(clustered(update="simultaneous", batch_size=2, epochs=2), problem.params, problem.client(0))
    np.testing.assert_allclose(flat(sent.params), by_hand(problem, 0, 0.1, [problem.c[0]] * 4), atol=1e-5)


def test_the_client_trains_with_the_rate_that_it_chose(problem):
    rates = (0.01, 3e38, 0.3, 0.02)
    sent = trained(clustered(rates=rates), problem.params, problem.client(1))
    assert int(sent.chosen) == 2
    expected = by_hand(problem, 1, 0.3, [problem.c[1]] * 3, "sequential")
    np.testing.assert_allclose(flat(sent.params), expected, atol=1e-5)


# ---- the choice of a rate


@pytest.mark.parametrize("meta_steps", [1, 2, 4])
def test_a_candidate_is_judged_after_its_steps(problem, meta_steps):
    rates, gap = (0.05, 0.3, 0.6), flat(problem.params) - problem.c[3]
    found = losses(clustered(rates=rates, meta_steps=meta_steps), problem.params, problem.client(3))
    for rate, loss in zip(rates, found, strict=True):
        left = np.linalg.matrix_power(np.eye(DIM) - rate * problem.a[3], meta_steps) @ gap
        assert float(loss) == pytest.approx(0.5 * left @ problem.a[3] @ left, rel=1e-4)


def test_a_candidate_steps_on_d_and_is_judged_on_the_other_samples(noisy):
    method, client = clustered(rates=(0.1, 0.3), select_on="held-out", meta_size=2), noisy.client(2)
    d, judge = (np.asarray(batch.x[batch.weight > 0, :, DIM], float) for batch in method.samples(client, KEY))
    theta = flat(noisy.params)
    for rate, loss in zip(method.rates, losses(method, noisy.params, client), strict=True):
        gaps = theta - rate * noisy.a[2] @ (theta - d.mean(axis=0)) - judge
        assert float(loss) == pytest.approx(np.mean([0.5 * gap @ noisy.a[2] @ gap for gap in gaps]), rel=1e-4)


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        second((0.01, 0.3), 1),
        ((0.3, 0.01), 0),
        ((0.01, 0.3, 0.3), 1),
        second((3e38, 0.01), 1),
        ((1e20, 3e38, 0.01), 2),
    ],
)
def test_the_rate_of_the_least_finite_loss_is_chosen_and_the_first_of_equals(problem, rates, best):
    method, client = clustered(rates=rates), problem.client(2)
    assert int(eqx.filter_jit(lambda m, p, c: m.choice(p, c, KEY))(method, problem.params, client)) == best
    found = np.asarray(losses(method, problem.params, client))
    assert [np.isfinite(loss) for loss in found] == [rate < 1 for rate in rates]


def test_a_single_rate_is_not_chosen(problem):
    class Asked(Clustered):
        def losses(self, start, client, key):
            raise AssertionError("nothing is to be compared")

    assert int(Asked(rates=0.5).choice(problem.params, problem.client(0), KEY)) == 0


def rows_of(batch):
    return [row.tobytes() for row in np.asarray(batch.x)[np.asarray(batch.weight) > 0]]


@pytest.mark.parametrize(
    ("index", "meta_size", "count"), [(2, 1, 1), (2, 2, 2), (2, 3, 3), (2, 50, 3), (0, 2, 1), (3, 50, 1)]
)
def test_held_out_samples_are_others_and_as_many(noisy, index, meta_size, count):
    d, judge = clustered(meta_size=meta_size, select_on="held-out").samples(noisy.client(index), KEY)
    assert len(rows_of(d)) == len(rows_of(judge)) == count
    assert len({*rows_of(d), *rows_of(judge)}) == 2 * count


def test_a_client_with_one_sample_is_judged_on_it(noisy):
    d, judge = clustered(meta_size=4, select_on="held-out").samples(noisy.client(1), KEY)
    assert rows_of(d) == rows_of(judge) == [noisy.data.train.client(1)[0][0].tobytes()]


def test_by_default_the_samples_are_the_same_and_drawn_anew_with_each_key(noisy):
    method, client = clustered(meta_size=4), noisy.client(2)
    drawn = [method.samples(client, key) for key in jax.random.split(KEY, 4)]
    assert all(d is judge for d, judge in drawn)
    assert all(len({*rows_of(d)}) == 4 for d, _ in drawn)
    assert len({frozenset(rows_of(d)) for d, _ in drawn}) > 1
    assert len(rows_of(method.samples(noisy.client(3), KEY)[0])) == 2


# ---- the server


@pytest.mark.parametrize("weighting", ["uniform", "size"])
def test_a_cluster_is_the_mean_over_its_clients_that_took_part(weighting):
    method = clustered(rates=(0.1, 0.2, 0.3), weighting=weighting)
    old, nobody = jnp.asarray([7.0, 8.0]), jnp.zeros(3)
    shared = Clusters({"a": old, "b": old}, {"a": nobody + 0.5, "b": nobody + 0.25})
    sent, chosen = jnp.asarray([[1.0, 2.0], [jnp.nan, 0.0], [4.0, 8.0], [16.0, 32.0]]), jnp.asarray([2, 0, 2, 1])
    messages = {
        "a": Trained(sent, jnp.asarray([3.0, 0.0, 6.0, 9.0]), chosen),
        "b": Trained(sent, jnp.asarray([0.0, 0.0, 0.0, 9.0]), chosen),
    }
    present = jnp.asarray([True, True, True, False])
    cohort = Cohort(jnp.arange(4), jnp.full(4, 50.0), present, 9, jnp.asarray(99.0), 4)
    after = method.aggregate(shared, cohort, messages)
    expected = [3.0, 6.0] if weighting == "size" else [2.5, 5.0]
    np.testing.assert_allclose(after.params["a"], expected, rtol=1e-6)
    np.testing.assert_array_equal(after.chosen["a"], [0, 0, 1])
    np.testing.assert_array_equal(after.params["b"], old)
    np.testing.assert_array_equal(after.chosen["b"], [0.25] * 3)
    again = method.aggregate(shared, cohort._replace(present=jnp.ones(4, bool)), messages)
    np.testing.assert_allclose(again.chosen["a"], [0, 1 / 3, 2 / 3], rtol=1e-6)
    np.testing.assert_array_equal(again.params["b"], [16, 32])


def test_diagnostics_are_the_shares_by_rate_and_modality():
    method, shares = clustered(rates=(0.1, 0.2)), {"a": jnp.asarray([0.25, 0.75]), "b": jnp.asarray([1.0, 0.0])}
    said = method.diagnostics(Clusters({}, shares))
    assert {name: float(share) for name, share in said.items()} == {
        "took rate 1 (a)": 0.25, "took rate 2 (a)": 0.75, "took rate 1 (b)": 1, "took rate 2 (b)": 0}  # fmt: skip
    assert [*method.diagnostics(Clusters({}, {WHOLE: shares["a"]}))] == ["took rate 1", "took rate 2"]
    assert clustered().diagnostics(Clusters({}, {WHOLE: jnp.ones(1)})) == {}


def test_a_message_and_the_models_are_of_each_modality(problem):
    method, client, private = Known(rates=0.1), problem.client(0), {"own": jnp.ones(1)}
    message, kept = method.local(TWO, private, client, KEY)
    assert kept is private
    assert [*message] == ["x", "y"]
    np.testing.assert_array_equal(message["x"].params["x"], [2, 3])
    models = method.models(TWO, private, client, KEY)
    assert [*models] == ["global", "personal", "x", "y", "personal x", "personal y"]
    assert [name for name, model in models.items() if isinstance(model, Shared)] == ["global", "x", "y"]
    assert {name: flat(getattr(model, "model", model)).tolist() for name, model in models.items()} == {
        "global": [1, 2, 3], "x": [1, 2], "y": [3],
        "personal": [2, 3, 3], "personal x": [2, 3], "personal y": [3],  # without the modality the server's
    }  # fmt: skip
    assert [*method.models({WHOLE: TWO["x"]}, None, client, KEY)] == ["global", "personal"]


# ---- the model's parts


def test_a_model_without_modalities_is_one_cluster(problem):
    method, start = clustered(rates=(0.1, 0.2)), start_with(problem.params)
    shared = method.init(start, KEY)
    assert [*shared.params] == [*shared.chosen] == [WHOLE]
    np.testing.assert_array_equal(flat(shared.params), flat(problem.params))
    np.testing.assert_array_equal(shared.chosen[WHOLE], [0, 0])
    assert method.view(shared, jnp.asarray(1)) is shared.params
    assert method.offered(start) == ("global", "personal")
    method.check_start(start)


def test_a_model_of_modalities_has_a_cluster_of_each_that_is_trained(multimodal):
    start, parts = start_with(multimodal.params), branches(multimodal.params)
    assert clustered().offered(start) == ("global", "personal", "acc", "personal acc", "text", "personal text")
    assert eqx.tree_equal(clustered().clusters(multimodal.params), parts)
    one = clustered(modalities="text")
    assert one.offered(start) == ("global", "personal")
    assert eqx.tree_equal(one.clusters(multimodal.params), {"text": parts["text"]})


def test_the_decoder_is_the_models_own_or_the_part_that_is_named(multimodal):
    plain = eqx.filter(build("mlp", (4,), 3, "classification", KEY), eqx.is_inexact_array)
    of_text = branches(multimodal.params)["text"]
    for params, decoder, head in ((plain, "model", "last"), (of_text, "model", "decoders"), (plain, "all", "all"),
                                  (of_text, "encoders", "encoders")):  # fmt: skip
        assert eqx.tree_equal(clustered(decoder=decoder).parts(params), separate(params, head))


def test_what_the_model_does_not_have_is_refused(multimodal):
    start = start_with(multimodal.params)
    clustered(decoder="model", modalities=("text", "acc")).check_start(start)
    with pytest.raises(ConfigError, match="unknown modality of clustered 'smell'"):
        clustered(decoder="model", modalities=("text", "smell")).check_start(start)
    with pytest.raises(ConfigError, match="clustered: decoder = 'tail' is no part of the model"):
        clustered().check_start(start)
    layout = Modalities(("global", "text"), ((3,), (5,)))
    model = build(MODEL | FLAT | {"modalities": None}, (layout.width,), 3, "classification", KEY, layout)
    start = replace(start, params=eqx.filter(model, eqx.is_inexact_array))
    with pytest.raises(ConfigError, match=r"a modality cannot be called \['global'\], like a model"):
        clustered(decoder="model").check_start(start)


def test_one_value_stands_for_several():
    assert (clustered(rates=0.5).rates, clustered(rates=[0.5, 0.25]).rates) == ((0.5,), (0.5, 0.25))
    assert (clustered(modalities="text").modalities, clustered().modalities) == (("text",), ())
    assert Clustered().rates == (0.01, 0.001, 0.0001)


@pytest.mark.parametrize(
    "changes",
    [{"rates": ()}, {"rates": (0.1, 0.0)}, {"meta_size": 0}, {"meta_steps": 0}, {"update": "both"},
     {"select_on": "test"}, {"weighting": "loss"}, {"batch_size": -1}],
)  # fmt: skip
def test_what_is_out_of_range_is_named(changes):
    with pytest.raises(ConfigError, match=f"clustered: {next(iter(changes))}"):
        clustered(**changes)
