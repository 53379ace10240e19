"""Models of several modalities: an encoder and a decoder for each, and one prediction from the present ones.

An encoder maps one modality of a sample to a vector of features; a fusion head makes one prediction from the features
of several modalities, some of which may be absent. `multimodal` and `lstm` build the zoo's models of packed samples
from a specification and the modalities' shapes.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Annotated, Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from annotated_types import MinLen
from jaxtyping import Array, Float, PRNGKeyArray, PyTree
from pydantic import AfterValidator, BeforeValidator, Strict

from idiolect.core.errors import require, unknown
from idiolect.core.plugins import named
from idiolect.core.settings import Setting, Words
from idiolect.data.modalities import Modalities
from idiolect.models.conv import Conv2d, max_pool
from idiolect.models.dense import MLP
from idiolect.models.parts import separate
from idiolect.models.recurrent import GRU, LSTM
from idiolect.models.spec import Layers, Positive, Spec, as_list, one_of

Encoder = Callable[[Array], Float[Array, "width"]]


class Dense(eqx.Module):
    """Encoder of a feature vector: an MLP with ReLU after the last layer, too. x: any shape; features: (width,)."""

    layers: MLP

    def __init__(self, shape: tuple[int, ...], width: int, *, hidden: Sequence[int] = (), key: PRNGKeyArray) -> None:
        self.layers = MLP(prod(shape), hidden, width, key=key)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "width"]:
        """The features of one sample."""
        return jax.nn.relu(self.layers(x))


class Signal(eqx.Module):
    """Encoder of a signal: convolutions over time, each with ReLU and max pooling; a GRU; the mean over time.

    channels: filters of each convolution of length `kernel`, SAME padding; (): only the GRU. pool: the length and
    stride of a pooling window. x: (time, channels); features: (width,). With 3 input channels, channels
    (32, 64, 128), kernel 5, pool 2 and width 128 it has 150,976 parameters, as FedMultimodal's encoders (Feng et al.,
    KDD 2023). Raises `ConfigError` if the signal is too short for the poolings.
    """

    convolutions: tuple[Conv2d, ...]
    recurrent: GRU
    pool: int = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, ...],
        width: int,
        *,
        channels: Sequence[int] = (16, 32, 32),
        kernel: int = 5,
        pool: int = 2,
        key: PRNGKeyArray,
    ) -> None:
        require(len(shape) == 2, f"a signal must be (time, channels), not {shape}")
        remaining = shape[0] // pool ** len(channels)
        require(remaining > 0, f"a signal of {shape[0]} times is too short for {len(channels)} poolings of {pool}")
        keys = iter(jax.random.split(key, len(channels) + 1))
        sizes = (shape[1], *channels)
        self.convolutions = tuple(
            Conv2d(before, filters, (kernel, 1), padding="SAME", key=next(keys))
            for before, filters in zip(sizes, channels, strict=False)
        )
        self.recurrent, self.pool = GRU(sizes[-1], width, key=next(keys)), pool

    def __call__(self, x: Float[Array, "time channels"]) -> Float[Array, "width"]:
        """The features of one signal."""
        h = x[:, None, :]  # an image of one column
        for convolution in self.convolutions:
            h = jax.nn.relu(max_pool(convolution(h), (self.pool, 1), stride=self.pool))
        return jnp.mean(self.recurrent(h[:, 0, :]), axis=0)


class Text(eqx.Module):
    """Encoder of a text: word vectors through a GRU, the mean of its states over the words.

    A word vector of zeros is padding at any position: the states and the mean skip it.
    x: (words, numbers); features: (width,), zeros for a text without words.
    """

    recurrent: GRU

    def __init__(self, shape: tuple[int, ...], width: int, *, key: PRNGKeyArray) -> None:
        require(len(shape) == 2, f"a text must be (words, numbers), not {shape}")
        self.recurrent = GRU(shape[1], width, key=key)

    def __call__(self, x: Float[Array, "words numbers"]) -> Float[Array, "width"]:
        """The features of one text."""
        is_word = jnp.any(x != 0, axis=1)
        return is_word @ self.recurrent(x, is_word) / jnp.maximum(jnp.sum(is_word), 1)


Fusion = Literal["late", "concat", "attention"]

Features = Mapping[str, Float[Array, "width"]]
Flags = Mapping[str, Float[Array, ""]]


class Concatenation(eqx.Module):
    """head([f_1, .., f_M]), an absent modality's features replaced by 0. f_m: (width,); outputs: (num_outputs,)."""

    head: MLP
    names: tuple[str, ...] = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __init__(
        self, names: Sequence[str], width: int, hidden: Sequence[int], num_outputs: int, *, key: PRNGKeyArray
    ) -> None:
        self.names, self.width = tuple(names), width
        self.head = MLP(len(self.names) * width, hidden, num_outputs, key=key)

    def __call__(self, features: Features, present: Flags) -> Float[Array, "outputs"]:
        """Outputs of one sample; a modality that is not in `features` is absent."""
        return self.head(jnp.concatenate([_kept(features, present, name, self.width) for name in self.names]))


