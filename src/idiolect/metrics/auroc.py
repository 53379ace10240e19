"""Area under the ROC curve."""

import numpy as np
from jaxtyping import Array, Float, Int

from idiolect.metrics.base import OfSamples, Quotient, segment_sum, wins

ROWS = 2**16  # whose log-odds are computed at a time


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
    steps = "classes"

    def sample(self, outputs: Float[Array, "classes"], label: Int[Array, ""]) -> tuple[Array, Array]:
        """The outputs, and the label."""
        return outputs, label

    def finish(
        self,
        values: tuple[Float[np.ndarray, "n classes"], Int[np.ndarray, "n"]],
        owner: Int[np.ndarray, "n"],
        clients: int,
    ) -> Quotient:
        """The sum over the classes that have both of AUROC_c / those classes; one class after the other."""
        outputs, labels = values
        scores = np.empty(outputs.shape, np.float64)
        for begin in range(0, len(outputs), ROWS):
            scores[begin : begin + ROWS] = log_odds(outputs[begin : begin + ROWS])
        total = np.bincount(owner, minlength=clients)
        shares, classes = np.zeros(clients), np.zeros(clients)
        for number in np.unique(labels):
            inside = labels == number
            there = segment_sum(inside, owner, clients)
            both = (there > 0) & (there < total)
            pairs = np.maximum(there * (total - there), 1)
            shares += np.where(both, wins(scores[:, number], inside, owner, clients) / pairs, 0)
            classes += both
        return shares, classes


def log_odds(outputs: Float[np.ndarray, "n classes"]) -> Float[np.ndarray, "n classes"]:
    """log(p_c / (1 - p_c)) of p = softmax(outputs): the order of p, also where p itself would round to 1.

    The odds of a class depend only on its own output and on which outputs the others have, not on their order: the
    others are added in ascending order. So probabilities that are equal have equal odds to the last bit.
    """
    z = outputs.astype(np.float64) - outputs.max(axis=1, keepdims=True)
    if z.shape[1] == 1:
        return np.zeros_like(z)
    order = np.argsort(z, axis=1, kind="stable")
    ascending = np.take_along_axis(z, order, axis=1)
    weights = np.exp(ascending)
    zero = np.zeros((len(z), 1))
    below = np.cumsum(np.hstack([zero, weights[:, :-1]]), axis=1)
    above = np.cumsum(np.hstack([zero, weights[:, :0:-1]]), axis=1)[:, ::-1]
    rest = below + above
    # The largest output may leave the others no weight at all: theirs is taken relative to the second largest.
    second = ascending[:, -2:-1]
    log_rest = np.log(np.maximum(rest, np.finfo(np.float64).tiny))
    log_rest[:, -1:] = second + np.log(np.exp(ascending[:, :-1] - second).sum(axis=1, keepdims=True))
    # Equal outputs have the odds of the first of them, which were added in the same order.
    starts = np.hstack([zero == 0, ascending[:, 1:] != ascending[:, :-1]])
    first = np.maximum.accumulate(np.where(starts, np.arange(z.shape[1]), 0), axis=1)
    odds = np.empty_like(z)
    np.put_along_axis(odds, order, ascending - np.take_along_axis(log_rest, first, axis=1), axis=1)
    return odds
