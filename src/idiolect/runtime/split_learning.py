"""Split learning in one process: the encoder on a client, the decoder on a server, which exchange only arrays.

A step of the two sides is a step of the whole model: by one backward pass across the cut, or sequentially, first the
encoder's step, then the decoder's on the new encoder's activations (mmFL, eqs. 5 and 6). All traffic is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree, Shaped

from idiolect.algorithms.parts.modality_clusters import Update
from idiolect.client.client import BatchOrder, Client
from idiolect.client.features import Staged
from idiolect.client.objective import Batch, Objective
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.tree import Params
from idiolect.models.parts import Head, separate

Labels = Literal["client", "server"]
Numbers = Shaped[Array | np.ndarray, "..."]
Message = Sequence[Numbers]


@dataclass
class Link:
    """The connection between the two sides: messages are copied as bytes and counted.

    up, down: bytes; messages_up, messages_down; round_trips: messages up whose answer the client waits for.
    """

    up: int = 0
    down: int = 0
    messages_up: int = 0
    messages_down: int = 0
    round_trips: int = field(default=0)

    def send_up(self, arrays: Sequence[Numbers], *, answered: bool = True) -> Message:
        """Send arrays from the client to the server."""
        message = _copied(arrays)
        self.up += sum(array.nbytes for array in message)
        self.messages_up += 1
        self.round_trips += answered
        return message

    def send_down(self, arrays: Sequence[Numbers]) -> Message:
        """Send arrays from the server to the client."""
        message = _copied(arrays)
        self.down += sum(array.nbytes for array in message)
        self.messages_down += 1
        return message


def _copied(arrays: Sequence[Numbers]) -> Message:
    host_arrays = [np.asarray(array) for array in arrays]
    return [np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape) for array in host_arrays]


class Cut(eqx.Module):
    """A model cut in two, and its objective; it holds no parameters."""

    objective: Objective
    staged: Staged = eqx.field(static=True)

    @classmethod
    def at(cls, client: Client, encoder: Params, decoder: Params) -> "Cut":
        """Cut before the first layer that uses the decoder's weights.

        Raises `ConfigError` if a later layer uses weights of the encoder.
        """
        static = client.objective.static
        sample = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), client.x)
        staged = Staged(lambda head, body, x: eqx.combine(head, body, static)(x), decoder, encoder, sample)
        require(not staged.fixed(encoder), "cannot split the model: the decoder needs weights of the encoder")
        return cls(client.objective, staged)

    def decay(self, params: Params) -> Params:
        """The L2 term's gradient on one side."""
        return jax.grad(self.objective.penalty)(params)


class EncoderSide:
    """The client: its samples, the encoder, and, with labels = "client", the labels."""

    def __init__(self, cut: Cut, encoder: Params, rate: float) -> None:
        self.cut, self.encoder, self.rate = cut, encoder, rate

    def activations(self, x: PyTree[Array]) -> Message:
        """The values that the decoder needs of a batch."""
        return _activations(self.cut, self.encoder, x)

    def step(self, x: PyTree[Array], gradients: Message) -> None:
        """One step of the encoder, given the gradients of the activations that it sent."""
        slope = _encoder_slope(self.cut, self.encoder, x, gradients)
        self.encoder = tree.add_scaled(self.encoder, -self.rate, slope)

    def output_gradient(self, outputs: Numbers, batch: Batch) -> Array:
        """The gradient of the batch's mean loss with respect to the decoder's outputs; it needs the labels."""
        return _output_gradient(self.cut, outputs, batch)


class DecoderSide:
    """The server: the decoder. It gets activations, and labels only if they are sent."""

    def __init__(self, cut: Cut, decoder: Params, rate: float) -> None:
        self.cut, self.decoder, self.rate = cut, decoder, rate

    def outputs(self, activations: Message) -> Array:
        """The model's outputs on the client's activations."""
        return _outputs(self.cut, self.decoder, activations)

    def gradients(self, activations: Message, of_outputs: Numbers) -> tuple[Params, list[Array]]:
        """(gradient with respect to the decoder, gradients with respect to the floating-point activations)."""
        return _decoder_slopes(self.cut, self.decoder, activations, jnp.asarray(of_outputs))

    def step(self, slope: Params) -> None:
        """One step of the decoder."""
        self.decoder = tree.add_scaled(self.decoder, -self.rate, slope)


@eqx.filter_jit
def _activations(cut: Cut, encoder: Params, x: PyTree[Array]) -> list[Array]:
    return jax.vmap(cut.staged.features, in_axes=(None, 0))(encoder, x)


