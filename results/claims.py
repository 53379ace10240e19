"""The comparisons of comparisons.md: differences paired by seed, from the folders' clients.csv."""

import math
import tomllib
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from idiolect.report.text import MISSING, p_value
from idiolect.study.analyse.intervals import Difference, holm, paired
from idiolect.study.analyse.ranks import average_ranks, critical_difference
from results.scores import HERE, pooled, step


@dataclass(frozen=True)
class Claim:
    """One comparison in one cell: the difference "one" minus "other" in points of accuracy; p is Holm's over all."""

    text: str
    folder: str
    cell: str
    difference: Difference
    p: float


def claims() -> list[Claim]:
    """The comparisons of claims.toml, each in the cells that it names, or in all cells that have both models."""
    found: list[tuple[str, str, str, Difference]] = []
    for entry in tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))["claims"]:
        for folder in entry["folders"]:
            other_folder = entry.get("other_folder", folder)
            scores, others = pooled(folder), pooled(other_folder)
            both = [cell for cell, name in scores if name == entry["one"] and (cell, entry["other"]) in others]
            cells = entry.get("cells", both)
            if not cells:
                raise SystemExit(f"claims.toml: {folder} has no cell with {entry['one']} and {entry['other']}")
            for cell in cells:
                one, other = scores[cell, entry["one"]], others[cell, entry["other"]]
                seeds = sorted(one.keys() & other.keys())
                steps = step(folder)[cell, entry["one"]], step(other_folder)[cell, entry["other"]]
                sides = [[side[seed] for seed in seeds] for side in (one, other)]
                difference = paired(sides[0], sides[1], resolution=max(steps))
                found.append((entry["text"], folder, cell, difference))
    adjusted = holm([1.0 if difference.p is None else difference.p for *_, difference in found])
    return [Claim(*claim, math.nan if claim[-1].p is None else p) for claim, p in zip(found, adjusted, strict=True)]


def ranks() -> str:
    """The average ranks of claims.toml as a table, the best method of each line first. Each data set counts once."""
    head = "| average ranks, each data set counts once | cells | data sets | critical difference, by data set |"
    lines = [f"{head} method, rank |", "|---|---:|---:|---:|---|"]
    for entry in tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))["ranks"]:
        rows, data = list[list[float]](), list[str]()
        for folder in entry["folders"]:
            scores = pooled(folder)
            cells = [cell for cell, name in scores if name == entry["names"][0]]
            rows += [[fmean(scores[cell, name].values()) for name in entry["names"]] for cell in cells]
            data += [next(name for name in entry["data"] if cell.startswith(name)) for cell in cells]
        averages, _ = average_ranks(np.array(rows), data)
        critical = critical_difference(len(entry["names"]), len(set(data)))
        order = sorted(zip(averages.tolist(), entry["names"], strict=True))
        told = ", ".join(f"{name} {rank:.2f}" for rank, name in order)
        lines.append(f"| {entry['text']} | {len(rows)} | {len(set(data))} | {critical:.2f} | {told} |")
    return "\n".join(lines) + "\n"


def ends(difference: Difference) -> str:
    """The 95 % interval, or why there is none."""
    if difference.low is None or difference.high is None:
        return f"{MISSING} ({difference.why})"
    return f"{difference.low:+.2f} to {difference.high:+.2f}"


def markdown() -> str:
    """All comparisons as a table; then the ranks."""
    lines = ["| comparison | cell | points | 95 % | p | seeds |", "|---|---|---:|---|---:|---:|"]
    before = ""
    for claim in claims():
        text, d = f"{claim.text} ([folder]({claim.folder}/report.md))", claim.difference
        lines.append(
            f"| {text if text != before else ''} | {claim.cell} | {d.mean:+.2f} | {ends(d)} "
            f"| {p_value(claim.p)} | {d.count} |"
        )
        before = text
    return "\n".join(lines) + "\n\n" + ranks()