class Attention(eqx.Module):
    """head(sum_m a_m f_m), a = softmax over the present modalities of v . tanh(U f_m + b).

    f_m: (width,); outputs: (num_outputs,). A single present modality has weight 1.
    """

    hidden: eqx.nn.Linear
    score: eqx.nn.Linear
    head: MLP

    def __init__(
        self, names: Sequence[str], width: int, hidden: Sequence[int], num_outputs: int, *, key: PRNGKeyArray
    ) -> None:
        first, second, third = jax.random.split(key, 3)
        self.hidden = eqx.nn.Linear(width, width, dtype=jnp.float32, key=first)
        self.score = eqx.nn.Linear(width, "scalar", use_bias=False, dtype=jnp.float32, key=second)
        self.head = MLP(width, hidden, num_outputs, key=third)

    def __call__(self, features: Features, present: Flags) -> Float[Array, "outputs"]:
        """Outputs of one sample; a modality that is not in `features` is absent."""
        rows = jnp.stack([_kept(features, present, name, 0) for name in features])
        is_present = jnp.stack([present[name] for name in features]) > 0
        scores = jax.vmap(lambda row: self.score(jnp.tanh(self.hidden(row))))(rows)
        lowest = jnp.finfo(scores.dtype).min / 2  # finite: if all are absent, -inf - -inf is NaN
        return self.head(jax.nn.softmax(jnp.where(is_present, scores, lowest)) @ rows)


def _kept(features: Features, present: Flags, name: str, width: int) -> Float[Array, "width"]:
    if name not in features:
        return jnp.zeros(width)
    return jnp.where(present[name] > 0, features[name], 0)


FUSIONS: dict[str, type[Concatenation] | type[Attention]] = {"concat": Concatenation, "attention": Attention}


class Multimodal(eqx.Module):
    """A branch decoder_m(encoder_m(x_m)) for each modality m, and one prediction from all active branches.

    x: one packed sample, see `Modalities`; outputs: (num_outputs,). Branch m is active if the sample has modality m
    and the model has the branch's weights: with None in the place of all other branches, this is the model of a
    single modality. Without a fusion head the outputs are the mean of the branches' outputs (a mean of their
    log-probabilities, up to normalisation); with one (and its weights) they are the head's on the encoders' features.
    """

    encoders: dict[str, Encoder]
    decoders: dict[str, Encoder]
    fusion: Concatenation | Attention | None
    modalities: Modalities = eqx.field(static=True)

    @property
    def fused(self) -> bool:
        """Whether the model has a fusion head and its weights."""
        return _has_arrays(self.fusion)

    @property
    def branches(self) -> tuple[str, ...]:
        """The modalities whose weights the model has, in the order of the samples."""
        names = [name for name in self.modalities.names if _has_arrays(self.encoders.get(name))]
        return tuple(name for name in names if self.fused or _has_arrays(self.decoders.get(name)))

    def present(self, x: Float[Array, "width"]) -> dict[str, Float[Array, ""]]:
        """1 for each branch whose modality the sample has, else 0."""
        return {name: jnp.asarray(self.modalities.present(x, name)) for name in self.branches}

    def features(self, x: Float[Array, "width"], name: str) -> Float[Array, "features"]:
        """The encoder's features of one modality; of zeros if the sample does not have it."""
        is_present = jnp.asarray(self.modalities.present(x, name)) > 0
        return self.encoders[name](jnp.where(is_present, jnp.asarray(self.modalities.part(x, name)), 0))

    def usable(self, x: Float[Array, "width"]) -> Float[Array, ""]:
        """1 if the sample has any of the model's modalities, else 0: the model cannot answer it."""
        return jnp.max(jnp.stack(list(self.present(x).values())))

    def __call__(self, x: Float[Array, "width"]) -> Float[Array, "outputs"]:
        """Outputs for one packed sample; without any modality zeros, or the fusion head's on zeros."""
        present = self.present(x)
        require(len(present) > 0, "this parameter tree has no modality with both an encoder and a decoder")
        features = {name: self.features(x, name) for name in present}
        if self.fused:
            assert self.fusion is not None
            return self.fusion(features, present)
        outputs = jnp.stack([self.decoders[name](features[name]) for name in present])
        weights = jnp.stack(list(present.values()))
        return weights @ outputs / jnp.maximum(jnp.sum(weights), 1)


