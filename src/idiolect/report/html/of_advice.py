"""The page of an advice: its answer, its table, and each client's gain with what can be told of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from idiolect.report.advice import answer, columns_text, rule_text, table_rows, takes, title_of
from idiolect.report.html.numbers import numbers
from idiolect.report.text import plain_difference
from idiolect.report.view.answers import QUESTIONS, leak_sentence
from idiolect.report.view.clients import skew
from idiolect.report.view.leaks import findings_of
from idiolect.report.view.names import isolated
from idiolect.report.view.parts import Census
from idiolect.study.advice.advise import Advice
from idiolect.study.advice.decision import ClientCall

_TOLD: Mapping[str, int] = {"gains": 1, "loses": -1, "cannot be told": 0}


def advice_payload(advice: Advice) -> dict[str, Any]:
    """The page's data of an advice, one comparison: every client's gain against training alone, 0 by definition."""
    decision, about, made = advice.decision, advice.about, advice.made
    leaks = findings_of(about.audit)
    first, leak = answer(advice).replace("**", ""), leak_sentence(leaks)
    noise, loser = _noise(advice), _loser(advice)
    how = f"Made by: {advice.command}, {advice.splits} random divisions of each client's rows."
    taken = [takes(advice)] if decision.outcome in ("shared", "personal") else []
    return {
        "title": f"Advice: {about.name}",
        "source": "",
        "description": " ".join(taken),
        "protocol": "",
        "answer": [first, noise, f"{loser} {leak}"],
        "questions": [list(pair) for pair in zip(QUESTIONS, (first, noise, loser, leak, how), strict=True)],
        "missing": ["An advice compares frozen choices: there are no curves and no files of models to show."],
        "command": advice.command,
        "made_with": [["date", str(made["time"])[:10]], *([k, v] for k, v in made["packages"].items() if v)],
        "seeds": [],
        "leaks": leaks,
        "chosen": [rule_text(advice)],
        "how_to_read": [columns_text(advice).replace("`", "'")],
        "cells": [{**_cell(advice), "answer": [first, noise, loser]}],
    }


def _noise(advice: Advice) -> str:
    calls = [client.call for client in advice.decision.clients]
    counts = [calls.count(call) for call in ("gains", "loses", "cannot be told")]
    return (
        f"{advice.decision.why[:1].upper()}{advice.decision.why[1:]}; of {len(calls)} clients {counts[0]} gain and "
        f"{counts[1]} lose beyond noise, and {counts[2]} cannot be told (at most 5 % are named wrongly on average)."
    )


def _loser(advice: Advice) -> str:
    """The client whose mean gap to training alone is the lowest."""
    known = [client for client in advice.decision.clients if np.isfinite(client.gap.mean)]
    if not known:
        return "Who loses cannot be said: no client has a gap to training alone."
    worst = min(known, key=lambda client: client.gap.mean)
    name, gap = isolated(worst.name), worst.gap

    def told(sign: int) -> str:
        if gap.low is None or gap.high is None:
            ends = f"no interval: {gap.why}"
        else:
            low, high = sorted((sign * gap.low, sign * gap.high))
            ends = f"95 % interval {low:+.3g} to {high:+.3g}"
        return f"{sign * gap.mean:.3g} ({ends}, {worst.rows} test rows)"

    if gap.mean >= 0:
        return f"No client's mean loss is higher than with training alone; {name} gains least: {told(1)}."
    higher = told(-1)
    noise = "beyond noise" if worst.call == "loses" else "which noise alone may explain"
    return f"{name} loses most, its loss is higher than with training alone by {higher}, {noise}."


def _cell(advice: Advice) -> dict[str, Any]:
    """The one comparison. Its metric is the gain: by how much the test loss is lower than with training alone."""
    head, *rows = table_rows(advice)
    titles = [title_of(advice, line.name) for line in advice.lines]
    used = title_of(advice, advice.decision.method)
    advised = f"{used}, as advised"  # in each division the method that its validation rows choose
    gain = f"gain in {advice.loss_name}"
    return {
        "id": "advice",
        "title": f"Gain against training alone: {used}",
        "notes": list(advice.notes),
        "settings": [["divisions", str(advice.splits)], ["rounds at most", str(advice.rounds)]],
        "metric": {
            "name": "gain",
            "column": gain,
            "percent": False,
            "higher": True,
            "task": advice.about.task,
        },
        "methods": [
            {"key": f"k{i}", "title": t, "color": i, "muted": False} for i, t in enumerate([*titles, advised])
        ],
        "models": [
            {"key": f"m{i}", "method": f"k{i}", "model": line.kind, "title": titles[i]}
            for i, line in enumerate(advice.lines)
        ]
        + [{"key": "used", "method": f"k{len(titles)}", "model": "federated", "title": advised}],
        "table": {
            "caption": f"{advice.about.name}: test rows of {advice.splits} divisions",
            "columns": [
                {"title": title or "method", "help": columns_text(advice), "numeric": i > 1}
                for i, title in enumerate(head)
            ],
            "rows": [
                {
                    "model": f"m{i}",
                    "best": advice.lines[i].name == advice.decision.method,
                    "cells": [{"text": text, "sort": _sort(text, k), "bold": False} for k, text in enumerate(row)],
                }
                for i, row in enumerate(rows)
            ],
        },
        "tables": [_calls(advice)],
        "curves": None,
        "clients": _clients(advice),
        "graph": None,
        "graphs": [],
        "sweep": None,
    }


def _sort(text: str, place: int) -> float | str | None:
    """What a cell of the table is sorted by: its first number, in the columns of numbers."""
    if place < 2:
        return text
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None


def _calls(advice: Advice) -> dict[str, Any]:
    """Every client's call with its interval."""

    def row(one: ClientCall) -> list[str]:
        return [one.name, one.call, plain_difference(one.gap), f"{one.p:.2g}", str(one.rows)]

    header = ["client", "call", "gain [95 %]", "p", "test rows of a division"]
    return {"title": "Who gains, who loses", "header": header, "rows": [row(one) for one in advice.decision.clients]}


def _clients(advice: Advice) -> dict[str, Any]:
    """The clients' gains, with the sizes and labels of the first division."""
    called, about = advice.decision.clients, advice.about
    local = next(f"m{i}" for i, line in enumerate(advice.lines) if line.kind == "alone")
    people = Census(about.clients, about.train, about.test, about.classes, about.counts, about.quantiles)
    return {
        "names": list(about.clients),
        "train": list(people.train),
        "test": list(people.test),
        "skew": skew(people),
        "labels": {"names": list(people.classes), "counts": [list(row) for row in people.counts]}
        if people.counts
        else None,
        "label_values": [numbers(row) for row in people.quantiles] if people.quantiles else None,
        "scores": {local: [0] * len(called), "used": numbers(one.gap.mean for one in called)},
        "half": {local: [None] * len(called), "used": [None] * len(called)},
        "local": local,
        "shared": None,
        "beyond": {"used": [_TOLD[one.call] for one in called]},
        "distances": None,
        "confusion": None,
        "confusion_note": "",
        "residuals": None,
    }
