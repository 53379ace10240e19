"""A model of several modalities: an encoder and a decoder for each, and one prediction from those that are there."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from idiolect.core.errors import require
from idiolect.data.modalities import Modalities
from idiolect.models.encoders import Encoder
from idiolect.models.fusion import Attention, Concatenation
from idiolect.models.parts import separate
from idiolect.models.recurrent import LSTM


class Multimodal(eqx.Module):
    """decoder_m(encoder_m(x_m)) for each modality m, and one prediction of all that are there.

    x: one packed sample, see `Modalities`; outputs: (num_outputs,). A branch m takes part if the sample has m and the
    model holds the branch's weights: in a parameter tree with None in the place of other branches', the model of
    one modality is this same model. Without a fusion head the prediction is the mean of the branches' outputs, whose
    probabilities are those of the mean of their log-probabilities; with one (and its weights), it is the head's on
    the encoders' features.
    """

    encoders: dict[str, Encoder]
    decoders: dict[str, Encoder]
    fusion: Concatenation | Attention | None
    modalities: Modalities = eqx.field(static=True)

    @property
    def fused(self) -> bool:
        """Whether there is a fusion head with its weights."""
        return _held(self.fusion)

    @property
    def branches(self) -> tuple[str, ...]:
        """The modalities whose weights the model holds, in the order of the samples."""
        names = [name for name in self.modalities.names if _held(self.encoders.get(name))]
        return tuple(name for name in names if self.fused or _held(self.decoders.get(name)))

    def present(self, x: Float[Array, "width"]) -> dict[str, Float[Array, ""]]:
        """1 for each branch whose modality the sample has, else 0."""
        return {name: jnp.asarray(self.modalities.present(x, name)) for name in self.branches}

    def features(self, x: Float[Array, "width"], name: str) -> Float[Array, "features"]:
        """What the encoder of one modality makes of it, or of zeros where the sample does not have it."""
        there = jnp.asarray(self.modalities.present(x, name)) > 0
        return self.encoders[name](jnp.where(there, jnp.asarray(self.modalities.part(x, name)), 0))

    def usable(self, x: Float[Array, "width"]) -> Float[Array, ""]:
        """1 if the model can answer the sample, 0 if that has none of the model's modalities."""
        return jnp.max(jnp.stack(list(self.present(x).values())))

    def __call__(self, x: Float[Array, "width"]) -> Float[Array, "outputs"]:
        """Outputs for one packed sample; zeros or the head's without any modality."""
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
    """One LSTM over all modalities joined at each time, and a decoder of its last state (early fusion).

    Sequences, (time, channels), must be equally long; a feature vector stands at every time. What is absent is 0.
    x: one packed sample; outputs: (num_outputs,).
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
    """The encoder and the decoder of each modality, with None in the place of all else; of another model, nothing.

    params: arrays or shapes, or the model itself.
    """
    if not isinstance(params, Multimodal):
        return {}
    return {name: branch(params, name) for name in params.modalities.names if name in params.encoders}


def branch(params: PyTree, name: str) -> PyTree:
    """The encoder and the decoder of one modality, with None in the place of all else."""
    places = (f"encoders[{name!r}]", f"decoders[{name!r}]")
    return separate(params, lambda path, _: path.startswith(places))[1]


def _held(part: Any) -> bool:
    """Whether any array, or the shape of one, is there."""
    return any(hasattr(leaf, "shape") for leaf in jax.tree.leaves(part))


def joined(parts: Mapping[str, PyTree]) -> PyTree:
    """The model of several branches."""
    return eqx.combine(*parts.values())
