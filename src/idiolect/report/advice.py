"""The report of an advice: the headline, the table, the clients by name, rounds and bytes, and the rule."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from idiolect.core.files import atomic_write
from idiolect.core.rights import make_folder
from idiolect.report.style import GREY, HIT, MISS, beside, blank, caption, save, tidy
from idiolect.report.text import MISSING, bare, isolated, plain_difference, size, value
from idiolect.report.view.as_json import VERSION, of_conclusion, plain, skew
from idiolect.report.view.conclusion import Chip, Conclusion, leak_words
from idiolect.report.view.leaders import findings_of
from idiolect.report.view.parts import Census
from idiolect.study.advice.advise import Advice, Line
from idiolect.study.advice.blend import BLEND
from idiolect.study.advice.decision import FEWEST_OF_CLIENT, MARGIN, WORTH, Call, ClientCall, Outcome
from idiolect.study.advice.policies import BY_SIZE, CHOSEN, KIND, PORTFOLIO
from idiolect.study.advice.stored import store_advice
from idiolect.study.analyse.intervals import Difference

_MOST = 12  # clients named in a sentence
_ALONE = get_args(Outcome)[0]
_KINDS = {
    _ALONE: "local training",
    "shared": "one shared model",
    "personal": "a model for each client",
    KIND: "what validation rows say",
    "pooled": "needs all rows in one place",
}
_POLICIES = {
    BLEND: "Federate, and let each client mix the methods' predictions",
    CHOSEN: "Federate with the method that validation rows choose",
    PORTFOLIO: "Federate, and let each client keep what its validation rows prefer",
    BY_SIZE: "Federate the clients with few rows only",
}
_CALLS: tuple[Call, ...] = get_args(Call)
_COLOURS = dict(zip(_CALLS, (HIT, MISS, GREY), strict=True))
_SHOWN = dict(zip(_CALLS, ("gains", "loses", "inconclusive"), strict=True))
_SIGNS = dict(zip(_CALLS, (1, -1, 0), strict=True))
"""The calls of a client in order: it gains, it loses, neither is shown."""


def answer(advice: Advice) -> str:
    """The headline in bold and its numbers."""
    one = conclusion_of(advice)
    return bare(f"**{one.headline}** {one.numbers}")


def conclusion_of(advice: Advice) -> Conclusion:
    """The headline of an advice, its numbers, and who gains and loses."""
    decision, about = advice.decision, advice.about
    title = isolated(title_of(advice, decision.method))
    gain = decision.gain
    less = f"{100 * gain.mean / decision.loss:.1f} % lower test loss than local training"
    falling = any("still falling" in note for note in advice.notes)
    kind, words = {
        "shared": ("use", f"Use one model for all ({title}): {less}."),
        "personal": ("use", f"{_POLICIES.get(decision.method, f'Use {title}')}: {less}."),
        _ALONE: ("local", "Do not federate: local training is as good or better."),
        "unclear": ("inconclusive", f"Inconclusive: {'train more rounds' if falling else 'collect more rows'}."),
    }[decision.outcome]
    numbers = (
        f"{about.num_clients} clients, {about.rows:,} rows, {advice.splits} divisions; {title}: test loss "
        f"{_signed(gain, decision.loss)} compared with local training"
    )
    if words_on_trees := trees_words(advice):
        numbers += f"; {words_on_trees}"
    return Conclusion(kind, words, numbers, (*_chips(advice),), None)  # pyright: ignore[reportArgumentType]


def _signed(gain: Difference, loss: float) -> str:
    """The change of the loss as a share of that of local training, with its interval."""
    mean = f"{-100 * gain.mean / loss:+.1f} %"
    if gain.low is None or gain.high is None:
        return f"{mean} (no interval: {gain.why})"
    return f"{mean} (95 % interval {-100 * gain.high / loss:+.1f} to {-100 * gain.low / loss:+.1f})"


def title_of(advice: Advice, name: str) -> str:
    """A candidate as texts call it."""
    titles = {one.name: one.title for one in advice.choices}
    return titles.get(name, name)


def page(advice: Advice, figure: bool = True) -> str:
    """The whole page in Markdown. figure: with the link to the figure, which a terminal does not show."""
    decision, about = advice.decision, advice.about
    under = {"shared": "the shared model", "personal": "its personal model"}.get(
        decision.outcome, "the best federated model"
    )
    if decision.method in _POLICIES:
        under = f"`{decision.method}`"
    parts = [
        f"# Advice: {about.name}",
        answer(advice),
        f"{about.num_clients} clients, {about.rows} rows, {advice.splits} random divisions of each client's rows "
        "(55 % training, 20 % validation, 25 % test).",
        *([takes(advice)] if decision.outcome in ("shared", "personal") else []),
        f"## Who gains, who loses\n\nWith {under}, compared with local training. On average at most 5 % of the named "
        "clients are named wrongly.",
        _clients(advice),
        f"## Which client uses what\n\n{uses_text(advice)}",
        "## What was compared\n",
        _table(advice),
        columns_text(advice),
        *(["![every client's gap](advice.png)"] if figure else []),
        f"## How it was decided\n\n{rule_text(advice)}",
        "## Notes\n\n" + "\n".join(f"- {note}" for note in advice.notes),
    ]
    return "\n\n".join(parts) + "\n"


def columns_text(advice: Advice) -> str:
    """What the table's columns and its last lines are."""
    return (
        f"Loss: {_loss_words(advice)}. Gap: by how much the loss is lower than with local training, with its 95 % "
        "interval. Worse off: the share of clients with a higher mean loss than with local training; surely: the "
        "share for which this is beyond noise. `own`: fitted on each client's rows. `pooled`: needs all rows in one "
        "place, which no federation allows; the client is a column. Penalties are chosen by folds or validation "
        "rows; trees are LightGBM's. `guess`: the mean, or the shares of the labels. Policies follow "
        "validation rows: `blend` mixes all methods, with weights for each client; `portfolio` takes one for each "
        "client, `by-size` one for clients with few rows, `chosen` one of all these in each division."
    )


