"""The clients of a part as report.json has them: sizes, labels, scores with intervals, and what is beyond noise."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from idiolect.report.view.parts import Census, Key, Part
from idiolect.study.summary import half_widths


def clients_json(part: Part, keys: Mapping[Key, str]) -> dict[str, Any] | None:
    """The part's clients; None if no run has ended. keys: of each line in report.json."""
    measured = {key: part.scores[key] for key in keys if part.scores.get(key)}
    if not part.clients or not measured:
        return None
    scores: dict[str, Any] = {}
    half: dict[str, Any] = {}
    for key, by_seed in measured.items():
        values = np.stack([each.values[part.metric.name] for each in by_seed.values()])
        scores[keys[key]], half[keys[key]] = _mean(values).tolist(), half_widths(values).tolist()
    unknown = (None,) * len(part.clients)
    census = part.census or Census(part.clients, unknown, unknown)
    pairs = part.pairs if part.local is not None else {}
    return {
        "names": list(part.clients),
        "train": list(census.train),
        "test": list(census.test) if any(n is not None for n in census.test) else _counts(measured),
        "skew": skew(census),
        "labels": {"names": list(census.classes), "counts": [list(row) for row in census.counts]}
        if census.counts
        else None,
        "label_values": [list(row) for row in census.quantiles] if census.quantiles else None,
        "scores": scores,
        "half": half,
        "local": keys.get(part.local) if part.local else None,
        "shared": keys.get(part.shared) if part.shared else None,
        "beyond": {keys[key]: list(pair.clients.told) for key, pair in pairs.items() if key in keys},
        "distances": _by_line(part.distances, keys),
        "confusion": _by_line(part.confusion, keys),
        "confusion_note": part.confusion_note,
        "residuals": _by_line(part.residuals, keys),
    }


def _by_line(found: Mapping[Key, Any] | None, keys: Mapping[Key, str]) -> dict[str, Any] | None:
    return None if found is None else {keys[key]: each for key, each in found.items() if key in keys}


def _mean(values: np.ndarray) -> np.ndarray:
    """Each client's mean over seeds; NaN where any seed has no value."""
    return values.mean(axis=0)


def _counts(measured: Mapping[Key, Mapping[int, Any]]) -> list[int]:
    """The test samples of each client in the first run."""
    return next(iter(next(iter(measured.values())).values())).count.tolist()


def skew(census: Census) -> list[float | None]:
    """The total variation distance of each client's mix of labels to that of all clients together, 0 to 1."""
    if not census.counts:
        return [None] * len(census.names)
    counts = np.asarray(census.counts, np.float64)
    every = counts.sum(axis=0) / max(counts.sum(), 1)
    with np.errstate(invalid="ignore"):
        shares = counts / counts.sum(axis=1, keepdims=True)
    found = 0.5 * np.abs(shares - every).sum(axis=1)
    return [float(value) if np.isfinite(value) else None for value in found]
