"""Models of several modalities: which branches take part, and that an absent one is nothing at all."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.models import build
from idiolect.models.check import check_model
from idiolect.models.encoders import Text
from idiolect.models.multimodal import branch, branches, joined
from tests.modalities import LAYOUT, MODEL, close, samples, without

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X, Y = (jnp.asarray(part) for part in samples(5, LAYOUT.names, RNG))


def made(**changes):
    return eqx.filter_jit(lambda: build(MODEL | changes, (LAYOUT.width,), 3, "classification", KEY, LAYOUT))()


@eqx.filter_jit
def outputs(model, x):
    """The model's outputs for samples."""
    return jax.vmap(model)(x)


@eqx.filter_jit
def alone(model, name):
    """One branch's outputs, from its encoder and its decoder."""
    return jax.vmap(lambda x: model.decoders[name](model.encoders[name](LAYOUT.part(x, name))))(X)


def spoilt(x, name):
    """Samples without a modality, that hold NaN where it would be."""
    x = np.array(without(x, name))
    np.asarray(LAYOUT.part(x, name))[:] = np.nan
    return jnp.asarray(x)


@pytest.mark.parametrize("fusion", ["late", "concat", "attention"])
def test_it_fits_the_data(fusion):
    check_model(made(fusion=fusion), (LAYOUT.width,), 3)


def test_late_fusion_has_the_probabilities_of_the_mean_of_the_log_probabilities():
    model = made()
    logs = [jax.nn.log_softmax(alone(model, name)) for name in LAYOUT.names]
    close(jax.nn.softmax(outputs(model, X)), jax.nn.softmax(sum(logs) / 3))


def test_a_tree_of_some_branches_is_the_model_of_these():
    model = made()
    parts = branches(model)
    assert list(parts) == list(LAYOUT.names)
    for name, part in parts.items():
        assert part.branches == (name,)
        close(outputs(part, X), alone(model, name))
    both = joined({name: parts[name] for name in ("acc", "text")})
    close(outputs(both, X), (alone(model, "acc") + alone(model, "text")) / 2)
    close(outputs(joined(parts), X), outputs(model, X))
    trees = (jax.tree.leaves(branch(model, name)) for name in LAYOUT.names)
    assert sum(map(len, trees)) == len(jax.tree.leaves(model))
    with pytest.raises(ConfigError, match="no modality with both"):
        jax.tree.map(lambda _: None, model)(X[0])


@pytest.mark.parametrize("fusion", ["late", "concat", "attention"])
def test_an_absent_modality_changes_no_output_and_gets_no_gradient(fusion):
    model = made(fusion=fusion)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    gone = spoilt(X, "gyro")
    rest = without(X, "gyro")
    np.testing.assert_array_equal(outputs(model, gone), outputs(model, rest))
    slope = jax.jit(jax.grad(lambda p: jnp.sum(jax.vmap(eqx.combine(p, static))(gone) ** 2)))(params)
    for part in (slope.encoders["gyro"], slope.decoders["gyro"]):
        assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(part))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
    assert np.asarray(jax.tree.leaves(slope.encoders["acc"])[0]).any()


@pytest.mark.parametrize("fusion", ["late", "attention"])
def test_one_modality_that_is_left_has_all_the_weight(fusion):
    model = made(fusion=fusion)
    only = without(without(X, "gyro"), "text")
    if fusion == "late":
        expected = alone(model, "acc")
    else:
        expected = jax.jit(jax.vmap(lambda x: model.fusion.head(model.encoders["acc"](LAYOUT.part(x, "acc")))))(X)
    close(outputs(model, only), expected)


def test_a_sample_is_usable_if_it_has_one_of_the_models_modalities():
    x = np.concatenate([without(X[:2], "acc"), without(without(X[2:4], "text"), "gyro"), X[4:]])
    text, whole = branch(made(), "text"), made(fusion="concat")
    np.testing.assert_array_equal(jax.vmap(text.usable)(x), [1, 1, 0, 0, 1])
    np.testing.assert_array_equal(jax.vmap(whole.usable)(x), np.ones(5))


def test_a_model_of_some_modalities_and_encoders_by_name():
    model = made(modalities=["text", "acc"], encoder={"acc": "gru"})
    assert list(model.encoders) == ["acc", "text"]
    assert not model.encoders["acc"].convolutions
    assert isinstance(made(encoder={"acc": "text"}).encoders["acc"], Text)
    assert made(modalities="text").branches == ("text",)
    for changes, message in (
        ({"modalities": ["smell"]}, "unknown modality 'smell'"),
        ({"encoder": {"smell": "mlp"}}, "unknown modality 'smell'"),
        ({"encoder": "signals"}, "did you mean 'signal'"),
        ({"modalities": 3}, "must be a list of names"),
        ({"encoder": "signal"}, r"modality 'text' is \(5,\); use mlp"),
        ({"fusion": "early"}, "unknown fusion 'early'"),
    ):
        with pytest.raises(ConfigError, match=message):
            made(**changes)
    with pytest.raises(ConfigError, match="needs data of several modalities"):
        build(MODEL, (LAYOUT.width,), 3, "classification", KEY)


def test_the_lstm_sees_all_modalities_side_by_side_at_each_time():
    model = build({"name": "lstm", "features": 4}, (LAYOUT.width,), 3, "classification", KEY, LAYOUT)
    x, signals = X[0], [LAYOUT.part(X[0], name) for name in ("acc", "gyro")]
    rows = [np.concatenate([*(signal[t] for signal in signals), LAYOUT.part(x, "text")]) for t in range(8)]
    expected = model.decoder(model.recurrent(jnp.stack(rows))[-1])
    np.testing.assert_allclose(model(x), expected, atol=1e-6)
    np.testing.assert_array_equal(model(spoilt(X, "gyro")[0]), model(jnp.asarray(without(X, "gyro"))[0]))
    assert float(model.usable(x)) == 1