def _loss_words(advice: Advice) -> str:
    if advice.loss_name == "mse":
        return "the mean squared error, as a share of the labels' variance; RMSE in the label's units"
    return "log-loss"


def takes(advice: Advice) -> str:
    """What the advised method takes: rounds, and bytes of a client and of all. Of a policy: each method in use."""
    method = advice.decision.method
    if method not in _POLICIES:
        return f"It takes {_cost(advice, advice.line(method))}"
    federated = [line for line in map(advice.line, _users(advice)) if line.kind != _ALONE]
    return " ".join(f"{title_of(advice, line.name)} takes {_cost(advice, line)}" for line in federated)


def _cost(advice: Advice, line: Line) -> str:
    """Rounds and bytes of a method."""
    assert line.rounds is not None
    assert line.sent is not None
    down, up = line.sent
    total = line.rounds * (down + up) * advice.about.num_clients
    return (
        f"about {line.rounds:g} rounds (median of those that validation data chose). A client receives {size(down)} "
        f"and sends {size(up)} per round; all of them together {size(total)}."
    )


def _users(advice: Advice) -> dict[str, list[str]]:
    """Each method that some clients use in most divisions, and these clients."""
    users: dict[str, list[str]] = {}
    for client, kept in advice.kept.items():
        users.setdefault(max(kept, key=lambda name: kept[name]), []).append(client)
    return {name: users[name] for name in _kept_names(advice) if name in users}


def uses_text(advice: Advice) -> str:
    """What each client uses in most divisions, under the policy that is the answer or else under the portfolio."""
    method = advice.decision.method
    shown = method if method in _POLICIES else PORTFOLIO
    lines = [
        f"- {title_of(advice, name)}: {len(clients)} ({_named(clients)})" for name, clients in _users(advice).items()
    ]
    how = "the method with the largest weight in most divisions" if shown == BLEND else "in most divisions"
    return f"With `{shown}`, {how}:\n\n" + "\n".join(lines)


