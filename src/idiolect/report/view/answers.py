"""The answer in three sentences, and five questions, in careful words: what seeds and samples do not show is said."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from idiolect.metrics.base import Metric
from idiolect.report import text
from idiolect.report.text import isolated
from idiolect.report.view.extras import FEW, few_seeds
from idiolect.report.view.leaders import Leaders, Loser, leaders_of, leaks_of
from idiolect.report.view.parts import Key, Part, View
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.pairs import Pair

QUESTIONS = (
    "Which method is best, and by how much?",
    "Is it beyond noise?",
    "Who loses most?",
    "Is there a leak?",
    "How was it made?",
)
ALONE, UNKNOWN = "training alone", "Nothing can be said: no run has ended with a score."
TIMED = "Only times are compared here: the scores of these few rounds mean nothing."
UNSCORED = "Who loses is no question of times."
ONE_SEED = "A single seed proves nothing: it has no interval, and another seed may turn the order round."


def answers_of(view: View) -> tuple[list[str], list[tuple[str, str]], list[list[str]]]:
    """(three sentences of the whole, (question, answer) pairs, three sentences of each part)."""
    leaders = [leaders_of(part) for part in view.parts]
    each = [_three(part, leading) for part, leading in zip(view.parts, leaders, strict=True)]
    three = each[0] if len(each) == 1 else several(view.parts, leaders, each)
    leak = leak_sentence(leaks_of(view.parts))
    answers = (*three, leak, _made(view))
    return [three[0], three[1], f"{three[2]} {leak}"], list(zip(QUESTIONS, answers, strict=True)), each


def _three(part: Part, leading: Leaders | None) -> list[str]:
    """Which is best, whether beyond noise, who loses most."""
    if part.timed:
        return [TIMED, f"{_fastest(part)} Machines differ, so that only ratios of times compare.", UNSCORED]
    if leading is None:
        return [UNKNOWN, UNKNOWN, UNKNOWN]
    return [_best(part, leading), _noise(part, leading), _loses(part, leading)]


def _fastest(part: Part) -> str:
    timed = [line for line in part.lines if line.seconds.seeds]
    if not timed:
        return UNKNOWN
    line = min(timed, key=lambda one: one.seconds.mean)
    return (
        f"The least time is of {isolated(part.entry(line.method).shown)}, {text.seconds(line.seconds)} seconds a run."
    )


def scored(value: str, metric: Metric) -> str:
    """A score with its unit: "98.63 ± 0.04 % accuracy", "mse 0.123 ± 0.004"."""
    return f"{value} % {metric.column}" if metric.percent else f"{metric.column} {value}"


def named(part: Part, key: Key) -> str:
    """A model as sentences call it: "Ditto (personal)", "training alone"."""
    return ALONE if key == part.local else isolated(f"{part.entry(key[0]).shown} ({key[1]})")


def _key(line: Line) -> Key:
    return line.method, line.model


def _gap(part: Part, pair: Pair, line: Line, reference: Key) -> str:
    """The difference to a reference in words, with what is known of its uncertainty."""
    unit = "points" if part.metric.percent else part.metric.column
    name = named(part, reference)
    if not part.by_seed:
        gap = part.metric.unit * (line.pooled.mean - part.line(reference).pooled.mean)
        return f"{text.difference(gap, None, part.metric)} {unit} compared with {name} (not tested)"
    if pair.difference is None:
        return f"{text.difference(_only_gap(part, _key(line), reference), None, part.metric)} {unit} against {name}"
    shown = text.difference(pair.difference.mean, pair.difference, part.metric)
    return f"{shown} {unit} against {name} ({_p(pair.p)})"


def _only_gap(part: Part, key: Key, reference: Key) -> float:
    """Find the difference over all samples in the one seed in which both have a value; NaN if there is no such seed.

    It is in the units shown. Two such seeds have an interval and do not come here.
    """
    ours, base, name = part.scores[key], part.scores[reference], part.metric.name
    gaps = [ours[seed].pooled[name] - base[seed].pooled[name] for seed in ours if seed in base]
    return part.metric.unit * next((gap for gap in gaps if not math.isnan(gap)), math.nan)


def _p(value: float) -> str:
    if math.isnan(value):
        return "no p value"
    shown = text.p_value(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _best(part: Part, leading: Leaders) -> str:
    """The first sentence: what is best, and by how much over training alone and over the shared model."""
    best, top = leading.best, leading.federated
    count = best.pooled.seeds
    over = f"mean of {count} seeds ± {text.WIDTH}" if count > 1 else "one seed"
    first = f"{named(part, _key(best))} scores best, {scored(text.score(best.pooled, part.metric), part.metric)}"
    sentence = f"{first.replace(ALONE, ALONE.capitalize(), 1)} ({over})"
    if top is None:
        return f"{sentence}; no federated method was run beside it."
    gaps: list[str] = []
    if leading.against_local is not None and part.local is not None:
        gaps.append(_gap(part, leading.against_local, top, part.local))
    if leading.against_shared is not None and part.shared is not None:
        gaps.append(_gap(part, leading.against_shared, top, part.shared))
    if _key(best) != _key(top):
        told = f"; the best federated model, {named(part, _key(top))}, has "
        told += scored(text.score(top.pooled, part.metric), part.metric)
        return f"{sentence}{told}{': ' if gaps else ''}{' and '.join(gaps)}."
    if not gaps and _key(top) == part.shared:
        return f"{sentence}; it is the shared model itself, and training alone was not run beside it."
    if not gaps:
        return f"{sentence}; neither training alone nor a shared model was run beside it."
    return f"{sentence}: {' and '.join(gaps)}."


def _noise(part: Part, leading: Leaders) -> str:
    """The second sentence: whether the lead is beyond noise, over all samples and client by client."""
    top = leading.federated
    if top is None:
        return "There is nothing to compare it with."
    parts: list[str] = []
    pair = leading.against_local
    if top.pooled.seeds < 2:
        parts.append(ONE_SEED)
    elif not part.by_seed:
        parts.append(
            f"Whether the difference is beyond the noise of the seeds is not tested: {part.metric.column} over all "
            "samples is known only as a mean over seeds."
        )
    elif pair is not None and pair.difference is not None:
        better = (pair.difference.mean > 0) == part.metric.higher
        what = f"{named(part, _key(top))} is {'better' if better else 'worse'} than {ALONE}"
        parts.append(
            f"Beyond the noise of the seeds {what} (Holm, 5 %)."
            if pair.beyond
            else f"The seeds do not tell {named(part, _key(top))} from {ALONE} ({_p(pair.p)}, Holm)."
        )
    if 2 <= top.pooled.seeds < FEW and part.by_seed:
        parts.append(few_seeds(top.pooled.seeds, math.nan if pair is None else pair.least, part.metric))
    if pair is not None:
        counts = pair.clients
        told = counts.better + counts.worse + counts.unclear
        parts.append(
            f"Of {told} clients, {counts.better} {_are(counts.better)} better and {counts.worse} "
            f"{_are(counts.worse)} worse off than alone beyond noise; {counts.unclear} cannot be told."
        )
    if leading.ties:
        names = [named(part, key) for key in leading.ties]
        parts.append(f"Not told apart from it: {text.some(names)}.")
    return " ".join(parts) or "Training alone was not run, so that no client's gain over it is known."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _loses(part: Part, leading: Leaders) -> str:
    """The third sentence: the client that loses most against training alone."""
    top, loser = leading.federated, leading.loser
    if loser is None or top is None:
        return "Who loses cannot be said: no client has scores of both training alone and a federated model."
    model, metric = named(part, _key(top)), part.metric
    unit = " %" if metric.percent else f" {metric.column}"
    client = isolated(loser.client)
    alone, ours = (text.number(value, metric) + unit for value in (loser.alone, loser.score))
    samples = f"{loser.samples:,} test sample{'s' if loser.samples != 1 else ''}"
    if loser.losers == 0:
        return f"No client scores worse with {model} than alone; {client} gains least ({alone} alone, {ours})."
    return (
        f"{loser.losers} of {loser.clients} clients score worse with {model} than alone; {client} loses most: "
        f"{ours} against {alone} alone, on {samples}, {_told(loser)}."
    )


def _told(loser: Loser) -> str:
    return "beyond noise" if loser.told == -1 else "which noise alone may explain"


def leak_sentence(leaks: Sequence[Mapping[str, Any]] | None) -> str:
    """Whether a leak was found, with the first findings. leaks: as `leaks_of` lists them."""
    if leaks is None:
        return "Whether there is a leak is not known: no audit of the data is recorded here."
    severe = [leak["text"] for leak in leaks if leak["severe"]]
    unseen = [leak["text"] for leak in leaks if leak["text"].startswith(("Not audited", "The samples of different"))]
    if severe:
        further = len(severe) - 2
        more = (
            f" There {'is 1 more finding' if further == 1 else f'are {further} more findings'}."
            if further > 0
            else ""
        )
        return f"The audit found leaks: {' '.join(severe[:2])}{more}"
    if unseen and len(unseen) == len(leaks):
        return f"No leak is known, but: {unseen[0]}"
    return "The audit of the data found no leak."


def _made(view: View) -> str:
    """How the numbers were made: the command, the protocol, the seeds, the software."""
    seeds = sorted({seed for part in view.parts for seed in part.seeds})
    made = dict(view.made_with)
    facts = [
        f"by: {view.command}" if view.command else "",
        f"protocol {view.protocol}" if view.protocol else "",
        f"seed{'s' if len(seeds) != 1 else ''} {text.some([str(seed) for seed in seeds], 10)}" if seeds else "",
        f"idiolect {made['idiolect']}" if "idiolect" in made else "",
        f"git commit {made['git commit']}" if "git commit" in made else "",
        f"on {made['date']}" if "date" in made else "",
    ]
    told = ", ".join(fact for fact in facts if fact)
    return f"Made {told}." if told else "How it was made is not recorded here."


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
    return [first, _several_noise(known), _several_lose(known)]


def _several_noise(known: Sequence[tuple[Part, Leaders, Sequence[str]]]) -> str:
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


def _several_lose(known: Sequence[tuple[Part, Leaders, Sequence[str]]]) -> str:
    losses = [
        (part.metric.unit * (s.loser.alone - s.loser.score) * (1 if part.metric.higher else -1), part, three)
        for part, s, three in known
        if s.loser is not None and part.metric is known[0][0].metric  # others have other units
    ]
    if not losses:
        return "Who loses cannot be said: training alone and a federated model were not run on the same clients."
    _, part, three = max(losses, key=lambda each: each[0])
    return f"Most is lost in {isolated(part.title)}: {three[2]}"
