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

from idiolect.core.files import write_text
from idiolect.core.rights import make_folder
from idiolect.report.advice_words import (
    ALONE,
    POLICIES,
    alone_words,
    columns_text,
    kept_names,
    named,
    rule_text,
    takes,
    title_of,
    trees_words,
    uses_text,
)
from idiolect.report.style import GREY, HIT, MISS, beside, blank, caption, save, tidy
from idiolect.report.text import MISSING, bare, isolated, plain_difference, value
from idiolect.report.view.as_json import VERSION, of_conclusion, plain, skew
from idiolect.report.view.conclusion import Chip, Conclusion, leak_words
from idiolect.report.view.leaders import findings_of
from idiolect.report.view.parts import Census
from idiolect.study.advice.advise import Advice, Line
from idiolect.study.advice.blend import BLEND
from idiolect.study.advice.decision import FEWEST_OF_CLIENT, Call, ClientCall
from idiolect.study.advice.policies import BY_SIZE, CHOSEN, PORTFOLIO
from idiolect.study.advice.stored import store_advice
from idiolect.study.analyse.intervals import Difference

_KINDS = {
    ALONE: "local training",
    "shared": "one shared model",
    "personal": "a model for each client",
    BLEND: "each client's mix of all methods",
    PORTFOLIO: "each client's choice of a method",
    BY_SIZE: "one method, for small clients only",
    CHOSEN: "one choice for all clients",
    "pooled": "needs all rows in one place",
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
    less = f"{100 * gain.mean / decision.loss:.1f} % lower test loss than {alone_words(advice)}"
    falling = any("still falling" in note for note in advice.notes)
    kind, words = {
        "shared": ("use", f"Use one model for all ({title}): {less}."),
        "personal": ("use", f"{POLICIES.get(decision.method, f'Use {title}')}: {less}."),
        ALONE: ("local", f"Do not federate: {alone_words(advice)} is as good or better."),
        "unclear": ("inconclusive", f"Inconclusive: {'train more rounds' if falling else 'collect more rows'}."),
    }[decision.outcome]
    numbers = (
        f"{about.num_clients} clients, {about.rows:,} rows, {advice.splits} divisions; {title}: test loss "
        f"{_signed(gain, decision.loss)} compared with {alone_words(advice)}"
    )
    if words_on_trees := trees_words(advice):
        numbers += f"; {words_on_trees}"
    return Conclusion(kind, words, numbers, (*_chips(advice),), None)  # pyright: ignore[reportArgumentType]


def _signed(gain: Difference, loss: float) -> str:
    """The change of the loss as a share of what clients reach by themselves, with its interval."""
    mean = f"{-100 * gain.mean / loss:+.1f} %"
    if gain.low is None or gain.high is None:
        return f"{mean} (no interval: {gain.why})"
    return f"{mean} (95 % interval {-100 * gain.high / loss:+.1f} to {-100 * gain.low / loss:+.1f})"


def page(advice: Advice, figure: bool = True) -> str:
    """The whole page in Markdown. figure: with the link to the figure, which a terminal does not show."""
    decision, about = advice.decision, advice.about
    under = {"shared": "the shared model", "personal": "its personal model"}.get(
        decision.outcome, "the best federated model"
    )
    if decision.method in POLICIES:
        under = f"`{decision.method}`"
    parts = [
        f"# Advice: {about.name}",
        answer(advice),
        f"{about.num_clients} clients, {about.rows} rows, {advice.splits} random divisions of each client's rows "
        "(55 % training, 20 % validation, 25 % test).",
        *([takes(advice)] if decision.federates else []),
        f"## Who gains, who loses\n\nWith {under}, compared with {alone_words(advice)}. On average at most 5 % of "
        "the named clients are named wrongly.",
        _clients(advice),
        *([f"## Which client uses what\n\n{uses_text(advice)}"] if decision.federates else []),
        "## What was compared\n",
        _table(advice),
        columns_text(advice),
        *(["![every client's gap](advice.png)"] if figure else []),
        f"## How it was decided\n\n{rule_text(advice)}",
        "## Notes\n\n" + "\n".join(f"- {note}" for note in advice.notes),
    ]
    return "\n\n".join(parts) + "\n"


def _clients(advice: Advice) -> str:
    called = advice.decision.clients
    lines: list[str] = []
    for call in _CALLS:
        names = [client.name for client in called if client.call == call]
        lines.append(f"- {_SHOWN[call]}: {len(names)} ({named(names)})" if names else f"- {_SHOWN[call]}: none")
    if few := [client.name for client in called if client.rows < FEWEST_OF_CLIENT]:
        lines.append(f"- inconclusive with fewer than {FEWEST_OF_CLIENT} test rows: {named(few)}")
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
    kind = _KINDS.get(line.name) or _KINDS.get(line.kind, line.kind)
    return [name, kind, value(line.loss), second, gap, *hurt, MISSING if line.rounds is None else f"{line.rounds:g}"]


def write_advice(advice: Advice, out: Path) -> None:
    """Write advice.md, advice.csv, clients.csv, advice.png and advice.svg into a folder, which is made.

    advice.json comes last: where it is, all is there.
    """
    make_folder(out, shared=True)
    for name, frame in (("advice.csv", lines_frame(advice.lines)), ("clients.csv", clients_frame(advice))):
        write_text(out / name, frame.to_csv(index=False, lineterminator="\n"), shared=True)
    save(figure_of(advice), out / "advice.png")
    write_text(out / "advice.md", page(advice), shared=True)
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
            **{f"kept_{name}": [advice.kept[one.name][name] for one in called] for name in kept_names(advice)},
        }
    )


