"""The three sentences of several comparisons together, counted; each has its own below."""

from collections import Counter
from collections.abc import Sequence

from idiolect.report.html.leaders import Leaders
from idiolect.report.html.names import isolated
from idiolect.report.html.parts import Part


def several(parts: Sequence[Part], leaders: Sequence[Leaders | None], each: Sequence[Sequence[str]]) -> list[str]:
    """What is best how often, how often beyond noise, and where a client loses most."""
    known = [
        (part, leading, three)
        for part, leading, three in zip(parts, leaders, each, strict=True)
        if leading is not None
    ]
    if not known:
        return [each[0][0] if each else "There is no comparison.", "Nothing can be said.", "Nothing can be said."]
    if len(known) == 1:
        part, _, three = known[0]
        return [f"Of {len(parts)} comparisons one has scores, {isolated(part.title)}. {three[0]}", three[1], three[2]]
    wins = Counter(
        "training alone"
        if (leading.best.method, leading.best.model) == part.local
        else isolated(f"{part.entry(leading.best.method).shown} ({leading.best.model})")
        for part, leading, _ in known
    )
    told = ", ".join(f"{name} in {count}" for name, count in wins.most_common(4))
    more = f", others in {sum(wins.values()) - sum(c for _, c in wins.most_common(4))}" if len(wins) > 4 else ""
    first = f"Of {len(known)} comparisons the best score has {told}{more}; each is told under its own heading."
    return [first, _noise(known), _loses(known)]


def _noise(known: Sequence[tuple[Part, Leaders, Sequence[str]]]) -> str:
    better = worse = unclear = untested = 0
    clients = [0, 0, 0]
    for part, leading, _ in known:
        pair = leading.against_local
        if pair is None:
            continue
        if part.by_seed:
            sure = pair.beyond
            up = pair.difference is not None and (pair.difference.mean > 0) == part.metric.higher
            better, worse, unclear = better + (sure and up), worse + (sure and not up), unclear + (not sure)
        else:
            untested += 1
        for place, count in enumerate((pair.clients.better, pair.clients.worse, pair.clients.unclear)):
            clients[place] += count
    total = better + worse + unclear
    if total + untested == 0:
        return "Training alone was not run beside them, so that no client's gain over it is known."
    parts = [
        f"Against training alone the best federated model is better beyond the noise of the seeds in {better} of "
        f"{total} comparisons, worse in {worse}, and not told apart in {unclear} (Holm, 5 %; a single seed tells "
        f"nothing)."
        if total
        else "",
        f"In {untested} comparison{'s' if untested > 1 else ''} the difference is not tested: the score over all "
        "samples is known only as a mean over seeds."
        if untested
        else "",
        f"Over all of them {clients[0]:,} clients are better off, {clients[1]:,} worse off beyond noise; "
        f"{clients[2]:,} cannot be told.",
    ]
    return " ".join(part for part in parts if part)


def _loses(known: Sequence[tuple[Part, Leaders, Sequence[str]]]) -> str:
    losses = [
        (part.metric.unit * (s.loser.alone - s.loser.score) * (1 if part.metric.higher else -1), part, three)
        for part, s, three in known
        if s.loser is not None and part.metric is known[0][0].metric  # others have other units
    ]
    if not losses:
        return "Who loses cannot be said: training alone and a federated model were not run on the same clients."
    _, part, three = max(losses, key=lambda each: each[0])
    return f"Most is lost in {isolated(part.title)}: {three[2]}"