@eqx.filter_jit
def _encoder_slope(cut: Cut, encoder: Params, x: PyTree[Array], gradients: Message) -> Params:
    def smooth(encoder: Params) -> list[Array]:
        activations = jax.vmap(cut.staged.features, in_axes=(None, 0))(encoder, x)
        return [array for array in activations if jnp.issubdtype(array.dtype, jnp.inexact)]

    _, pull = jax.vjp(smooth, encoder)
    return tree.add_scaled(pull([jnp.asarray(gradient) for gradient in gradients])[0], 1.0, cut.decay(encoder))


@eqx.filter_jit
def _outputs(cut: Cut, decoder: Params, activations: Message) -> Array:
    return jax.vmap(lambda rows: cut.staged.finish(decoder, [], rows))(activations)


@eqx.filter_jit
def _output_gradient(cut: Cut, outputs: Numbers, batch: Batch) -> Float[Array, "b ..."]:
    def mean(outputs: Array) -> Array:
        return cut.objective.output_loss(outputs, batch) / jnp.maximum(jnp.sum(batch.weight), 1)

    return jax.grad(mean)(jnp.asarray(outputs))


@eqx.filter_jit
def _decoder_slopes(cut: Cut, decoder: Params, activations: Message, of_outputs: Array) -> tuple[Params, list[Array]]:
    smooth = [i for i, array in enumerate(activations) if jnp.issubdtype(array.dtype, jnp.inexact)]

    def finish(decoder: Params, varying: list[Array]) -> Array:
        rows: list[Array] = [jnp.asarray(array) for array in activations]
        for place, array in zip(smooth, varying, strict=True):
            rows[place] = array
        return jax.vmap(lambda rows: cut.staged.finish(decoder, [], rows))(rows)

    _, pull = jax.vjp(finish, decoder, [jnp.asarray(activations[i]) for i in smooth])
    slope, gradients = pull(of_outputs)
    return tree.add_scaled(slope, 1.0, cut.decay(decoder)), gradients


class SplitRun:
    """A client's encoder and a server's decoder that train together over a link.

    rate: of both sides' SGD. update: "simultaneous" steps both sides from one backward pass; "sequential" steps the
    encoder, sends the new activations and then steps the decoder. labels: "server" sends them with the activations;
    "client" keeps them: outputs go down and their gradients up, which costs one more round trip each time.
    decoder: the server's part of the model, see `models.parts.separate`. Raises `ConfigError` on an unknown setting.
    """

    def __init__(
        self, client: Client, params: Params, *, rate: float, decoder: Head, update: Update, labels: Labels
    ) -> None:
        require(update in get_args(Update), f"update = {update!r} is not one of {', '.join(get_args(Update))}")
        require(labels in get_args(Labels), f"labels = {labels!r} is not one of {', '.join(get_args(Labels))}")
        encoder, head = separate(params, decoder, setting="decoder")
        cut = Cut.at(client, encoder, head)
        self.near, self.far, self.link = EncoderSide(cut, encoder, rate), DecoderSide(cut, head, rate), Link()
        self.data, self.update, self.labels = client, update, labels

    @property
    def params(self) -> Params:
        """The parameters of the whole model."""
        return tree.merged(self.far.decoder, self.near.encoder)

    def train(self, key: PRNGKeyArray, *, steps: int, batch_size: int, order: BatchOrder = "fresh") -> None:
        """Take `steps` steps, on the mini-batches that `Client.batch` draws with this key."""
        for step in range(steps):
            batch = self.data.batch(key, step, batch_size, order, steps)
            counts = np.flatnonzero(np.asarray(self.data.objective.answered(self.params, batch).weight))
            self.step(jax.tree.map(lambda a, rows=counts: a[rows], batch._replace(outputs=None)))

    def step(self, batch: Batch) -> None:
        """One step of both sides on a batch without padding."""
        batch = batch._replace(outputs=self.data.outputs)
        slope, gradients = self._backward(batch)
        self.near.step(batch.x, self.link.send_down(gradients))
        if self.update == "sequential":
            slope, _ = self._backward(batch, answered=False)
        self.far.step(slope)

    def _backward(self, batch: Batch, *, answered: bool = True) -> tuple[Params, list[Array]]:
        """Send activations up; return the server's gradients. answered: whether the client waits for its own."""
        activations = self.near.activations(batch.x)
        if self.labels == "server":
            sent = self.link.send_up([*activations, batch.y], answered=answered)
            *sent, labels = sent
            labelled = Batch(None, jnp.asarray(labels), jnp.ones(len(labels)), self.data.outputs)
            return self.far.gradients(sent, _output_gradient(self.far.cut, self.far.outputs(sent), labelled))
        sent = self.link.send_up(activations)
        (outputs,) = self.link.send_down([self.far.outputs(sent)])
        (slope,) = self.link.send_up([self.near.output_gradient(outputs, batch)], answered=answered)
        return self.far.gradients(sent, slope)
