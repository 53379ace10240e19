"""The encoders: sizes, and a signal through lax's own convolution and pooling."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.modalities import Modalities
from idiolect.models import build, complete_spec
from idiolect.models.adapt import check_model
from idiolect.models.multimodal import (
    FUSIONS,
    Attention,
    Concatenation,
    Dense,
    Signal,
    Text,
    branch,
    branches,
    joined,
    lstm,
    modalities_of,
    multimodal,
)
from tests.modalities import LAYOUT, MODEL, close, samples, without
from tests.tiers import second

KEY = jax.random.key(0)


@eqx.filter_jit
def outputs(encoder, x):
    return encoder(x)


@eqx.filter_jit
def states(encoder, h):
    return encoder.recurrent(h).mean(axis=0)


def test_the_published_sizes_have_the_published_number_of_parameters():
    encoder = eqx.filter_eval_shape(Signal, (128, 3), 128, channels=(32, 64, 128), key=KEY)
    assert sum(leaf.size for leaf in jax.tree.leaves(encoder)) == 150_976


@pytest.mark.parametrize("pool", [1, 2, 3])
def test_a_signal_is_convolved_pooled_and_averaged_over_the_states(pool):
    encoder = Signal((11, 2), 4, channels=(3, 5), kernel=4, pool=pool, key=KEY)
    x = jax.random.normal(jax.random.key(1), (11, 2))

    @jax.jit
    def features(h):
        for layer in encoder.convolutions:
            layout = ("NHC", "HIO", "NHC")
            h = jax.lax.conv_general_dilated(h[None], layer.weight[:, 0], (1,), "SAME", dimension_numbers=layout)[0]
            h = jax.nn.relu(h + layer.bias)
            h = jnp.stack([h[i : i + pool].max(axis=0) for i in range(0, len(h) - pool + 1, pool)])
        return h

    np.testing.assert_allclose(outputs(encoder, x), states(encoder, features(x)), atol=1e-6)


def test_without_convolutions_it_is_the_gru_alone():
    encoder, x = Signal((5, 3), 4, channels=(), key=KEY), jax.random.normal(KEY, (5, 3))
    np.testing.assert_allclose(outputs(encoder, x), states(encoder, x), atol=1e-6)


def test_a_feature_vector_goes_through_a_perceptron_with_relu():
    encoder, x = Dense((5,), 4, hidden=(6,), key=KEY), jax.random.normal(KEY, (5,))
    first, second = encoder.layers.layers
    expected = np.maximum(second(jax.nn.relu(first(x))), 0)
    np.testing.assert_allclose(outputs(encoder, x), expected, atol=1e-6)
    assert (expected == 0).any()


def test_a_text_is_the_mean_of_the_states_over_its_words_wherever_padding_stands():
    encoder, words = Text((9, 3), 4, key=KEY), np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    expected = encoder.recurrent(jnp.asarray(words)).mean(axis=0)
    for places in ([0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [0, 2, 3, 5, 8]):
        x = np.zeros((9, 3), np.float32)
        x[places] = words
        np.testing.assert_allclose(outputs(encoder, jnp.asarray(x)), expected, atol=1e-6)
    np.testing.assert_array_equal(outputs(encoder, jnp.zeros((9, 3))), 0)
    slope = jax.grad(lambda e: e(jnp.zeros((9, 3))).sum())(encoder)
    assert all(not leaf.any() for leaf in jax.tree.leaves(slope))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="a signal of 7 times is too short for 3 poolings of 2"):
        Signal((7, 3), 4, channels=(2, 2, 2), key=KEY)
    with pytest.raises(ConfigError, match=r"a signal must be \(time, channels\), not \(7,\)"):
        Signal((7,), 4, key=KEY)
    with pytest.raises(ConfigError, match=r"a text must be \(words, numbers\), not \(7,\)"):
        Text((7,), 4, key=KEY)


NAMES, WIDTH = ("acc", "gyro", "text"), 4
RNG = np.random.default_rng(0)
FEATURES = {name: jnp.asarray(RNG.normal(size=WIDTH), jnp.float32) for name in NAMES}


def flags(*there: str) -> dict[str, jax.Array]:
    return {name: jnp.asarray(float(name in there)) for name in NAMES}


def made(kind: str) -> Concatenation | Attention:
    return FUSIONS[kind](NAMES, WIDTH, (5,), 3, key=KEY)


@pytest.mark.parametrize("there", [NAMES, ("acc", "text"), ("gyro",), ()])
def test_concatenation_has_zeros_in_the_place_of_what_is_absent(there: tuple[str, ...]) -> None:
    head = made("concat")
    joined = np.concatenate([FEATURES[name] * (name in there) for name in NAMES])
    np.testing.assert_allclose(head(FEATURES, flags(*there)), head.head(jnp.asarray(joined)), atol=1e-6)
    given = {name: FEATURES[name] for name in there}
    np.testing.assert_allclose(head(given, flags(*there)), head.head(jnp.asarray(joined)), atol=1e-6)


@pytest.mark.parametrize("there", [NAMES, ("acc", "text"), ("gyro",)])
def test_attention_is_the_mean_of_what_is_present_by_the_softmax_of_the_scores(there: tuple[str, ...]) -> None:
    head = made("attention")
    rows = np.stack([FEATURES[name] for name in there])
    hidden = np.tanh(rows @ np.asarray(head.hidden.weight).T + head.hidden.bias)
    scores = hidden @ np.asarray(head.score.weight)[0]
    weights = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(head(FEATURES, flags(*there)), head.head(jnp.asarray(weights @ rows)), atol=1e-6)


@pytest.mark.parametrize("kind", FUSIONS)
def test_what_is_absent_counts_for_nothing_even_if_it_is_not_a_number(kind: str) -> None:
    head = made(kind)
    spoilt = FEATURES | {"gyro": jnp.full(WIDTH, jnp.nan)}
    np.testing.assert_array_equal(head(spoilt, flags("acc", "text")), head(FEATURES, flags("acc", "text")))
    nothing = head(FEATURES, flags())
    np.testing.assert_allclose(nothing, head.head(jnp.zeros(WIDTH * (3 if kind == "concat" else 1))), atol=1e-6)
    slope = jax.grad(lambda h: head(h, flags("acc", "text")).sum())(FEATURES)
    assert not slope["gyro"].any()
    assert slope["acc"].any()


def test_the_parts_of_a_head_are_drawn_apart_in_single_precision() -> None:
    leaves = jax.tree.leaves(made("attention"))
    assert all(leaf.dtype == jnp.float32 for leaf in leaves)
    assert made("attention").score.bias is None
    assert made("concat").head.layers[0].weight.shape == (5, 3 * WIDTH)
    assert made("attention").head.layers[0].weight.shape == (5, WIDTH)
    starts = {np.asarray(leaf).ravel()[:3].tobytes() for leaf in leaves}
    assert len(starts) == len(leaves)


X, Y = (jnp.asarray(part) for part in samples(5, LAYOUT.names, RNG))


def made_multimodal(**changes):
    return eqx.filter_jit(lambda: build(MODEL | changes, (LAYOUT.width,), 3, "classification", KEY, LAYOUT))()


@eqx.filter_jit
def outputs_multimodal(model, x):
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


@pytest.mark.parametrize("fusion", [second("late"), "concat", second("attention")])
def test_it_fits_the_data(fusion):
    check_model(made_multimodal(fusion=fusion), (LAYOUT.width,), 3)


def test_late_fusion_has_the_probabilities_of_the_mean_of_the_log_probabilities():
    model = made_multimodal()
    logs = [jax.nn.log_softmax(alone(model, name)) for name in LAYOUT.names]
    close(jax.nn.softmax(outputs_multimodal(model, X)), jax.nn.softmax(sum(logs) / 3))


def test_a_tree_of_some_branches_is_the_model_of_these():
    model = made_multimodal()
    parts = branches(model)
    assert list(parts) == list(LAYOUT.names)
    for name, part in parts.items():
        assert part.branches == (name,)
        close(outputs_multimodal(part, X), alone(model, name))
    both = joined({name: parts[name] for name in ("acc", "text")})
    close(outputs_multimodal(both, X), (alone(model, "acc") + alone(model, "text")) / 2)
    close(outputs_multimodal(joined(parts), X), outputs_multimodal(model, X))
    trees = (jax.tree.leaves(branch(model, name)) for name in LAYOUT.names)
    assert sum(map(len, trees)) == len(jax.tree.leaves(model))
    with pytest.raises(ConfigError, match="no modality with both"):
        jax.tree.map(lambda _: None, model)(X[0])


@pytest.mark.parametrize("fusion", [second("late"), second("concat"), "attention"])
def test_an_absent_modality_changes_no_output_and_gets_no_gradient(fusion):
    model = made_multimodal(fusion=fusion)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    gone = spoilt(X, "gyro")
    rest = without(X, "gyro")
    np.testing.assert_array_equal(outputs_multimodal(model, gone), outputs_multimodal(model, rest))
    slope = jax.jit(jax.grad(lambda p: jnp.sum(jax.vmap(eqx.combine(p, static))(gone) ** 2)))(params)
    for part in (slope.encoders["gyro"], slope.decoders["gyro"]):
        assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(part))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
    assert np.asarray(jax.tree.leaves(slope.encoders["acc"])[0]).any()


@pytest.mark.parametrize("fusion", ["late", "attention"])
def test_one_modality_that_is_left_has_all_the_weight(fusion):
    model = made_multimodal(fusion=fusion)
    only = without(without(X, "gyro"), "text")
    if fusion == "late":
        expected = alone(model, "acc")
    else:
        expected = jax.jit(jax.vmap(lambda x: model.fusion.head(model.encoders["acc"](LAYOUT.part(x, "acc")))))(X)
    close(outputs_multimodal(model, only), expected)


def test_a_sample_is_usable_if_it_has_one_of_the_models_modalities():
    x = np.concatenate([without(X[:2], "acc"), without(without(X[2:4], "text"), "gyro"), X[4:]])
    text, whole = branch(made_multimodal(), "text"), made_multimodal(fusion="concat")
    np.testing.assert_array_equal(jax.vmap(text.usable)(x), [1, 1, 0, 0, 1])
    np.testing.assert_array_equal(jax.vmap(whole.usable)(x), np.ones(5))


def test_a_model_of_some_modalities_and_encoders_by_name():
    model = made_multimodal(modalities=["text", "acc"], encoder={"acc": "gru"})
    assert list(model.encoders) == ["acc", "text"]
    assert not model.encoders["acc"].convolutions
    assert isinstance(made_multimodal(encoder={"acc": "text"}).encoders["acc"], Text)
    assert made_multimodal(modalities="text").branches == ("text",)
    for changes, message in (
        ({"modalities": ["smell"]}, "unknown modality 'smell'"),
        ({"encoder": {"smell": "mlp"}}, "unknown modality 'smell'"),
        ({"encoder": "signals"}, "did you mean 'signal'"),
        ({"modalities": 3}, "must be a list of names"),
        ({"encoder": "signal"}, r"modality 'text' is \(5,\); use mlp"),
        ({"fusion": "early"}, "unknown fusion 'early'"),
    ):
        with pytest.raises(ConfigError, match=message):
            made_multimodal(**changes)
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


PACKED_LAYOUT = Modalities(("acc", "text", "tab"), ((16, 3), (7, 5), (6,)))
SPEC = {
    "modalities": None,
    "features": 4,
    "decoder": [5],
    "encoder": "auto",
    "channels": [3],
    "kernel": 3,
    "pool": 2,
    "dense": [8],
    "fusion": "late",
}


def made_packed(**changes: Any) -> Any:
    return multimodal(SPEC | changes, PACKED_LAYOUT, 3, KEY)


def test_a_modality_over_time_is_a_signal_and_another_a_vector() -> None:
    model = made_packed()
    assert [type(model.encoders[name]) for name in PACKED_LAYOUT.names] == [Signal, Signal, Dense]
    assert model.fusion is None
    assert {name: decoder.layers[-1].weight.shape for name, decoder in model.decoders.items()} == dict.fromkeys(
        PACKED_LAYOUT.names, (3, 5)
    )
    signal, dense = model.encoders["acc"], model.encoders["tab"]
    assert [layer.weight.shape[-1] for layer in signal.convolutions] == [3]
    assert signal.convolutions[0].weight.shape[0] == 3
    assert signal.pool == 2
    assert dense.layers.layers[0].weight.shape == (8, 6)


def test_the_kinds_of_encoders() -> None:
    model = made_packed(encoder={"acc": "gru", "text": "text"})
    assert model.encoders["acc"].convolutions == ()
    assert isinstance(model.encoders["text"], Text)
    assert isinstance(model.encoders["tab"], Dense)  # not named, so by its shape
    assert all(isinstance(encoder, Dense) for encoder in made_packed(encoder="mlp").encoders.values())


@pytest.mark.parametrize(("fusion", "kind"), [("concat", Concatenation), ("attention", Attention)])
def test_the_head_that_fuses(fusion: str, kind: type) -> None:
    assert isinstance(made_packed(fusion=fusion).fusion, kind)


def test_a_branch_starts_alike_whatever_the_others_are() -> None:
    whole, some = made_packed(), made_packed(modalities=["tab", "acc"])
    assert list(some.encoders) == ["acc", "tab"]
    for name in some.encoders:
        for part in ("encoders", "decoders"):
            pairs = zip(*(jax.tree.leaves(getattr(model, part)[name]) for model in (whole, some)), strict=True)
            for a, b in pairs:
                np.testing.assert_array_equal(a, b)
    first = [np.asarray(jax.tree.leaves(whole.decoders[name])[0]).tobytes() for name in PACKED_LAYOUT.names]
    assert len(set(first)) == 3


def test_the_lstm_has_the_inputs_of_all_its_modalities() -> None:
    layout = Modalities(("a", "b", "c"), ((8, 3), (8, 2), (5,)))
    model: Any = lstm({"modalities": ["c", "a"], "features": 4, "decoder": [5]}, layout, 2, KEY)
    assert model.recurrent.gates.of_input.shape == (4 * 4, 8)
    assert model.decoder.layers[-1].weight.shape == (2, 5)
    with pytest.raises(ConfigError, match=r"one length at each time; these have the shapes \[\(16, 3\), \(7, 5\)"):
        lstm({"modalities": None, "features": 4, "decoder": []}, PACKED_LAYOUT, 2, KEY)
    deep = Modalities(("a",), ((8, 3, 2),))
    with pytest.raises(ConfigError, match="use multimodal"):
        lstm({"modalities": None, "features": 4, "decoder": []}, deep, 2, KEY)


def test_modalities_are_taken_in_the_samples_order() -> None:
    assert modalities_of({"modalities": None}, PACKED_LAYOUT) == PACKED_LAYOUT.names
    assert modalities_of({"modalities": ["tab", "acc"]}, PACKED_LAYOUT) == ("acc", "tab")
    with pytest.raises(ConfigError, match="unknown modality 'txt'; did you mean 'text'"):
        modalities_of({"modalities": ["acc", "txt"]}, PACKED_LAYOUT)


@pytest.mark.parametrize("kind", ["signal", "gru", "text"])
def test_an_encoder_over_time_needs_time(kind: str) -> None:
    with pytest.raises(ConfigError, match=rf"encoder '{kind}' needs .*modality 'tab' is \(6,\); use mlp"):
        made_packed(encoder={"tab": kind})


def test_values_of_a_specification() -> None:
    def read(key: str, value: Any) -> Any:
        return complete_spec({"name": "multimodal", key: value})[key]

    assert read("modalities", None) is None
    assert read("modalities", "acc") == ["acc"]
    assert read("modalities", ["acc", "tab"]) == ["acc", "tab"]
    for bad in ([], 3, ["acc", 3]):
        with pytest.raises(ConfigError, match=r"modalities .*must be .*a list of names"):
            read("modalities", bad)
    assert read("encoder", "gru") == "gru"
    assert read("encoder", {"acc": "mlp", "tab": "auto"}) == {"acc": "mlp", "tab": "auto"}
    for bad in ("signl", {"acc": "signl"}):
        with pytest.raises(ConfigError, match="unknown encoder 'signl'; did you mean 'signal'"):
            read("encoder", bad)


def test_by_name_with_the_defaults() -> None:
    model: Any = build(
        {"name": "multimodal", "modalities": ["acc"]}, (PACKED_LAYOUT.width,), 3, "classification", KEY, PACKED_LAYOUT
    )
    assert [layer.weight.shape[-1] for layer in model.encoders["acc"].convolutions] == [16, 32, 32]
