"""The geometric median of a round's messages, and messages limited by it, from their inner products only.

The geometric median of x_1 ... x_n is the z with the smallest sum of distances |x_i - z|. It stays near the honest
messages as long as fewer than half of all are lies, whatever these hold: each message pulls with a force of one,
however far away it is. Weiszfeld's steps find it: z <- sum(x_i / r_i) / sum(1 / r_i), r_i = |x_i - z|. So z is a mean
of the messages with some shares, and their matrix of inner products is all that is needed.

Source: Pillutla, Kakade, Harchaoui, "Robust Aggregation for Federated Learning", IEEE TSP 2022, for the median.
Messages are pulled towards it as Karimireddy, He, Jaggi, "Learning from History", ICML 2021, Algorithm 2, clip
around a centre; here the radius is the median distance, and what is far beyond it has no influence.
"""

import numpy as np
from jaxtyping import Float

STEPS = 500
"""Most steps for the median."""
NEAR = 1e-9
"""The steps end when no share changes by more of itself. No distance counts as less than this share of the median."""

Gram = Float[np.ndarray, "n n"]
Shares = Float[np.ndarray, " n"]


def median_shares(gram: Gram) -> Shares:
    """Return the shares of the messages in their geometric median.

    Args:
        gram: the inner products of all messages, (n, n).

    Returns:
        shares of (n,) that are nonnegative and add up to 1.
    """
    shares = _first_shares(gram)
    for _ in range(STEPS):
        far = distances_from(gram, shares)
        unit = _lower_median(far)
        if unit <= 0:
            break
        pulls = 1 / np.maximum(far, NEAR * unit)
        before, shares = shares, pulls / pulls.sum()
        if np.abs(shares - before).max() <= NEAR * shares.min():
            break
    return shares


def _first_shares(gram: Gram) -> Shares:
    """Equal shares of the densest half, so that the numbers of lies, however large, enter no sum at first."""
    squares = np.maximum(gram.diagonal()[:, None] + gram.diagonal() - 2 * gram, 0)
    half = len(gram) // 2 + 1
    nearest = squares[np.argmin(np.sort(squares, axis=1)[:, half - 1])]
    shares = np.zeros(len(gram))
    shares[np.argsort(nearest, kind="stable")[:half]] = 1 / half
    return shares


def _lower_median(values: Shares) -> float:
    return float(np.sort(values)[(len(values) - 1) // 2])


def distances_from(gram: Gram, shares: Shares) -> Shares:
    """Return the distance of each message from the mean with these shares."""
    mixed = gram @ shares
    return np.sqrt(np.maximum(gram.diagonal() - 2 * mixed + shares @ mixed, 0))


def pulled(gram: Gram, most: float) -> tuple[Gram, Shares]:
    """Limit each message's distance from the geometric median to the lower median of all distances, the unit.

    A message at more than `most` units is no part of the median, and becomes the median of the others. A message at
    more than one unit is pulled to this distance. Where the unit is 0, most messages are alike, and nothing changes:
    they leave a part of a model as it is which only few sites train.

    Args:
        gram: the inner products of all messages, (n, n).
        most: the distance, in units, beyond which a message has no influence; at least 1.

    Returns:
        (row i has the shares of all messages in message i afterwards, each message's distance in units).
    """
    near = np.ones(len(gram), bool)
    while True:
        shares = np.zeros(len(gram))
        shares[near] = median_shares(gram[np.ix_(near, near)])
        far = distances_from(gram, shares)
        unit = _lower_median(far)
        if unit <= 0 or unit <= NEAR * np.sqrt(_lower_median(gram.diagonal())):
            return np.eye(len(gram)), np.zeros(len(gram))
        ratios = far / unit
        still = near & (ratios <= most)  # at least half of all, as most is at least 1
        if still.sum() == near.sum() or 2 * still.sum() <= len(gram):
            break
        near = still
    kept = np.where(ratios > most, 0.0, np.minimum(1.0, 1 / np.maximum(ratios, NEAR)))
    return np.diag(kept) + (1 - kept)[:, None] * shares, ratios