def figure_of(advice: Advice) -> Figure:
    """Draw every client's gap to what it reaches by itself, with its interval, sorted, coloured by its call."""
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
    axes.set_xlabel(f"test {advice.loss_name}: {alone_words(advice)} minus federated", fontsize=10)
    tidy(axes)
    beside(figure, [Line2D([], [], color=_COLOURS[call], marker="o", label=_SHOWN[call]) for call in _CALLS])
    lines = [
        f"Points: means over {advice.splits} random divisions; bars: 95 % intervals of each client by itself, "
        "corrected for overlapping divisions. Right of 0 the client gains. Colours allow for the number of clients."
    ]
    caption(figure, lines)
    return figure


def advice_dict(advice: Advice) -> dict[str, Any]:
    """An advice as `report.json`, with one comparison: every client's gain over what it reaches by itself."""
    decision, about, made = advice.decision, advice.about, advice.made
    leaks, one = findings_of(about.audit), conclusion_of(advice)
    taken = [takes(advice)] if decision.federates else []
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
    """The client with the lowest mean gap to what it reaches by itself."""
    known = [client for client in advice.decision.clients if np.isfinite(client.gap.mean)]
    if not known:
        return f"No client has a gap to {alone_words(advice)}."
    worst = min(known, key=lambda client: client.gap.mean)
    gap = worst.gap
    how, side = ("Smallest gain", "lower") if gap.mean >= 0 else ("Largest loss", "higher")
    if side == "higher":
        low, high = (None if end is None else -end for end in (gap.high, gap.low))
        gap = replace(gap, mean=-gap.mean, low=low, high=high)
    noise = "beyond noise" if worst.call == "loses" else "within noise"
    return (
        f"{how}: {isolated(worst.name)}, {advice.loss_name} {side} than with {alone_words(advice)} by "
        f"{plain_difference(gap)}, {worst.rows} test rows, {noise}."
    )


def _cell(advice: Advice) -> dict[str, Any]:
    """The one comparison. Its metric is the gain: by how much the test loss is lower than without."""
    head, *rows = table_rows(advice)
    titles = [title_of(advice, line.name) for line in advice.lines]
    used = title_of(advice, advice.decision.method)
    advised = f"{used}, as advised"  # in each division the method that its validation rows choose
    flags = {"unit": "", "help": columns_text(advice), "marked": False, "printed": True, "page": True, "once": False}
    return {
        "id": "advice",
        "title": f"Gain over {alone_words(advice)}: {used}",
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
    local = next(f"m{i}" for i, line in enumerate(advice.lines) if line.name == advice.decision.alone)
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
