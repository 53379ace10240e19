"""What was measured of a method: its lines in the tables under results/, beside training alone and FedAvg."""

import csv
from functools import cache
from pathlib import Path

from idiolect import experiments
from idiolect.core.errors import ConfigError
from idiolect.metrics.registry import METRICS

ROOT = Path(__file__).parents[2]
PROTOCOLS = ("as-written", "as-published")
MOST = 8
"""Lines of a card's table; a link leads to the others."""
Row = dict[str, str]


@cache
def tables() -> dict[str, list[Row]]:
    """The rows of every table.csv under results/, by folder; a row's `name` is the method's, where that is known."""
    found: dict[str, list[Row]] = {}
    for file in sorted((ROOT / "results").rglob("table.csv")):
        folder = file.parent.relative_to(ROOT / "results").as_posix()
        names = labels(folder)
        with file.open() as lines:
            found[folder] = [
                {**row, "name": names.get(row["method"], row["method"])} for row in csv.DictReader(lines)
            ]
    return found


def labels(folder: str) -> dict[str, str]:
    """A folder's labels of methods and the names they stand for, from the packaged experiment that it is of."""
    for protocol in PROTOCOLS:
        stem = folder.removesuffix(f"-{protocol}")
        if stem != folder or protocol == PROTOCOLS[0]:
            try:
                cells = experiments.packaged(stem, protocol).cells
            except ConfigError:
                continue
            return {method.title: method.name for cell in cells for method in cell.methods}
    return {}


def chosen(name: str) -> list[tuple[str, list[Row]]]:
    """(folder, rows of the method's first model) of the folders that show it: papers' tables, not variations of it.

    Folders where it stands under other labels (a study of its settings) count where there is no other one; what a
    published code does is left out where the same was measured as written.
    """
    found: list[tuple[str, list[Row]]] = []
    for folder, rows in tables().items():
        own = [row for row in rows if row["method"] == name] or [row for row in rows if row["name"] == name]
        if name == "fedavg" and not own:
            own = [row for row in rows if (row["method"], row["model"]) == ("fedavg-ft", "global")]
        first = {row["cell"]: row["model"] for row in reversed(own)}
        found += [(folder, [row for row in own if row["model"] == first[row["cell"]]])] if own else []
    labelled = [one for one in found if one[1][0]["method"] in (name, f"{name}-ft") and "/fig" not in one[0]] or found
    written = {folder.removesuffix("-as-written") for folder, _ in labelled if folder.endswith("-as-written")}
    kept = [
        one for one in labelled if "-as-published" not in one[0] or one[0][: -len("-as-published")] not in written
    ]
    return sorted(kept, key=lambda one: not one[0].startswith(f"{name}/"))  # its own paper's tables first


def measured(name: str) -> str:
    """The section of a card: a table with the report of each line, or that nothing was measured."""
    found = chosen(name)
    if not found:
        return "Not measured: no table under [results](../../results/README.md) has it."
    lines: list[str] = []
    for folder, rows in turns(found):
        for row in rows:
            others = [beside(folder, row, other) for other in (("local", "local"), ("fedavg", "global"))]
            label = "" if row["method"] in (name, f"{name}-ft") else f", {row['method']}"
            metric = "" if row["metric"] == "accuracy" else f", {row['metric']}"
            report = f"[{folder}](../../results/{folder}/report.md)"
            words = [report, row["cell"] + label + metric, f"`{row['model']}`", row["seeds"], score(row), *others]
            lines.append(f"| {' | '.join(words)} |")
    head = ["| report | cell | model | seeds | score | Local | FedAvg |", "|---|---|---|---|---|---|---|"]
    whole = sum(len(rows) for _, rows in found)
    others = f"These are {MOST} of {whole} lines. [All results](../../results/README.md) have every table."
    more = [others, ""] if whole > MOST else []
    note = (
        "Accuracy in %, or the metric that is named, over all clients' test samples, in the round that the report "
        "names; mean ± half of the 95 % interval over seeds (Student's t). Local: local training. FedAvg: its one "
        "model. A dash: not in that table. Settings are those of the report."
    )
    return "\n".join([*head, *lines, "", *more, note])


def turns(found: list[tuple[str, list[Row]]]) -> list[tuple[str, list[Row]]]:
    """Return at most `MOST` lines: half of them of the first report, and the others of all in turns."""
    kept = [0 for _ in found]
    kept[0] = min(MOST // 2, len(found[0][1]))
    while sum(kept) < MOST and (left := [at for at, (_, rows) in enumerate(found) if kept[at] < len(rows)]):
        kept[min(left, key=lambda at: kept[at])] += 1
    return [(folder, rows[: kept[at]]) for at, (folder, rows) in enumerate(found) if kept[at]]


def beside(folder: str, row: Row, other: tuple[str, str]) -> str:
    """The score of another method's model in the same cell; FedAvg's is also that of `fedavg-ft` before its steps."""
    method, model = other
    if row["name"] == method:
        return "·"
    for name in (method, f"{method}-ft"):
        for one in tables()[folder]:
            if (one["method"], one["model"], one["cell"]) == (name, model, row["cell"]):
                return score(one)
    return "—"


def score(row: Row) -> str:
    """Mean and half of its 95 % interval over seeds, in the units of the metric."""
    if not row["pooled"] or row["pooled"] == "nan":
        return "diverged" if int(row["failed"] or 0) else "—"
    percent = METRICS[row["metric"]].percent
    scale, digits = (100.0, ".2f") if percent else (1.0, ".4g")
    mean = format(scale * float(row["pooled"]), digits)
    return f"{mean} ± {format(scale * float(row['pooled_ci95']), digits)}" if int(row["seeds"]) > 1 else mean