def _named(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")


def _clients(advice: Advice) -> str:
    called = advice.decision.clients
    lines: list[str] = []
    for call in _CALLS:
        names = [client.name for client in called if client.call == call]
        lines.append(f"- {_SHOWN[call]}: {len(names)} ({_named(names)})" if names else f"- {_SHOWN[call]}: none")
    if few := [client.name for client in called if client.rows < FEWEST_OF_CLIENT]:
        lines.append(f"- inconclusive with fewer than {FEWEST_OF_CLIENT} test rows: {_named(few)}")
    return "\n".join(lines)


def _table(advice: Advice) -> str:
    head, *lines = table_rows(advice)
    rows = [head, ["---"] * 2 + ["---:"] * 6, *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def table_rows(advice: Advice) -> list[list[str]]:
    """The table as texts: the heading, then a row for each line of the advice."""
    classes = advice.about.task == "classification"
    head = [
        "",
        "what it gives",
        "loss",
        "accuracy, %" if classes else "RMSE",
        "gap [95 %]",
        "worse off",
        "surely",
        "rounds",
    ]
    return [head, *(_row(advice, line, classes) for line in advice.lines)]


def _row(advice: Advice, line: Line, classes: bool) -> list[str]:
    second = f"{100 * line.accuracy:.1f}" if classes else value(advice.scale * math.sqrt(line.loss))
    gap = MISSING if line.gap is None else plain_difference(line.gap)
    hurt = (MISSING, MISSING) if line.gap is None else (f"{100 * line.hurt:.0f} %", f"{100 * line.surely:.0f} %")
    name = title_of(advice, line.name)
    kind = _KINDS.get(line.kind, line.kind)
    return [name, kind, value(line.loss), second, gap, *hurt, MISSING if line.rounds is None else f"{line.rounds:g}"]


def trees_words(advice: Advice) -> str:
    """What it means that gradient boosting beats every candidate; "" if it does not."""
    if advice.decision.trees is None:
        return ""
    name, difference = advice.decision.trees
    whose = "with all rows in one place" if name.startswith("pooled") else "on each client's own rows"
    return (
        f"gradient boosting {whose} has a lower loss than every federated model, by at least "
        f"{plain_difference(difference)}: the relation has interactions or steps that these models miss"
    )


def rule_text(advice: Advice) -> str:
    """How it was decided."""
    decision = advice.decision
    beyond = decision.beyond
    best = min(decision.tested, key=lambda one: one.p)
    text = (
        "In each division every method's setting and round are those with the least validation loss; test rows are "
        "then used once. Intervals are corrected for the rows that divisions share (Nadeau and Bengio, 2003). "
        f"{len(decision.tested)} candidates are tested against local training: each federated method, and the "
        f"policies `{BLEND}`, `{PORTFOLIO}`, `{BY_SIZE}` and `{CHOSEN}`. p values are corrected for their number. "
        "Federate: one of them is better. The answer is the better one with the least validation loss; a personal "
        "model must also be better than the best shared one, and a policy better than the best method by "
        f"{100 * WORTH:g} % of the loss of local training. Do not federate: no mean gain "
        "reaches "
        f"{100 * MARGIN:g} % of the loss of local training, and all intervals end below it or every shared model is "
        f"surely worse. Otherwise it is inconclusive. Here: {decision.why}. Least corrected p value: {best.p:.2g} "
        f"({title_of(advice, best.name)})."
    )
    if beyond is not None:
        text += f" Loss of the best shared model minus that of the best personal one: {plain_difference(beyond)}."
    return text + f" {decision.share:.0%} of the divisions rank {title_of(advice, decision.method)} first."


def write_advice(advice: Advice, out: Path) -> None:
    """Write advice.md, advice.csv, clients.csv, advice.png and advice.svg into a folder, which is made.

    advice.json comes last: where it is, all is there.
    """
    make_folder(out, shared=True)
    for name, frame in (("advice.csv", lines_frame(advice.lines)), ("clients.csv", clients_frame(advice))):
        with atomic_write(out / name, shared=True) as file:
            file.write(frame.to_csv(index=False, lineterminator="\n").encode())
    save(figure_of(advice), out / "advice.png")
    with atomic_write(out / "advice.md", shared=True) as file:
        file.write(page(advice).encode())
    store_advice(advice, out)


def lines_frame(lines: Sequence[Line]) -> pd.DataFrame:
    """The table with every number unrounded."""
    gaps = [line.gap for line in lines]
    columns = {
        "name": [line.name for line in lines],
        "kind": [line.kind for line in lines],
        "loss": [line.loss for line in lines],
        "accuracy": [line.accuracy for line in lines],
        **{key: [None if gap is None else getattr(gap, key) for gap in gaps] for key in ("mean", "low", "high", "p")},
        "worse_off": [line.hurt for line in lines],
        "surely_worse_off": [line.surely for line in lines],
        "rounds": [line.rounds for line in lines],
        "bytes_down": [None if line.sent is None else line.sent[0] for line in lines],
        "bytes_up": [None if line.sent is None else line.sent[1] for line in lines],
    }
    return pd.DataFrame(columns).rename(columns={"mean": "gap", "low": "gap_low", "high": "gap_high"})


def clients_frame(advice: Advice) -> pd.DataFrame:
    """One row for each client: the call, its gap, and how often its portfolio took each method."""
    called = advice.decision.clients
    return pd.DataFrame(
        {
            "client": [one.name for one in called],
            "call": [one.call for one in called],
            "gap": [one.gap.mean for one in called],
            "gap_low": [one.gap.low for one in called],
            "gap_high": [one.gap.high for one in called],
            "p": [one.p for one in called],
            "test_rows": [one.rows for one in called],
            **{f"kept_{name}": [advice.kept[one.name][name] for one in called] for name in _kept_names(advice)},
        }
    )


def _kept_names(advice: Advice) -> list[str]:
    return list(next(iter(advice.kept.values())))


def figure_of(advice: Advice) -> Figure:
    """Draw every client's gap to local training with its interval, sorted, coloured by its call."""
    called = sorted(advice.decision.clients, key=lambda one: one.gap.mean)
    figure = blank(7.0, 1.2 + min(0.2 * len(called), 16.0))
    axes = figure.subplots()
    for place, one in enumerate(called):
        colour = _COLOURS[one.call]
        if one.gap.low is not None and one.gap.high is not None:
            axes.plot([one.gap.low, one.gap.high], [place, place], color=colour, linewidth=1.2)
        axes.plot([one.gap.mean], [place], "o", color=colour, markersize=4)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    if len(called) <= 80:
        axes.set_yticks(range(len(called)), [one.name for one in called])
    else:
        axes.set_yticks([])
        axes.set_ylabel(f"{len(called)} clients", fontsize=10)
    axes.set_xlabel(f"test {advice.loss_name}: local training minus federated", fontsize=10)
    tidy(axes)
    beside(figure, [Line2D([], [], color=_COLOURS[call], marker="o", label=_SHOWN[call]) for call in _CALLS])
    lines = [
        f"Points: means over {advice.splits} random divisions; bars: 95 % intervals of each client by itself, "
        "corrected for overlapping divisions. Right of 0 the client gains. Colours allow for the number of clients."
    ]
    caption(figure, lines)
    return figure


def advice_dict(advice: Advice) -> dict[str, Any]:
    """An advice as `report.json`, with one comparison: every client's gain over local training, which has gain 0."""
    decision, about, made = advice.decision, advice.about, advice.made
    leaks, one = findings_of(about.audit), conclusion_of(advice)
    taken = [takes(advice)] if decision.outcome in ("shared", "personal") else []
    gain = {
        "column": f"gain in {advice.loss_name}",
        "percent": False,
        "higher": True,
        "unit": 1,
        "task": about.task,
        "bounds": (),
    }
    return plain(
        {
            "version": VERSION,
            "experiment": about.name,
            "title": f"Advice: {about.name}",
            **dict.fromkeys(("source", "protocol", "across", "after_test", "verdict"), ""),
            "description": " ".join(taken),
            **of_conclusion(one),
            "missing": ["An advice compares frozen choices: there are no curves and no files of models to show."],
            "command": advice.command,
            "made_with": [["date", str(made["time"])[:10]], *([k, v] for k, v in made["packages"].items() if v)],
            "seeds": [],
            "leaks": leaks,
            "chosen": [rule_text(advice)],
            "reading": [],
            "how_to_read": [columns_text(advice).replace("`", "'")],
            "verdicts": {},
            "published": False,
            "metrics": {"gain": {**gain, "task": about.task}},
            "ranks": None,
            "runs": [],
            "cells": [{**_cell(advice), **of_conclusion(one), "about": "used"}],
        }
    )


def _chips(advice: Advice) -> list[Chip]:
    """Who gains and who loses, tested, and how it was made."""
    calls = [client.call for client in advice.decision.clients]
    gains, loses, rest = (calls.count(call) for call in _CALLS)
    wrong = "On average at most 5 % of the named clients are named wrongly."
    leaks = leak_words(findings_of(advice.about.audit))
    made = "Every division draws new training, validation and test rows for each client."
    return [
        Chip("gains", f"{gains} of {len(calls)} clients gain, tested", f"{rest} are inconclusive. {wrong}"),
        Chip("loses", f"{loses} of {len(calls)} clients lose, tested", _loser(advice)),
        Chip("made", f"{advice.splits} divisions, {leaks}", made),
    ]


def _loser(advice: Advice) -> str:
    """The client with the lowest mean gap to local training."""
    known = [client for client in advice.decision.clients if np.isfinite(client.gap.mean)]
    if not known:
        return "No client has a gap to local training."
    worst = min(known, key=lambda client: client.gap.mean)
    gap = worst.gap
    how, side = ("Smallest gain", "lower") if gap.mean >= 0 else ("Largest loss", "higher")
    if side == "higher":
        low, high = (None if end is None else -end for end in (gap.high, gap.low))
        gap = replace(gap, mean=-gap.mean, low=low, high=high)
    noise = "beyond noise" if worst.call == "loses" else "within noise"
    return (
        f"{how}: {isolated(worst.name)}, {advice.loss_name} {side} than with local training by "
        f"{plain_difference(gap)}, {worst.rows} test rows, {noise}."
    )


def _cell(advice: Advice) -> dict[str, Any]:
    """The one comparison. Its metric is the gain: by how much the test loss is lower than with local training."""
    head, *rows = table_rows(advice)
    titles = [title_of(advice, line.name) for line in advice.lines]
    used = title_of(advice, advice.decision.method)
    advised = f"{used}, as advised"  # in each division the method that its validation rows choose
    flags = {"unit": "", "help": columns_text(advice), "marked": False, "printed": True, "page": True, "once": False}
    return {
        "id": "advice",
        "title": f"Gain over local training: {used}",
        "task": advice.about.task,
        "metric": "gain",
        "metrics": ["gain"],
        "notes": list(advice.notes),
        "settings": [["divisions", str(advice.splits)], ["rounds at most", str(advice.rounds)]],
        "methods": [
            {"key": f"k{i}", "title": t, "shown": t, "name": "", "color": i, "muted": False, "traffic": None}
            for i, t in enumerate([*titles, advised])
        ],
        "models": [
            {"key": f"m{i}", "method": f"k{i}", "model": line.kind, "title": titles[i], "dash": []}
            for i, line in enumerate(advice.lines)
        ]
        + [{"key": "used", "method": f"k{len(titles)}", "model": "federated", "title": advised, "dash": []}],
        "lines": [],
        "table": {
            "title": f"{advice.about.name}: test rows of {advice.splits} divisions",
            "columns": [{"title": title or "method", "numeric": i > 1, **flags} for i, title in enumerate(head)],
            "rows": [
                {
                    "model": f"m{i}",
                    "best": line.name == advice.decision.method,
                    "first": True,
                    "cells": [
                        {"text": text, "sort": sort, "bold": False}
                        for text, sort in zip(row, [*row[:2], *_numbers(advice, line)], strict=True)
                    ],
                }
                for i, (line, row) in enumerate(zip(advice.lines, rows, strict=True))
            ],
            "notes": [],
        },
        "tables": [_calls(advice)],
        "curves": None,
        "clients": _clients_json(advice),
        "graphs": [],
        "sweep": None,
    }


def _numbers(advice: Advice, line: Line) -> list[float | None]:
    """What the columns of numbers are sorted by."""
    second = line.accuracy if advice.about.task == "classification" else advice.scale * math.sqrt(line.loss)
    gap = (None, None, None) if line.gap is None else (line.gap.mean, line.hurt, line.surely)
    return [line.loss, second, *gap, line.rounds]


def _calls(advice: Advice) -> dict[str, Any]:
    """Every client's call with its interval."""

    def row(one: ClientCall) -> list[str]:
        return [one.name, _SHOWN[one.call], plain_difference(one.gap), f"{one.p:.2g}", str(one.rows)]

    header = ["client", "call", "gain [95 %]", "p", "test rows of a division"]
    return {"title": "Who gains, who loses", "header": header, "rows": [row(one) for one in advice.decision.clients]}


def _clients_json(advice: Advice) -> dict[str, Any]:
    """The clients' gains, with the sizes and labels of the first division."""
    called, about = advice.decision.clients, advice.about
    local = next(f"m{i}" for i, line in enumerate(advice.lines) if line.kind == _ALONE)
    people = Census(about.clients, about.train, about.test, about.classes, about.counts, about.quantiles)
    return {
        "names": list(about.clients),
        "train": list(people.train),
        "test": list(people.test),
        "skew": skew(people),
        "labels": {"names": list(people.classes), "counts": [list(row) for row in people.counts]}
        if people.counts
        else None,
        "label_values": [list(row) for row in people.quantiles] if people.quantiles else None,
        "scores": {local: [0] * len(called), "used": [one.gap.mean for one in called]},
        "half": {local: [None] * len(called), "used": [None] * len(called)},
        "local": local,
        "shared": None,
        "beyond": {"used": [_SIGNS[one.call] for one in called]},
        "distances": None,
        "confusion": None,
        "confusion_note": "",
        "residuals": None,
    }
