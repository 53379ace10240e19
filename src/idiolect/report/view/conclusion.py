"""What a report says first: the headline, a line of numbers, and chips (who gains, who loses, how it was made)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from idiolect.report import text
from idiolect.report.sections.tables import FEW, NAMED, few_seeds
from idiolect.report.text import isolated
from idiolect.report.view.convergence import rising
from idiolect.report.view.headline import Decision, Situation, headline
from idiolect.report.view.leaders import Leaders, beats, leaders_of, leaks_of
from idiolect.report.view.parts import Key, Part, View
from idiolect.study.analyse.client_tests import Clients
from idiolect.study.analyse.outcomes import Line


def named(part: Part, key: Key) -> str:
    """A model in sentences: "Ditto", "Ditto, global"; one of several that is not the method's own has its name."""
    if key == part.local:
        return "local training"
    only = sum(line.method == key[0] for line in part.lines) == 1
    shown = part.entry(key[0]).shown
    return shown if only or key[1] == default_of(part, key[0]) else f"{shown}, {key[1]}"


def default_of(part: Part, method: str) -> str:
    """The model that stands for a method in charts: personal or adapted where it has one, otherwise its first."""
    models = [line.model for line in part.lines if line.method == method]
    return next((name for name in ("personal", "adapted") if name in models), models[0] if models else "")


@dataclass(frozen=True)
class Chip:
    """A short fact, and a sentence or two of details. kind: gains, loses or made."""

    kind: str
    title: str
    text: str


@dataclass(frozen=True)
class Conclusion:
    """What a report says first. about: the model of the headline, None where it names none."""

    decision: Decision
    headline: str
    numbers: str
    chips: tuple[Chip, ...]
    about: Key | None = None


def situation_of(part: Part, leading: Leaders | None) -> Situation:
    """What the rule of the headline reads of a part. leading: as `leaders_of` gives it."""
    scored = {line.method: None for line in part.lines if line.pooled.seeds and line.method not in part.muted}
    known = Situation(
        metric=part.metric,
        methods=[part.entry(title).shown for title in scored],
        local=part.local is not None,
        published=_verdicts([part]),
    )
    if leading is None or leading.federated is None:
        return known
    line, pair = leading.federated, leading.against_local
    key = (line.method, line.model)
    difference = None if pair is None else pair.difference
    gap = math.nan if difference is None else difference.mean * (1 if part.metric.higher else -1)
    improving = {"model": rising(part, key), "local": part.local is not None and rising(part, part.local)}
    tested = next(iter(part.measured(key).values()), None)
    return replace(
        known,
        model=named(part, key),
        shared=key[1] == "global",
        seeds=line.pooled.seeds if difference is None else difference.count,
        gap=gap,
        tested=part.by_seed,
        beyond=pair is not None and pair.beyond,
        level=tuple(named(part, one) for one in leading.ties if beats(part, one)),
        losing=0 if pair is None else pair.clients.worse,
        of=0 if pair is None else _tested(pair.clients),
        rows=math.inf if tested is None else float(np.median(tested.count[tested.count > 0])),
        rising=frozenset(name for name, still in improving.items() if still),  # pyright: ignore[reportArgumentType]
    )


def _tested(clients: Clients) -> int:
    return clients.better + clients.worse + clients.unclear


def conclusion_of(part: Part) -> Conclusion:
    """The headline of one comparison, its numbers and its chips."""
    if part.timed:
        words = "Only times are compared: scores after so few rounds mean nothing."
        return Conclusion("none", words, _fastest(part), (_made_chip([part]),))
    leading = leaders_of(part)
    decision, words = headline(situation_of(part, leading))
    about = None if leading is None or leading.federated is None else _key(leading.federated)
    chips = (*_client_chips(part, leading), _made_chip([part]))
    return Conclusion(decision, words, _numbers(part, leading), chips, about)


def _key(line: Line) -> Key:
    return line.method, line.model


def _fastest(part: Part) -> str:
    timed = [line for line in part.lines if line.seconds.seeds]
    if not timed:
        return "No run has ended."
    line = min(timed, key=lambda one: one.seconds.mean)
    return f"Fastest: {isolated(part.entry(line.method).shown)}, {text.seconds(line.seconds)} seconds per run."