class EarlyLSTM(eqx.Module):
    """One LSTM over all modalities concatenated at each time, and a decoder of its last state (early fusion).

    Sequences, (time, channels), must be equally long; a feature vector is repeated at every time. Absent modalities
    are zeros. x: one packed sample; outputs: (num_outputs,).
    """

    recurrent: LSTM
    decoder: Encoder
    names: tuple[str, ...] = eqx.field(static=True)
    modalities: Modalities = eqx.field(static=True)

    def usable(self, x: Float[Array, "width"]) -> Float[Array, ""]:
        """1 if the sample has any of the modalities, else 0."""
        return jnp.max(jnp.stack([jnp.asarray(self.modalities.present(x, name)) for name in self.names]))

    def __call__(self, x: Float[Array, "width"]) -> Float[Array, "outputs"]:
        """Outputs for one packed sample."""
        parts = [self._part(x, name) for name in self.names]
        time = max(len(part) for part in parts)
        joined = [jnp.broadcast_to(part, (time, part.shape[1])) for part in parts]
        return self.decoder(self.recurrent(jnp.concatenate(joined, axis=1))[-1])

    def _part(self, x: Float[Array, "width"], name: str) -> Float[Array, "time channels"]:
        part, present = jnp.asarray(self.modalities.part(x, name)), self.modalities.present(x, name)
        part = jnp.where(jnp.asarray(present) > 0, part, 0)
        return part if part.ndim == 2 else part.reshape(1, -1)


def branches(params: PyTree) -> dict[str, PyTree]:
    """Each modality's branch, see `branch`; {} if the model is not `Multimodal`.

    params: arrays or shapes, or the model itself.
    """
    if not isinstance(params, Multimodal):
        return {}
    return {name: branch(params, name) for name in params.modalities.names if name in params.encoders}


def branch(params: PyTree, name: str) -> PyTree:
    """The encoder and decoder of one modality, with None in the place of all other leaves."""
    places = (f"encoders[{name!r}]", f"decoders[{name!r}]")
    return separate(params, lambda path, _: path.startswith(places))[1]


def _has_arrays(part: Any) -> bool:
    """Whether the tree has any array, or the shape of one."""
    return any(hasattr(leaf, "shape") for leaf in jax.tree.leaves(part))


def joined(parts: Mapping[str, PyTree]) -> PyTree:
    """Combine several branches to one model."""
    return eqx.combine(*parts.values())


ENCODERS = ("signal", "gru", "text", "mlp")


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
_LSTM_KEYS: dict[str, Setting] = {
    "modalities": Setting(Names | None, None),  # all
    "features": Setting(Positive, 32),
    "decoder": Setting(Layers, [32]),
}
_MULTIMODAL_KEYS: dict[str, Setting] = {
    **_LSTM_KEYS,
    "encoder": Setting(Encoders, "auto"),
    "channels": Setting(Layers, [16, 32, 32]),
    "kernel": Setting(Positive, 5),
    "pool": Setting(Positive, 2),
    "dense": Setting(Layers, [64]),
    "fusion": Setting(one_of("fusion", ("late", *FUSIONS)), "late"),
}
_LSTM_WORDS = """
modalities: those of the data's that it takes; all if none are named. features: width of what is made of a modality.
decoder: widths of the hidden layers between that and the outputs.
"""
_MULTIMODAL_WORDS = f"""{_LSTM_WORDS.rstrip()}
encoder: its kind, one for all or a table by modality: auto, {", ".join(ENCODERS)}. channels, kernel, pool: of its
convolutions. dense: widths of an mlp encoder's hidden layers. fusion: late, the mean of the decoders' outputs; or a
head on all features: {", ".join(FUSIONS)}.
"""


@named(
    "multimodal",
    description="an encoder and a decoder for each modality; late fusion, or a fusion head",
    keys=_MULTIMODAL_KEYS,
    words=_MULTIMODAL_WORDS,
    packed=True,
)
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


@named(
    "lstm",
    description="one LSTM over all modalities joined at each time",
    keys=_LSTM_KEYS,
    words=_LSTM_WORDS,
    packed=True,
)
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
