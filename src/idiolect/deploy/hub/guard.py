"""What a hub refuses of a round's messages, and whom it suspects when a run goes wrong: the exact rules.

A message has parts: its leaves by the first component of their names. The size of a part is the Euclidean norm of its
update, that is the message minus what the site has received under the same names. Some methods send no update (sums,
histograms, control variates): where a part has no counterpart in what was received, or where the cohort's median norm
is smaller without the subtraction, the size is the norm of the part itself.

`Guard.rules` is the one place where rules of a round are added: each maps `RoundMessages` to `RoundMessages`. A rule
may refuse messages or change them. Integers are not judged here. Shapes, types and finite values are checked
before, by `HubServer.check`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from idiolect.deploy.hub.robust import pulled
from idiolect.deploy.messages import Message, Vectors
from idiolect.deploy.norms import inner_products, norm

WINDOW = 5
"""Rounds of the past that are compared with."""
KNOWN = 3
"""Messages of a site before its own past counts."""
ABSENT = 1e6
"""The largest size where the median site sends zeros only."""
APART = 2.0
"""A site is suspected if it is so many times as far from the others as the median site is."""

FEWEST = 3
"""Of fewer messages nobody knows which one is wrong."""

Numbers = dict[str, list[float]]


class GuardSettings(BaseModel):
    """The limits of a hub, `guard` in hub.json.

    scale: largest size of a part, as a multiple of the reference, see `Scale`; None: no limit. floor: the smallest
    reference, as a share of the norm of what the site has received. clip: sizes above this multiple of the reference
    are scaled down to it, see `Clip`; None: messages are not changed. robust: distance from the geometric
    median, as a multiple of the median distance, beyond which an update has no influence, see `Pull`; None: updates
    may be at any distance. most_rows: training rows that one site may claim. weight_cap: largest share of all sites'
    rows that counts for one site, see `capped`; 1: no cap.
    explode: a site's loss has exploded above this multiple of its loss at its first evaluation. rollbacks: most
    rollbacks of a run. checkpoints: good checkpoints that are kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    scale: float | None = Field(default=10.0, gt=1, allow_inf_nan=False)
    floor: float = Field(default=0.02, ge=0, le=1)
    clip: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    robust: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    most_rows: int = Field(default=10_000_000, ge=1, le=2_000_000_000)
    weight_cap: float = Field(default=1.0, gt=0, le=1)
    explode: float = Field(default=3.0, gt=1, allow_inf_nan=False)
    rollbacks: int = Field(default=2, ge=0)
    checkpoints: int = Field(default=3, ge=1, le=8)


@dataclass
class Past:
    """What the guard knows of earlier rounds.

    largest: part -> the largest lower median of its sizes, where nothing is subtracted. own: site -> part -> its last
    accepted sizes. distances: site -> its largest distance from the others since the last good checkpoint.
    """

    largest: dict[str, float] = field(default_factory=dict[str, float])
    own: dict[str, Numbers] = field(default_factory=dict[str, Numbers])
    distances: dict[str, float] = field(default_factory=dict[str, float])

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"largest": self.largest, "own": self.own, "distances": self.distances}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Past":
        """Read what `to_dict` wrote."""
        own = {site: {part: list(n) for part, n in parts.items()} for site, parts in values.get("own", {}).items()}
        return cls(dict(values.get("largest", {})), own, dict(values.get("distances", {})))


@dataclass(frozen=True)
class Part:
    """One part of a round's messages. leaves: their names. received: whether what was received is subtracted.

    sizes: of each site; view: the largest norm of what a site has received; single: whether it is one number.
    """

    leaves: tuple[str, ...]
    received: bool
    sizes: dict[str, float]
    view: float
    single: bool = False


@dataclass(frozen=True)
class RoundMessages:
    """One round's messages. rows: that count for each site, see `capped`; views: what each site has received.

    parts: measured; refused: site -> why; sent: as the sites sent them, before any rule; apart: site -> its distance
    from the geometric median as a multiple of the median distance, where it had no influence, see `Pull`.
    """

    rows: Mapping[str, float]
    views: Mapping[str, Vectors]
    messages: Mapping[str, Vectors]
    parts: Mapping[str, Part]
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    sent: Mapping[str, Vectors] = field(default_factory=dict[str, Vectors])
    apart: Mapping[str, float] = field(default_factory=dict[str, float])

    def leeway(self, site: str) -> float:
        """How much larger than the median site's a message may be: by its rows, if it has more of them."""
        median = _lower_median(self.rows[name] for name in self.parts_of)
        return max(1.0, self.rows[site] / median) if median > 0 else 1.0

    @property
    def parts_of(self) -> list[str]:
        """The sites whose messages were measured."""
        return list(next(iter(self.parts.values())).sizes) if self.parts else []

    def refuse(self, why: Mapping[str, str]) -> "RoundMessages":
        """Without these sites' messages."""
        left = {site: vectors for site, vectors in self.messages.items() if site not in why}
        return replace(self, messages=left, refused={**self.refused, **why})


