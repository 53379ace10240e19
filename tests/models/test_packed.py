"""Models of packed samples by specification: which encoder each modality has, and what is refused."""

from typing import Any

import jax
import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.modalities import Modalities
from idiolect.models import build, complete_spec
from idiolect.models.encoders import Dense, Signal, Text
from idiolect.models.fusion import Attention, Concatenation
from idiolect.models.packed import lstm, modalities_of, multimodal

KEY = jax.random.key(0)
LAYOUT = Modalities(("acc", "text", "tab"), ((16, 3), (7, 5), (6,)))
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


def made(**changes: Any) -> Any:
    return multimodal(SPEC | changes, LAYOUT, 3, KEY)


def test_a_modality_over_time_is_a_signal_and_another_a_vector() -> None:
    model = made()
    assert [type(model.encoders[name]) for name in LAYOUT.names] == [Signal, Signal, Dense]
    assert model.fusion is None
    assert {name: decoder.layers[-1].weight.shape for name, decoder in model.decoders.items()} == dict.fromkeys(
        LAYOUT.names, (3, 5)
    )
    signal, dense = model.encoders["acc"], model.encoders["tab"]
    assert [layer.weight.shape[-1] for layer in signal.convolutions] == [3]
    assert signal.convolutions[0].weight.shape[0] == 3
    assert signal.pool == 2
    assert dense.layers.layers[0].weight.shape == (8, 6)


def test_the_kinds_of_encoders() -> None:
    model = made(encoder={"acc": "gru", "text": "text"})
    assert model.encoders["acc"].convolutions == ()
    assert isinstance(model.encoders["text"], Text)
    assert isinstance(model.encoders["tab"], Dense)  # not named, so by its shape
    assert all(isinstance(encoder, Dense) for encoder in made(encoder="mlp").encoders.values())


@pytest.mark.parametrize(("fusion", "kind"), [("concat", Concatenation), ("attention", Attention)])
def test_the_head_that_fuses(fusion: str, kind: type) -> None:
    assert isinstance(made(fusion=fusion).fusion, kind)


def test_a_branch_starts_alike_whatever_the_others_are() -> None:
    whole, some = made(), made(modalities=["tab", "acc"])
    assert list(some.encoders) == ["acc", "tab"]
    for name in some.encoders:
        for part in ("encoders", "decoders"):
            pairs = zip(*(jax.tree.leaves(getattr(model, part)[name]) for model in (whole, some)), strict=True)
            for a, b in pairs:
                np.testing.assert_array_equal(a, b)
    first = [np.asarray(jax.tree.leaves(whole.decoders[name])[0]).tobytes() for name in LAYOUT.names]
    assert len(set(first)) == 3


def test_the_lstm_has_the_inputs_of_all_its_modalities() -> None:
    layout = Modalities(("a", "b", "c"), ((8, 3), (8, 2), (5,)))
    model: Any = lstm({"modalities": ["c", "a"], "features": 4, "decoder": [5]}, layout, 2, KEY)
    assert model.recurrent.gates.of_input.shape == (4 * 4, 8)
    assert model.decoder.layers[-1].weight.shape == (2, 5)
    with pytest.raises(ConfigError, match=r"one length at each time; these have the shapes \[\(16, 3\), \(7, 5\)"):
        lstm({"modalities": None, "features": 4, "decoder": []}, LAYOUT, 2, KEY)
    deep = Modalities(("a",), ((8, 3, 2),))
    with pytest.raises(ConfigError, match="use multimodal"):
        lstm({"modalities": None, "features": 4, "decoder": []}, deep, 2, KEY)


def test_modalities_are_taken_in_the_samples_order() -> None:
    assert modalities_of({"modalities": None}, LAYOUT) == LAYOUT.names
    assert modalities_of({"modalities": ["tab", "acc"]}, LAYOUT) == ("acc", "tab")
    with pytest.raises(ConfigError, match="unknown modality 'txt'; did you mean 'text'"):
        modalities_of({"modalities": ["acc", "txt"]}, LAYOUT)


@pytest.mark.parametrize("kind", ["signal", "gru", "text"])
def test_an_encoder_over_time_needs_time(kind: str) -> None:
    with pytest.raises(ConfigError, match=rf"encoder '{kind}' needs .*modality 'tab' is \(6,\); use mlp"):
        made(encoder={"tab": kind})


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
        {"name": "multimodal", "modalities": ["acc"]}, (LAYOUT.width,), 3, "classification", KEY, LAYOUT
    )
    assert [layer.weight.shape[-1] for layer in model.encoders["acc"].convolutions] == [16, 32, 32]
