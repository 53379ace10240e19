"""How one comparison stands: the findings of its audit, the best model and its lead, its ties, and who loses most."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from idiolect.report.view.parts import Key, Part
from idiolect.study.analyse import resolution
from idiolect.study.analyse.intervals import best_of
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.pairs import Pair

_SEVERE = re.compile(
    r"^[1-9][\d,]* of [\d,]+ \w+ samples .* have an exact copy|FITTED ON TEST SAMPLES|^Known leak: |^Column '"
)


def leaks_of(parts: Sequence[Part]) -> list[dict[str, Any]] | None:
    """The findings of all parts, none twice; None if nothing is known of any audit."""
    if all(part.audit is None for part in parts):
        return None
    several = len(parts) > 1
    found = {
        f"{part.title}: {line}" if several else line: is_severe(line) for part in parts for line in part.audit or ()
    }
    return [{"text": text, "severe": severe} for text, severe in found.items()]


def findings_of(lines: Sequence[str]) -> list[dict[str, Any]]:
    """The findings of one audit in the same form."""
    return [{"text": line, "severe": is_severe(line)} for line in lines]


def is_severe(line: str) -> bool:
    """Whether a finding is of a leak, and not that there is none."""
    return _SEVERE.search(line) is not None


REFERENCES = ("local", "global")
"""Methods that are no federation: local training, and all samples in one place."""


@dataclass(frozen=True)
class Loser:
    """The client that loses most with a model compared with local training: scores are means over the common seeds.

    sign: -1 if the loss is beyond noise, 0 if not, 1 for a gain. losers: how many clients score worse, tested or not.
    """

    client: str
    score: float
    alone: float
    samples: int
    sign: int | None
    losers: int
    clients: int


@dataclass(frozen=True)
class Leaders:
    """best: the best line, local training included. federated: of the lines of federated methods that are better than
    local training beyond noise the best one, or of all of them if none is.

    against_local: of the federated line compared with local training; None without that reference. ties: other
    federated lines that the seeds do not separate from it.
    """

    best: Line
    federated: Line | None
    against_local: Pair | None
    ties: tuple[Key, ...]
    loser: Loser | None


def leaders_of(part: Part) -> Leaders | None:
    """How a part stands; None without any score, and where only times are compared."""
    lines = [line for line in part.lines if not math.isnan(line.pooled.mean) and line.method not in part.muted]
    if not lines or part.timed:
        return None
    allowed = [line for line in lines if part.entry(line.method).name != "global"] or lines
    federated = [line for line in allowed if part.entry(line.method).name not in REFERENCES]
    sure = [line for line in federated if beats(part, (line.method, line.model))]
    best, top = _best(part, allowed), _best(part, sure or federated) if federated else None
    if top is None:
        return Leaders(best, None, None, (), None)
    key = (top.method, top.model)
    return Leaders(
        best,
        top,
        part.pairs.get(key) if part.local is not None else None,
        _ties(part, key, federated),
        _loser(part, key),
    )


def _best(part: Part, lines: list[Line]) -> Line:
    return lines[part.metric.best([line.pooled.mean for line in lines])]


def beats(part: Part, key: Key) -> bool:
    """Whether a model is better than local training beyond noise, corrected over all lines of the table."""
    pair = part.pairs.get(key) if part.local is not None else None
    if pair is None or pair.difference is None or not pair.beyond:
        return False
    return (pair.difference.mean > 0) == part.metric.higher


def _ties(part: Part, key: Key, federated: list[Line]) -> tuple[Key, ...]:
    """The other federated lines whose difference from the best one the seeds do not show; all that read alike."""
    lines = {(line.method, line.model): line for line in federated}
    scores = {name: part.scores[name] for name in lines if part.scores.get(name)}
    if key not in scores:
        return ()
    values = {
        name: {seed: each.pooled[part.metric.name] for seed, each in by_seed.items()}
        for name, by_seed in scores.items()
    }
    runs = [each for by_seed in scores.values() for each in by_seed.values()]
    best = best_of(values, higher=part.metric.higher, resolution=resolution.of_samples(runs, part.metric))
    alike = best.alike if best is not None and best.name == key else frozenset[Key]()
    same = {name for name, line in lines.items() if line.pooled.mean == lines[key].pooled.mean}
    return tuple(name for name in lines if name != key and (name in alike or name in same))


def _loser(part: Part, key: Key) -> Loser | None:
    """The client with the largest loss compared with local training; None without it, or without a common client."""
    ours, base = part.scores.get(key, {}), part.scores.get(part.local, {}) if part.local else {}
    seeds = sorted({*ours} & {*base})
    if not seeds or key == part.local:
        return None
    name, sign = part.metric.name, 1 if part.metric.higher else -1
    one, alone = (np.mean([side[seed].values[name] for seed in seeds], axis=0) for side in (ours, base))
    gain = sign * (one - alone)
    if not np.isfinite(gain).any():
        return None
    worst, signs = int(np.nanargmin(gain)), part.pairs[key].clients.told
    return Loser(
        part.clients[worst] if worst < len(part.clients) else str(worst),
        float(one[worst]),
        float(alone[worst]),
        int(ours[seeds[0]].count[worst]),
        signs[worst],
        int((gain < 0).sum()),
        int(np.isfinite(gain).sum()),
    )