Rule = Callable[[RoundMessages, Past], RoundMessages]


@dataclass(frozen=True)
class Scale:
    """Refuse messages that are out of scale.

    The reference of a part is the cohort's lower median size, but at least `floor` times the norm of what was
    received; where nothing is subtracted, at least the largest lower median of the rounds before. A message is
    refused if a part's size is above `scale` times the reference; above `ABSENT` if the reference is 0. A site with
    more rows than the median site may be larger by that factor: sums, and the steps of an epoch, grow with rows. Of
    two messages the hub cannot know which one is wrong, so their limit is `scale` squared; so is that of a part which
    is a single number, such as a loss. One message has no reference but its sender's past.

    Sender's past: with at least `KNOWN` accepted messages, a size is also refused above `scale` times the median of
    its last `WINDOW` sizes, if it is above twice the reference, or if there is none.
    """

    scale: float
    floor: float

    def __call__(self, received: RoundMessages, past: Past) -> RoundMessages:
        """See the class."""
        why: dict[str, str] = {}
        for name, part in received.parts.items():
            cohort, few = reference(part, past.largest.get(name, 0.0), self.floor), len(part.sizes)
            loose = few == 2 or part.single
            base = np.inf if few == 1 else (self.scale**2 if loose else self.scale) * cohort
            for site, size in part.sizes.items():
                most = base * received.leeway(site)
                own = past.own.get(site, {}).get(name, [])
                usual = float(np.median(own)) if len(own) >= KNOWN else np.inf
                usual = max(usual, self.floor * part.view)
                if size > (most if cohort > 0 else ABSENT):
                    why.setdefault(site, _out_of_scale(site, name, size, cohort, "the sites' median", most))
                elif usual > 0 and size > self.scale * usual and (few == 1 or size > 2 * cohort):
                    why.setdefault(site, _out_of_scale(site, name, size, usual, "its own past", self.scale * usual))
        return received.refuse(why)


def _out_of_scale(site: str, part: str, size: float, usual: float, of: str, most: float) -> str:
    what = "the message" if part == "value" else f"'{part}'"
    times = f", {size / usual:.3g} times {of}" if usual > 0 else ""
    return f"site '{site}': {what} is out of scale: size {size:.3g}{times}; the limit is {most:.3g} (guard.scale)"


@dataclass(frozen=True)
class Clip:
    """Scale the parts of messages down whose size is above `most` times the cohort's reference, see `Scale`."""

    most: float
    floor: float

    def __call__(self, received: RoundMessages, past: Past) -> RoundMessages:
        """See the class."""
        messages = {site: dict(vectors) for site, vectors in received.messages.items()}
        for name, part in received.parts.items():
            limit = self.most * reference(part, past.largest.get(name, 0.0), self.floor)
            for site in messages:
                if len(part.sizes) > 2 and part.sizes[site] > limit > 0:
                    share = limit / part.sizes[site]
                    for leaf in part.leaves:
                        messages[site][leaf] = _towards(received, part, site, leaf, share)
        return replace(received, messages=messages)


@dataclass(frozen=True)
class Pull:
    """Limit updates to the median distance from their geometric median, see `robust.pulled`.

    An update beyond `most` times the median distance becomes the median of the others. It has no influence, and its
    site is noted as apart. Every site counts once for the median, whatever rows it claims. Each part of a message is
    limited by itself, and only where it is an update of what the site has received: sums, histograms, control
    variates and losses stay as they are, and so do the messages of fewer than `FEWEST` sites. Updates within the
    median distance do not change by a bit.
    """

    most: float

    def __call__(self, received: RoundMessages, past: Past) -> RoundMessages:
        """See the class."""
        del past
        sites, apart = list(received.messages), dict[str, float]()
        if len(sites) < FEWEST:
            return received
        messages = dict(received.messages)
        for part in received.parts.values():
            if not part.received:
                continue
            mixing, far = pulled(_gram(received.messages, received.views, part, sites), self.most)
            for shares, ratio, site in zip(mixing, far.tolist(), sites, strict=True):
                apart[site] = max(apart.get(site, 0.0), ratio)
                if ratio > 1:
                    messages[site] = {
                        **messages[site],
                        **_mixed(received, part, site, dict(zip(sites, shares.tolist(), strict=True))),
                    }
        noted = {site: round(ratio, 1) for site, ratio in apart.items() if ratio > self.most}
        return replace(received, messages=messages, apart=noted)


