"""The objective f_i of one client: a model, a loss for one sample, and an L2 term."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from idiolect.client.predictor import Predictor
from idiolect.core import tree
from idiolect.core.losses import SampleLoss, cross_entropy, half_squared_error, lowest
from idiolect.core.tree import Params
from idiolect.data.federated import TaskKind
from idiolect.metrics.base import Metric, OfSums


class Batch(NamedTuple):
    """Samples with weights: 1 for a sample, 0 for padding. x: (batch, ...), y: (batch,), weight: (batch,).

    outputs: K_i, the number of this client's classes (the first outputs of the model), if each client numbers its own
    classes; None: all outputs.
    """

    x: PyTree[Shaped[Array, "b ..."]]
    y: Shaped[Array, "b"]
    weight: Float[Array, "b"]
    outputs: Int[Array, ""] | None = None

    def tiles(self, rows: int, count: int = 0) -> "Batch":
        """Cut the batch into tiles of `rows` rows, leaves (tiles, rows, ...); padding in the last has weight 0.

        count: of tiles; 0: as many as have samples.
        """
        count = count or -(-self.weight.shape[0] // rows)

        def cut(a: Array, **options: str) -> Array:
            padded = jnp.pad(a, [(0, count * rows - a.shape[0])] + [(0, 0)] * (a.ndim - 1), **options)
            return padded.reshape(count, rows, *a.shape[1:])

        # Padded with copies of the last sample: zeros may give NaN in a model.
        x, y = jax.tree.map(lambda a: cut(a, mode="edge"), (self.x, self.y))
        outputs = None if self.outputs is None else jnp.broadcast_to(self.outputs, (count,))
        return Batch(x, y, cut(self.weight), outputs)


class Scores(NamedTuple):
    """A batch's part of an evaluation: loss (without L2) and count are sums over the rows that count.

    sums: name -> sums, for metrics of sums. samples: name -> values of each sample, leaves (b, ...), for the other
    metrics. keep: whether each row counts.
    """

    loss: Float[Array, ""]
    count: Int[Array, ""]  # pyright: ignore[reportIncompatibleMethodOverride]
    sums: dict[str, PyTree[Array]]
    samples: dict[str, PyTree[Array]]
    keep: Bool[Array, "b"]


def own_outputs(outputs: Float[Array, "b ..."], batch: Batch) -> Float[Array, "b ..."]:
    """Set the outputs beyond the client's K_i classes so low that softmax gives them probability 0.

    A head of K_i rows and the first K_i rows of a wider one then have the same probabilities and gradients.
    """
    if batch.outputs is None:
        return outputs
    return jnp.where(jnp.arange(outputs.shape[-1]) < batch.outputs, outputs, lowest(outputs))


class Objective(eqx.Module):
    """f(params) = weighted mean over the batch of loss(model(x), y) + (l2 / 2) ||params||^2.

    The L2 term covers every parameter, biases too: only then is a convex loss l2-strongly convex
    (pFedMe, Assumption 1a). l2 is a leaf, so a sweep can batch over it.
    """

    l2: Float[Array, ""] | float
    static: PyTree = eqx.field(static=True)
    sample_loss: SampleLoss = eqx.field(static=True)
    task: TaskKind = eqx.field(static=True)

    @property
    def selective(self) -> bool:
        """Whether some samples may be unusable for the model: it has a method usable(x), 1 or 0."""
        return _is_selective(self.static)

    def model(self, params: PyTree) -> Any:
        """Build the model to call on one sample: the module with these parameters, or a `Predictor` bound to it."""
        if isinstance(params, Predictor):
            return params.bound(self.model)
        return eqx.combine(params, self.static)

    def outputs(self, params: PyTree, x: PyTree[Array]) -> Float[Array, "b ..."]:
        """The outputs on a batch of samples. params: parameters or a `Predictor`."""
        return jax.vmap(self.model(params))(x)

    def usable(self, params: PyTree, x: PyTree[Array]) -> Float[Array, "b"]:
        """1 for each sample that the model can use, else 0."""
        model = self.model(params)
        return jax.vmap(model.usable)(x) if _is_selective(model) else jnp.ones(len(jax.tree.leaves(x)[0]))

    def answered(self, params: PyTree, batch: Batch) -> Batch:
        """Give weight 0 to the samples that the model cannot use."""
        if not isinstance(params, Predictor) and not self.selective:
            return batch
        return batch._replace(weight=batch.weight * self.usable(params, batch.x))

    def output_loss(self, outputs: Float[Array, "b ..."], batch: Batch) -> Float[Array, ""]:
        """Sum of weight * loss over a batch with known outputs."""
        return jnp.sum(jax.vmap(self.sample_loss)(own_outputs(outputs, batch), batch.y) * batch.weight)

    def data_loss(self, params: Params, batch: Batch) -> Float[Array, ""]:
        """Sum of weight * loss over the batch: neither a mean nor the L2 term."""
        return self.output_loss(self.outputs(params, batch.x), self.answered(params, batch))

    def penalty(self, params: Params) -> Float[Array, ""]:
        """(l2 / 2) ||params||^2."""
        return 0.5 * self.l2 * tree.squared_norm(params)

    def loss(self, params: Params, batch: Batch) -> Float[Array, ""]:
        """Weighted mean loss of the batch plus the L2 term."""
        batch = self.answered(params, batch)
        mean = self.output_loss(self.outputs(params, batch.x), batch) / jnp.maximum(jnp.sum(batch.weight), 1)
        return mean if tree.is_off(self.l2) else mean + self.penalty(params)

    def scores(self, params: PyTree, batch: Batch, metrics: Sequence[Metric] = ()) -> Scores:
        """Compute the loss, the count, and the metrics' sums and samples, for evaluation."""
        batch = self.answered(params, batch)
        outputs, keep = own_outputs(self.outputs(params, batch.x), batch), batch.weight > 0

        def total(values: Shaped[Array, "b ..."]) -> Shaped[Array, "..."]:
            # where, not *: a padded row may hold anything, and 0 * inf is NaN.
            kept = jnp.where(keep.reshape(-1, *(1,) * (values.ndim - 1)), values, 0)
            return jnp.sum(kept, axis=0, dtype=jnp.int32 if kept.dtype.kind == "i" else None)

        values_of = {metric.name: jax.vmap(metric.sample)(outputs, batch.y) for metric in metrics}
        summed = {metric.name for metric in metrics if isinstance(metric, OfSums)}
        return Scores(
            loss=total(jax.vmap(self.sample_loss)(outputs, batch.y)),
            count=total(keep),
            sums={name: jax.tree.map(total, values) for name, values in values_of.items() if name in summed},
            samples={name: values for name, values in values_of.items() if name not in summed},
            keep=keep,
        )


def _is_selective(model: Any) -> bool:
    return callable(getattr(model, "usable", None))


def objective_of(model: eqx.Module, task: TaskKind, l2: float = 0.0, loss: SampleLoss | None = None) -> Objective:
    """Build the objective of a model: cross-entropy for classification, half squared error for regression.

    model: its parameters may be shapes; what they are is not kept.
    """
    _, static = eqx.partition(model, tree.is_parameter)
    default = cross_entropy if task == "classification" else half_squared_error
    return Objective(l2=float(l2), static=static, sample_loss=loss or default, task=task)
