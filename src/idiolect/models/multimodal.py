"""Models of several modalities: an encoder and a decoder for each, and one prediction from the present ones."""

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