def _mixed(received: RoundMessages, part: Part, site: str, shares: Mapping[str, float]) -> Vectors:
    """The leaves of a part of a site's message, with its update a mean of all updates with these shares."""
    found = dict[str, np.ndarray]()
    for leaf in part.leaves:
        start = received.views[site][_received_as(leaf)].astype(np.float64)
        update = np.zeros(start.shape)
        for other, share in shares.items():
            seen = received.views[other][_received_as(leaf)]
            update += share * (received.messages[other][leaf].astype(np.float64) - seen)
        found[leaf] = (start + update).astype(received.messages[site][leaf].dtype)
    return found


def _towards(received: RoundMessages, part: Part, site: str, leaf: str, share: float) -> np.ndarray:
    vector = received.messages[site][leaf]
    start = received.views[site][_received_as(leaf)] if part.received else np.zeros_like(vector)
    return (start + share * (vector.astype(np.float64) - start)).astype(vector.dtype)


@dataclass
class Guard:
    """The rules of a run's rounds, in their order, with what they know of the past."""

    rules: Sequence[Rule]
    past: Past = field(default_factory=Past)

    @classmethod
    def of(cls, settings: GuardSettings, past: Past) -> "Guard":
        """The rules that a hub's settings name."""
        rules: list[Rule] = []
        if settings.scale is not None:
            rules.append(Scale(settings.scale, settings.floor))
        if settings.clip is not None:
            rules.append(Clip(settings.clip, settings.floor))
        if settings.robust is not None:
            rules.append(Pull(settings.robust))
        return cls(rules, past)

    def judge(
        self, rows: Mapping[str, float], views: Mapping[str, Vectors], messages: Mapping[str, Vectors]
    ) -> RoundMessages:
        """Apply the rules to one round's messages, by site. The past does not change: a round may be repeated."""
        received = RoundMessages(rows, views, messages, measured(views, messages), sent=messages)
        for rule in self.rules:
            received = rule(received, self.past)
        return received

    def note(self, received: RoundMessages) -> None:
        """Remember the messages of a round that counts. Refused ones do not become anybody's past."""
        for name, part in received.parts.items():
            sizes = {site: size for site, size in part.sizes.items() if site in received.messages}
            if not sizes:
                continue
            if not part.received:
                self.past.largest[name] = max(self.past.largest.get(name, 0.0), _lower_median(sizes.values()))
            for site, size in sizes.items():
                own = self.past.own.setdefault(site, {})
                own[name] = [*own.get(name, []), size][-WINDOW:]
        for site, distance in distances(received).items():
            self.past.distances[site] = max(self.past.distances.get(site, 0.0), distance)

    def suspects(self, out: Iterable[str] = ()) -> list[str]:
        """The one site that stands apart since the last good checkpoint, or none. out: sites that are out already.

        With fewer than three sites nobody stands apart.
        """
        known = {site: distance for site, distance in self.past.distances.items() if site not in {*out}}
        if len(known) < 3:
            return []
        furthest = max(known, key=lambda site: known[site])
        others = [distance for site, distance in known.items() if site != furthest]
        return [furthest] if known[furthest] > APART * max(others) else []


def measured(views: Mapping[str, Vectors], messages: Mapping[str, Vectors]) -> dict[str, Part]:
    """The parts of messages that have one structure, with their sizes."""
    if not messages:
        return {}
    first = next(iter(messages))
    by_part: dict[str, list[str]] = {}
    for leaf, vector in messages[first].items():
        if vector.dtype.kind == "f":
            by_part.setdefault(leaf.partition("/")[0], []).append(leaf)
    parts = dict[str, Part]()
    for name, leaves in by_part.items():
        own = {site: norm((vectors[leaf], None) for leaf in leaves) for site, vectors in messages.items()}
        single = sum(messages[first][leaf].size for leaf in leaves) == 1
        has = all(
            (seen := views[first].get(_received_as(leaf))) is not None and seen.shape == messages[first][leaf].shape
            for leaf in leaves
        )
        if not has:
            parts[name] = Part(tuple(leaves), False, own, 0.0, single)
            continue
        updates = {
            site: norm((vectors[leaf], views[site][_received_as(leaf)]) for leaf in leaves)
            for site, vectors in messages.items()
        }
        is_update = _lower_median(updates.values()) <= _lower_median(own.values())
        different = {id(views[site]): views[site] for site in messages}.values()  # mostly one, the same for all
        view = max(norm((seen[_received_as(leaf)], None) for leaf in leaves) for seen in different)
        parts[name] = Part(
            tuple(leaves), is_update, updates if is_update else own, view if is_update else 0.0, single
        )
    return parts


