"""The clients of the page's data: sizes, labels, scores with their intervals, and what is beyond noise."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from idiolect.report.html.numbers import number, numbers
from idiolect.report.html.parts import Census, Key, Part
from idiolect.study.analyse.pairs import Pair
from idiolect.study.store.summary import half_widths


def clients_json(part: Part, keys: Mapping[Key, str], pairs: Mapping[Key, Pair]) -> dict[str, Any] | None:
    """The part's clients; None if no run has ended. keys: of each line in the page's data."""
    measured = {key: part.scores[key] for key in keys if part.scores.get(key)}
    if not part.clients or not measured:
        return None
    scores: dict[str, Any] = {}
    half: dict[str, Any] = {}
    for key, by_seed in measured.items():
        values = np.stack([each.values[part.metric.name] for each in by_seed.values()])
        scores[keys[key]], half[keys[key]] = numbers(_mean(values)), numbers(half_widths(values))
    census = _aligned(part.census, part.clients)
    return {
        "names": list(part.clients),
        "train": list(census.train),
        "test": list(census.test) if any(n is not None for n in census.test) else _counts(measured),
        "skew": skew(census),
        "labels": {"names": list(census.classes), "counts": [list(row) for row in census.counts]}
        if census.counts
        else None,
        "label_values": [numbers(row) for row in census.quantiles] if census.quantiles else None,
        "scores": scores,
        "half": half,
        "local": keys.get(part.local) if part.local else None,
        "shared": keys.get(part.shared) if part.shared else None,
        "beyond": {keys[key]: list(pair.clients.told) for key, pair in pairs.items() if key in keys},
        "distances": None
        if part.distances is None
        else {keys[key]: numbers(each) for key, each in part.distances.items() if key in keys},
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


def _aligned(census: Census | None, clients: Sequence[str]) -> Census:
    """The census in the order of the evaluated clients; unknown numbers where it does not know them."""
    unknown = (None,) * len(clients)
    if census is None:
        return Census(tuple(clients), unknown, unknown)
    place = {name: i for i, name in enumerate(census.names)}
    rows = [place.get(name) for name in clients]
    known = [row for row in rows if row is not None]

    def of(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if row is None else values[row] for row in rows)

    whole = len(known) == len(rows)
    return Census(
        tuple(clients),
        of(census.train),
        of(census.test),
        census.classes if whole else (),
        of(census.counts) if whole and census.counts else (),
        of(census.quantiles) if whole and census.quantiles else (),
    )


def skew(census: Census) -> list[float | int | None]:
    """The total variation distance of each client's mix of labels to that of all clients together, 0 to 1."""
    if not census.counts:
        return [None] * len(census.names)
    counts = np.asarray(census.counts, np.float64)
    every = counts.sum(axis=0) / max(counts.sum(), 1)
    with np.errstate(invalid="ignore"):
        shares = counts / counts.sum(axis=1, keepdims=True)
    return [number(value) for value in 0.5 * np.abs(shares - every).sum(axis=1)]
