"""The best of several models, and those that a test does not tell apart from it."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from idiolect.study.intervals import holm, paired

ALPHA = 0.05
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Best(Generic[Name]):
    """The best by its mean, and all that are not told apart from it; p: Holm's adjusted p value of every other."""

    name: Name
    alike: frozenset[Name]
    p: Mapping[Name, float]


def best_of(values: Mapping[Name, Mapping[int, float]], *, higher: bool, alpha: float = ALPHA) -> Best[Name] | None:
    """Find the best mean over seeds, and test every other against it: paired over their common seeds, Holm.

    values: name -> seed -> value; one with fewer than two seeds, or with a NaN, does not take part. None if no two
    take part: then nothing is known. One without two seeds in common with the best cannot be told apart from it.
    """
    whole = {name: seeds for name, seeds in values.items() if len(seeds) > 1 and not _has_nan(seeds)}
    if len(whole) < 2:
        return None
    means = {name: math.fsum(seeds.values()) / len(seeds) for name, seeds in whole.items()}
    top = max(means, key=lambda name: means[name] if higher else -means[name])
    tested: dict[Name, float] = {}
    for name, seeds in whole.items():
        common = sorted(seeds.keys() & whole[top].keys())
        if name != top and len(common) > 1:
            tested[name] = paired([seeds[s] for s in common], [whole[top][s] for s in common]).p
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    alike = frozenset(name for name in whole if name == top or adjusted.get(name, 1.0) >= alpha)
    return Best(top, alike, adjusted)


def _has_nan(seeds: Mapping[int, float]) -> bool:
    return any(math.isnan(value) for value in seeds.values())
