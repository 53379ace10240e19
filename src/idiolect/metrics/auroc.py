"""Area under the ROC curve."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from idiolect.metrics.base import OfSamples, Quotient
from idiolect.metrics.segments import wins


class AUROC(OfSamples):
    """AUROC, the area under the ROC curve: how often a sample of a class scores higher than one of another class.

        AUROC_c = (1 / (P N)) sum_{i in c, j not in c} ([s_i > s_j] + [s_i = s_j] / 2)

    s: the class's log-odds, which rank as its probability does. P, N: samples in c and not in c. The mean over the
    classes that have both ("ovr", macro); with two classes both have the same. Without a class that has both there is
    no value. Exact, from one sort a class. Source: Hanley and McNeil 1982, The meaning and use of the area under a
    ROC curve. scikit-learn: `roc_auc_score(multi_class="ovr")`.
    """

    name, column, task = "auroc", "AUROC", "classification"
    higher, percent, by_class = True, True, True

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> tuple[Array, Array]:
        """The log-odds of each class, and the label."""
        return log_odds(outputs), label

    def finish(
        self,
        values: tuple[Float[Array, "tiles rows classes"], Int[Array, "tiles rows"]],
        keep: Bool[Array, "tiles rows"],
        owner: Int[Array, "tiles"],
        clients: int,
    ) -> Quotient:
        """The sum over the classes that have both of AUROC_c / those classes; one class after the other."""
        scores, labels = values
        classes = scores.shape[-1]
        whose = jnp.where(keep, owner[:, None], clients).ravel()
        scores, labels = jnp.moveaxis(scores, -1, 0).reshape(classes, -1), labels.ravel()
        total = jax.ops.segment_sum(jnp.ones_like(whose), whose, clients)

        def one(given: tuple[Array, Array]) -> tuple[Array, Array]:
            score, number = given
            inside = labels == number
            there = jax.ops.segment_sum(inside.astype(jnp.int32), whose, clients)
            both = (there > 0) & (there < total)
            share = wins(score, inside, whose, clients) / jnp.maximum(there, 1) / jnp.maximum(total - there, 1)
            return jnp.where(both, share, 0), both

        shares, both = jax.lax.map(one, (scores, jnp.arange(classes)))
        return jnp.sum(shares, axis=0), jnp.sum(both, axis=0)


def log_odds(outputs: Float[Array, "classes"]) -> Float[Array, "classes"]:
    """log(p_c / (1 - p_c)) of p = softmax(outputs): the order of p, also where p itself would round to 1."""
    outputs = outputs - jnp.max(outputs)  # as softmax does: equal probabilities stay equal
    others = jnp.where(jnp.arange(outputs.shape[-1]) == jnp.argmax(outputs), -jnp.inf, outputs)
    weights = jnp.exp(outputs)
    rest = jnp.log(jnp.maximum(jnp.sum(weights) - weights, 1))
    return outputs - jnp.where(others == -jnp.inf, jax.nn.logsumexp(others), rest)