def _numbers(part: Part, leading: Leaders | None) -> str:
    """Seeds and clients; the difference from local training with its interval and p, or the best score."""
    if leading is None:
        return "No numbers yet."
    line = leading.federated or leading.best
    facts = [_count(line.pooled.seeds, "seed"), _count(len(part.clients), "client") if part.clients else ""]
    pair, metric = leading.against_local, part.metric
    known = text.number(line.pooled.mean, metric)
    scored = f"{known} % {metric.column}" if metric.percent else f"{metric.column} {known}"
    scored = f"{', '.join(filter(None, facts))}; {isolated(named(part, _key(line)))} {scored}"
    if pair is None or part.local is None:
        return f"{scored} (the {'highest' if metric.higher else 'lowest'})"
    difference = pair.difference
    gap = metric.unit * (line.pooled.mean - part.line(part.local).pooled.mean)
    shown = text.difference(gap if difference is None else difference.mean, None, metric)
    shown = f"{scored}, difference from local training {shown} {'points' if metric.percent else metric.column}"
    if difference is None or not part.by_seed:
        return f"{shown}, not tested"
    ends = "no interval" if difference.low is None else f"95 % interval {text.ends(difference, metric)}"
    return f"{shown} ({ends}), adjusted p {text.p_value(pair.p)}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _client_chips(part: Part, leading: Leaders | None) -> list[Chip]:
    """Who gains and who loses: tested counts first, and what is not tested in the details."""
    if leading is None or leading.federated is None or leading.against_local is None or part.local is None:
        return [Chip("gains", "Who gains is not known", "No client has scores with local training and federation.")]
    counts, model = leading.against_local.clients, isolated(named(part, _key(leading.federated)))
    total = _tested(counts)
    gains = [f"{model} compared with local training: {counts.unclear:,} show no difference beyond noise."]
    if part.by_seed and 2 <= leading.federated.pooled.seeds < FEW:
        gains.append(few_seeds(leading.federated.pooled.seeds, leading.against_local.least, part.metric))
    loser, loses = leading.loser, list[str]()
    if counts.hurt:
        loses.append(f"Beyond noise: {text.some([isolated(name) for name in counts.hurt], NAMED)}.")
    if loser is not None:
        loses.append(f"{loser.losers:,} of {loser.clients:,} score worse, tested or not.")
        ours, local = (text.number(value, part.metric) for value in (loser.score, loser.alone))
        unit = " %" if part.metric.percent else f" {part.metric.column}"
        rows = _count(loser.samples, "test row")
        how = "Largest loss" if loser.losers else "Smallest gain"
        noise = "beyond noise" if loser.sign else "within noise"
        loses.append(
            f"{how}: {isolated(loser.client)}, {ours}{unit} ({local}{unit} with local training), {rows}, {noise}."
        )
    return [
        Chip("gains", f"{counts.better:,} of {total:,} clients gain, tested", " ".join(gains)),
        Chip("loses", f"{counts.worse:,} of {total:,} clients lose, tested", " ".join(loses)),
    ]


def _made_chip(parts: Sequence[Part]) -> Chip:
    """How the numbers were made: seeds, and whether the audit found a leak."""
    seeds, leaks = len({seed for part in parts for seed in part.seeds}), leaks_of(parts)
    title = f"{_count(seeds, 'seed')}, {leak_words(leaks)}"
    chosen = " ".join(dict.fromkeys(part.selected for part in parts if part.selected))
    when = f", {chosen}" if chosen else ""
    return Chip("made", title, f"Scores of test rows{when}. Settings and the command are below.")


def leak_words(leaks: Sequence[Mapping[str, Any]] | None) -> str:
    """Whether the audit found a leak, in three words. leaks: as `leaks_of` lists them."""
    if leaks is None:
        return "no leak audit"
    if any(leak["severe"] for leak in leaks):
        return "leaks found"
    unseen = [leak["text"].startswith(("Not audited", "The samples of different")) for leak in leaks]
    return "leaks partly audited" if unseen and all(unseen) else "no leak found"


def conclusions_of(view: View) -> tuple[Conclusion, list[Conclusion]]:
    """The conclusion of the whole, and that of each part."""
    each = [conclusion_of(part) for part in view.parts]
    if len(each) == 1:
        return each[0], each
    if not each:
        return Conclusion("none", "No result yet: there is no comparison.", "No numbers yet.", ()), each
    each = [replace(one, chips=one.chips[:-1]) for one in each]  # how all were made is said once
    return _several(view.parts, each), each


def _verdicts(parts: Sequence[Part]) -> Counter[str]:
    """The verdicts on the published values of all parts."""
    return Counter(
        line.verdict for part in parts for line in (*part.lines, *part.further) if line.verdict is not None
    )


def _several(parts: Sequence[Part], each: Sequence[Conclusion]) -> Conclusion:
    """The conclusion of several comparisons: how many say what, and their clients together."""
    of = Counter[str](one.decision for one in each)
    compared, total = of["use"] + of["local"] + of["inconclusive"], len(each)
    seeds = max(len(part.seeds) for part in parts)
    clients = max(len(part.clients) for part in parts)
    numbers = f"{total} comparisons, {_count(seeds, 'seed')}, up to {_count(clients, 'client')} each"
    decision: Decision = each[0].decision if len(of) == 1 else "mixed"
    if compared:
        known = {"use": "federate in {}", "local": "do not in {}", "inconclusive": "{} inconclusive"}
        words = ", ".join(form.format(of[name]) for name, form in known.items() if of[name])
        line = f"Of {total} comparisons: {words}."
        numbers += "; each difference from local training tested at 5 %, corrected within its comparison"
    elif of["published"]:
        situation = Situation(metric=parts[0].metric, methods=["all"], local=False, published=_verdicts(parts))
        decision, line = headline(situation)
    elif len({one.headline for one in each}) == 1:
        line = each[0].headline
    else:
        line = "No recommendation: no comparison includes local training."
    return Conclusion(decision, line, numbers, (*_summed(parts), _made_chip(parts)))


def _summed(parts: Sequence[Part]) -> list[Chip]:
    """The clients of all comparisons together, each counted once per comparison."""
    stood = [leaders_of(part) for part in parts]
    pairs = [one.against_local.clients for one in stood if one is not None and one.against_local is not None]
    if not pairs:
        return []
    total = sum(map(_tested, pairs))
    gain, lose = sum(one.better for one in pairs), sum(one.worse for one in pairs)
    rest = f"{total - gain - lose:,} show no difference beyond noise; a client counts once per comparison."
    return [
        Chip("gains", f"{gain:,} of {total:,} clients gain, tested", rest),
        Chip("loses", f"{lose:,} of {total:,} clients lose, tested", "Each comparison below names its clients."),
    ]
