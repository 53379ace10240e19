"""The best of several models, and those that a test does not tell apart from it."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

from idiolect.study.intervals import beyond_noise, holm, paired

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Best(Generic[Name]):
    """The best by its mean, and all that are not told apart from it; p: the adjusted p value of every other."""

    name: Name
    alike: frozenset[Name]
    p: Mapping[Name, float]


def best_of(
    values: Mapping[Name, Mapping[int, float]], *, higher: bool, resolution: float = 0.0
) -> Best[Name] | None:
    """Find the best mean over seeds, and test every other against it: paired over their common seeds, Holm.

    The same seeds choose the best and test it: the best of many equal models is ahead of the others by chance. So
    Holm's correction is over all pairs of models, not only over those with the best.

    Args:
        values: Name -> seed -> value; one with fewer than two seeds, or with a NaN, does not take part.
        higher: Whether higher is better.
        resolution: By how much one test sample changes a value, see `intervals.paired`.

    Returns:
        None if no two take part: then nothing is known. One without two seeds in common with the best cannot be told
        apart from it.
    """
    whole = {name: seeds for name, seeds in values.items() if len(seeds) > 1 and not _has_nan(seeds)}
    if len(whole) < 2:
        return None
    means = {name: math.fsum(seeds.values()) / len(seeds) for name, seeds in whole.items()}
    top = max(means, key=lambda name: means[name] if higher else -means[name])
    adjusted = _of_pairs(whole, resolution)
    p = {name: adjusted[frozenset((name, top))] for name in whole if frozenset((name, top)) in adjusted}
    alike = frozenset(name for name in whole if name == top or not beyond_noise(p.get(name)))
    return Best(top, alike, p)


def _of_pairs(values: Mapping[Name, Mapping[int, float]], resolution: float) -> dict[frozenset[Name], float]:
    """Both names -> Holm's adjusted p value, of all pairs with two seeds in common."""
    tested: dict[frozenset[Name], float] = {}
    for one, other in combinations(values, 2):
        common = sorted(values[one].keys() & values[other].keys())
        if len(common) > 1:
            sides = [[values[name][seed] for seed in common] for name in (one, other)]
            p = paired(sides[0], sides[1], resolution=resolution).p
            tested[frozenset((one, other))] = 1.0 if p is None else p
    return dict(zip(tested, holm([*tested.values()]), strict=True))


def _has_nan(seeds: Mapping[int, float]) -> bool:
    return any(math.isnan(value) for value in seeds.values())
