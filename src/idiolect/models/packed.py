"""Build the zoo's models of packed samples from a specification and the modalities' shapes."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

import equinox as eqx
import jax
from annotated_types import MinLen
from jaxtyping import PRNGKeyArray
from pydantic import AfterValidator, BeforeValidator, Strict

from idiolect.core.errors import require, unknown
from idiolect.core.settings import Setting, Words
from idiolect.data.modalities import Modalities
from idiolect.models.encoders import Dense, Encoder, Signal, Text
from idiolect.models.fusion import FUSIONS
from idiolect.models.mlp import MLP
from idiolect.models.multimodal import EarlyLSTM, Multimodal
from idiolect.models.recurrent import LSTM
from idiolect.models.spec import Layers, Positive, Spec, as_list, one_of

ENCODERS = ("signal", "gru", "text", "mlp")


def multimodal(spec: Spec, modalities: Modalities, num_outputs: int, key: PRNGKeyArray) -> eqx.Module:
    """Build a `Multimodal`: an encoder and a decoder for each modality, and the fusion head if one is named."""
    names, (first, second, third) = modalities_of(spec, modalities), jax.random.split(key, 3)
    kinds: Any = spec["encoder"] if isinstance(spec["encoder"], Mapping) else dict.fromkeys(names, spec["encoder"])
    for name in kinds:
        modalities.index(name)
    places = {name: modalities.index(name) for name in names}
    encoders = {
        name: _encoder(spec, kinds.get(name, "auto"), name, modalities.shapes[i], jax.random.fold_in(first, i))
        for name, i in places.items()
    }
    decoders = {
        name: MLP(spec["features"], spec["decoder"], num_outputs, key=jax.random.fold_in(second, i))
        for name, i in places.items()
    }
    fusion = FUSIONS.get(spec["fusion"])
    head = None if fusion is None else fusion(names, spec["features"], spec["decoder"], num_outputs, key=third)
    return Multimodal(encoders, cast(dict[str, Encoder], decoders), head, modalities)


def lstm(spec: Spec, modalities: Modalities, num_outputs: int, key: PRNGKeyArray) -> eqx.Module:
    """Build an `EarlyLSTM`; raises `ConfigError` if the modalities' lengths differ."""
    names, (first, second) = modalities_of(spec, modalities), jax.random.split(key)
    shapes = [modalities.shapes[modalities.index(name)] for name in names]
    times = sorted({shape[0] for shape in shapes if len(shape) == 2})
    require(
        len(times) < 2 and all(len(shape) <= 2 for shape in shapes),
        f"model lstm joins modalities of one length at each time; these have the shapes {shapes}; use multimodal",
    )
    recurrent = LSTM(sum(shape[-1] for shape in shapes), spec["features"], key=first)
    decoder = MLP(spec["features"], spec["decoder"], num_outputs, key=second)
    return EarlyLSTM(recurrent, decoder, names, modalities)


def modalities_of(spec: Spec, modalities: Modalities) -> tuple[str, ...]:
    """The modalities that the specification names, in the samples' order; all if it names none."""
    wanted = spec["modalities"] or modalities.names
    for name in wanted:
        modalities.index(name)
    return tuple(name for name in modalities.names if name in wanted)


def _encoder(spec: Spec, kind: str, name: str, shape: tuple[int, ...], key: PRNGKeyArray) -> Encoder:
    if kind == "auto":
        kind = "signal" if len(shape) == 2 else "mlp"
    width = spec["features"]
    if kind == "mlp":
        return Dense(shape, width, hidden=spec["dense"], key=key)
    require(len(shape) == 2, f"encoder '{kind}' needs (time, channels), but modality '{name}' is {shape}; use mlp")
    if kind == "text":
        return Text(shape, width, key=key)
    channels = spec["channels"] if kind == "signal" else ()
    return Signal(shape, width, channels=channels, kernel=spec["kernel"], pool=spec["pool"], key=key)


def _encoders(value: str | dict[str, str]) -> str | dict[str, str]:
    """The kind of every encoder, or a table of kinds by modality."""
    for kind in value.values() if isinstance(value, dict) else (value,):
        if kind not in ("auto", *ENCODERS):
            raise unknown("encoder", kind, ("auto", *ENCODERS))
    return value


Names = Annotated[list[Annotated[str, Strict()]], BeforeValidator(as_list), MinLen(1), Words("a list of names")]
Encoders = Annotated[
    str | dict[str, str], AfterValidator(_encoders), Words("the name of an encoder, or a table of them by modality")
]
LSTM_KEYS: dict[str, Setting] = {
    "modalities": Setting(Names | None, None),  # all
    "features": Setting(Positive, 32),
    "decoder": Setting(Layers, [32]),
}
MULTIMODAL_KEYS: dict[str, Setting] = {
    **LSTM_KEYS,
    "encoder": Setting(Encoders, "auto"),
    "channels": Setting(Layers, [16, 32, 32]),
    "kernel": Setting(Positive, 5),
    "pool": Setting(Positive, 2),
    "dense": Setting(Layers, [64]),
    "fusion": Setting(one_of("fusion", ("late", *FUSIONS)), "late"),
}
