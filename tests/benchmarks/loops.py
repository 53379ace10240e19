"""Logistic regression by hand in NumPy: what pFedMe and FedAvg make of given mini-batches."""

import numpy as np

from benchmarks.samples import Given, samples
from benchmarks.workloads import Workload

Weights = list[np.ndarray]


def gradient(weights: Weights, x: np.ndarray, y: np.ndarray) -> Weights:
    """Of the mean cross-entropy of softmax(W x + b): (p - onehot)' x / n, and the mean of p - onehot."""
    logits = x @ weights[0].T + weights[1]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return [p.T @ x / len(y), p.mean(axis=0)]


def fedavg(work: Workload, start: Weights, batches: list[tuple[np.ndarray, np.ndarray]]) -> Weights:
    """w - rate * gradient, batch after batch."""
    w = start
    for x, y in batches:
        w = [a - work.method["rate"] * g for a, g in zip(w, gradient(w, x, y), strict=True)]
    return w


def pfedme(work: Workload, start: Weights, batches: list[tuple[np.ndarray, np.ndarray]]) -> Weights:
    """K steps on f + (lambda / 2) ||. - w||^2 from the last theta, then w - eta lambda (w - theta)."""
    method, w, theta = work.method, start, start
    for x, y in batches:
        for _ in range(method["inner_steps"]):
            slopes = gradient(theta, x, y)
            theta = [
                t - method["inner_rate"] * (g + method["prox_weight"] * (t - a))
                for t, g, a in zip(theta, slopes, w, strict=True)
            ]
        step = method["rate"] * method["prox_weight"]
        w = [a - step * (a - t) for a, t in zip(w, theta, strict=True)]
    return w


def by_hand(work: Workload, given: Given, rounds: int) -> Weights:
    """The shared model after some rounds, in double precision."""
    assert given.rows is not None
    local = {"fedavg": fedavg, "pfedme": pfedme}[work.method["name"]]
    x, y = samples(work.clients, work.samples, work.shape, work.classes)
    shared = [weight.astype(np.float64) for weight in given.weights]
    for round in range(rounds):
        models = []
        for client in given.cohorts[round]:
            rows = [row[row >= 0] for row in given.rows[round, client]]
            models.append(local(work, shared, [(x[client, row].astype(np.float64), y[client, row]) for row in rows]))
        shared = [np.mean(parts, axis=0) for parts in zip(*models, strict=True)]
    return shared
