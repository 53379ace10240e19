"""The methods' average ranks over the data sets of an experiment, as a section of its report."""

import math

from idiolect.report import text
from idiolect.study.analyse.ranks import Ranks, ranks_of
from idiolect.study.analyse.results import Results


def ranks_text(results: Results) -> str:
    """Write the section in Markdown; empty where there are too few cells or methods in common."""
    ranks = ranks_of(results)
    if ranks is None:
        return ""
    rows = "\n".join(
        f"| {method} | {model} | {rank:.2f} |"
        for (method, model), rank in zip(ranks.names, ranks.averages, strict=True)
    )
    return (
        f"{heading(ranks)}\n\n| method | model | average rank |\n| --- | --- | ---: |\n{rows}\n\n{explanation(ranks)}"
    )


def heading(ranks: Ranks) -> str:
    """The section's heading, which says how many data sets there are."""
    return f"## Ranks over {ranks.data} data set{'s' if ranks.data > 1 else ''} ({ranks.cells} cells)"


def explanation(ranks: Ranks) -> str:
    """What the ranks are, and which of them differ."""
    parts = ["1 is the best."]
    if ranks.data < ranks.cells:
        parts.append(
            "Cells of one data set are no independent trials: their ranks are averaged first, and each data set "
            "counts once."
        )
    parts.append(
        f"Two methods differ at 5 % where their ranks are {ranks.critical:.2f} apart or more (Nemenyi's critical "
        f"difference, over all pairs of methods and {ranks.data} data set{'s' if ranks.data > 1 else ''})."
    )
    if ranks.averages[-1] - ranks.averages[0] < ranks.critical:
        parts.append("No two methods are so far apart, so these ranks show no difference.")
    if not math.isnan(ranks.p):
        parts.append(f"Friedman's test that all are alike: p = {text.p_value(ranks.p)}.")
    return " ".join([*parts, "Source: Demšar, JMLR 2006."])
