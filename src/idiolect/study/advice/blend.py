"""The blend: each client predicts with a weighted mean of all candidates' predictions."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

BLEND = "blend"
CONCENTRATION = 5.0
"""Validation rows that the weights of the federation count as."""
TURNS, STILL = 100, 1e-4
"""Of the EM algorithm: the most, and the change of a weight below which it stops."""


def likelihoods(losses: Float[np.ndarray, "models n"], classes: bool) -> Float[np.ndarray, "models n"]:
    """The likelihood of each row's label under each model, relative to the best model's.

    Classes: exp(-log-loss). Numbers: normal, its variance the least mean squared error of a model.
    """
    scale = 1.0 if classes else 2 * max(float(losses.mean(axis=1).min()), 1e-30)
    return np.exp((losses.min(axis=0) - losses) / scale)


def weights(
    likelihood: Float[np.ndarray, "models n"], owners: Int[np.ndarray, "n"], clients: int
) -> Float[np.ndarray, "clients models"]:
    """Each client's weights: those of a mixture of the models that explains its rows, drawn to the federation's.

    pi_i <- (sum of its rows' responsibilities + c pi) / (n_i + c),  pi <- mean of pi_i,  c = `CONCENTRATION`:
    the EM algorithm for the mode under a Dirichlet prior of mean pi. A client without rows has the federation's.
    """
    models, rows = likelihood.shape
    count = np.bincount(owners, minlength=clients)[:, None]
    pi, own = np.full(models, 1 / models), np.full((clients, models), 1 / models)
    place = owners * models + np.arange(models)[:, None]
    for _ in range(TURNS if rows else 0):
        shares = own[owners].T * likelihood
        shares /= shares.sum(axis=0)
        sums = np.bincount(place.ravel(), weights=shares.ravel(), minlength=clients * models).reshape(clients, models)
        own = (sums + CONCENTRATION * pi) / (count + CONCENTRATION)
        before, pi = pi, own.mean(axis=0)
        if np.abs(pi - before).max() < STILL:
            break
    return own


def blended(
    predictions: Sequence[Float[np.ndarray, "n ..."]],
    share: Float[np.ndarray, "clients models"],
    owners: Int[np.ndarray, "n"],
) -> Float[np.ndarray, "n ..."]:
    """sum_m share[i, m] predictions[m] for the rows of client i. predictions: probabilities (n, classes), or (n,)."""
    total = np.zeros(predictions[0].shape)
    for place, each in enumerate(predictions):
        total += share[owners, place].reshape(-1, *(1,) * (each.ndim - 1)) * each
    return total


def loss_of(predicted: Float[np.ndarray, "n ..."], labels: np.ndarray) -> Float[np.ndarray, "n"]:
    """-log of the label's probability, or the squared error."""
    if predicted.ndim == 1:
        return (predicted - labels.astype(np.float64)) ** 2
    return -np.log(np.maximum(predicted[np.arange(len(labels)), labels], np.finfo(np.float64).tiny))