def reference(part: Part, largest: float, floor: float) -> float:
    """The usual size of a part in this round; see `Scale`."""
    now = _lower_median(part.sizes.values())
    return max(now, floor * part.view if part.received else largest)


def distances(received: RoundMessages) -> dict[str, float]:
    """How far each accepted message is from the others: the lower median of its distances, as a share of the norms.

    Of all parts the largest counts. The unit is the reference size of the part in this round.
    """
    sites, furthest = list(received.messages), dict.fromkeys(received.messages, 0.0)
    if len(sites) < 3:
        return {}
    for part in received.parts.values():
        unit = _lower_median(part.sizes[site] for site in sites)
        if unit <= 0:
            continue
        gram = _gram(received.sent, received.views, part, sites)
        squares = np.maximum(gram.diagonal()[:, None] + gram.diagonal()[None] - 2 * gram, 0)
        for place, site in enumerate(sites):
            others = np.sqrt(np.delete(squares[place], place))
            furthest[site] = max(furthest[site], _lower_median(others.tolist()) / unit)
    return furthest


def _gram(
    messages: Mapping[str, Vectors], views: Mapping[str, Vectors], part: Part, sites: Sequence[str]
) -> np.ndarray:
    """The inner products of these sites' updates of a part, or of the parts themselves."""
    gram = np.zeros((len(sites), len(sites)))
    for leaf in part.leaves:
        seen = [views[site][_received_as(leaf)] if part.received else None for site in sites]
        gram += inner_products([(messages[site][leaf], minus) for site, minus in zip(sites, seen, strict=True)])
    return gram


def capped(rows: Mapping[str, int], cap: float) -> dict[str, float]:
    """The rows that count for each site: at most `cap` of all that count.

    The cap is the largest c with min(rows, c) <= cap * sum(min(rows, c)) for every site. With 1 / cap sites or fewer
    all sites count the same. A cap of 1 changes nothing.
    """
    if cap >= 1:
        return {site: float(count) for site, count in rows.items()}
    ordered = sorted(rows.values(), reverse=True)
    for above in range(len(ordered)):  # so many sites are capped
        rest = float(sum(ordered[above:]))
        if above * cap >= 1:
            break
        most = cap * rest / (1 - above * cap) if above else np.inf
        if ordered[above] <= (cap * rest if above == 0 else most):
            return {site: min(float(count), most) for site, count in rows.items()}
    return dict.fromkeys(rows, float(ordered[-1]))


def too_many(counts: Mapping[str, int], settings: GuardSettings) -> str:
    """Why a site's numbers of rows are refused; "" if they are not."""
    large = [split for split, rows in counts.items() if rows > settings.most_rows]
    if not large:
        return ""
    return (
        f"it claims {counts[large[0]]:,} {large[0]} rows; the limit is {settings.most_rows:,} (guard.most_rows in "
        "hub.json): raise it if the site has so many rows"
    )


def losses_of(answer: Message, splits: Sequence[str]) -> dict[str, float]:
    """The loss of each model that a site reports, on the first of `splits` that it has; infinity if it is not finite.

    What cannot be read is left out: `scores.readable_scores` refuses it.
    """
    found = dict[str, float]()
    scores = answer.header.get("scores")
    for model, by_split in scores.items() if isinstance(scores, dict) else ():
        held = [by_split[split] for split in splits if isinstance(by_split, dict) and split in by_split]
        loss = held[0].get("loss") if held and isinstance(held[0], dict) else None
        if isinstance(loss, int | float):
            found[model] = float(loss) if np.isfinite(loss) else np.inf
    return found


def exploded(first: Mapping[str, Mapping[str, float]], now: Mapping[str, Mapping[str, float]], most: float) -> bool:
    """Whether more than half of the sites that voted before report a loss above `most` times their first one."""
    voters = [site for site in now if first.get(site)]
    told = [s for s in voters if any(loss > most * first[s].get(model, np.inf) for model, loss in now[s].items())]
    return 2 * len(told) > len(voters)


def _lower_median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] if ordered else 0.0


def _received_as(leaf: str) -> str:
    return "view" if leaf == "value" else f"view/{leaf}"
