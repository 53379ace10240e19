"""Sums and ranks of samples by client, on the host and in double precision."""

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped


def segment_sum(
    values: Shaped[np.ndarray, "n"], owner: Int[np.ndarray, "n"], clients: int
) -> Float[np.ndarray, "clients"]:
    """Each client's sum; whole numbers are exact up to 2^53."""
    return np.bincount(owner, weights=values, minlength=clients)


def wins(
    score: Float[np.ndarray, "n"], positive: Bool[np.ndarray, "n"], owner: Int[np.ndarray, "n"], clients: int
) -> Float[np.ndarray, "clients"]:
    """Of each client, how many pairs of a positive and a negative sample the positive one wins; a tie is half a win.

    The Mann-Whitney U statistic, from one sort; exact up to 2^52 pairs.
    """
    if not len(owner):
        return np.zeros(clients)
    order = np.lexsort((score, owner))
    owner, score, positive = owner[order], score[order], positive[order]
    client_starts = np.r_[True, owner[1:] != owner[:-1]]
    tie_starts = client_starts | np.r_[True, score[1:] != score[:-1]]
    before = np.cumsum(~positive) - ~positive  # negatives before each place
    after = before + ~positive
    # Negatives before the start of each place's client, and of its tie; they only grow, so the last is the largest.
    of_client = np.maximum.accumulate(np.where(client_starts, before, 0))
    of_tie = np.maximum.accumulate(np.where(tie_starts, before, 0))
    ends = np.r_[np.flatnonzero(tie_starts)[1:], len(owner)] - 1  # the last place of each tie
    equal = after[ends][np.cumsum(tie_starts) - 1] - of_tie
    twice = np.where(positive, 2 * (of_tie - of_client) + equal, 0)
    return segment_sum(twice, owner, clients) / 2
