"""The methods' average ranks over all cells of an experiment, as a section of its report."""

from idiolect.report import text
from idiolect.study.ranks import ranks_of
from idiolect.study.results import Results


def ranks_text(results: Results) -> str:
    """Write the section in Markdown; empty where there are too few cells or methods in common."""
    ranks = ranks_of(results)
    if ranks is None:
        return ""
    rows = "\n".join(
        f"| {method} | {model} | {rank:.2f} |"
        for (method, model), rank in zip(ranks.names, ranks.averages, strict=True)
    )
    alike = "" if ranks.data == ranks.cells else (
        f" These {ranks.cells} cells are of {ranks.data} data sets only, so they are no {ranks.cells} independent "
        "trials, and the test is too sure of itself."
    )  # fmt: skip
    return (
        f"## Ranks over {ranks.cells} cells\n\n"
        f"| method | model | average rank |\n| --- | --- | ---: |\n{rows}\n\n"
        f"1 is the best. Two methods differ at 5 % where their ranks are {ranks.critical:.2f} apart or more "
        "(Nemenyi's critical difference, over all pairs); Friedman's test that all are alike: "
        f"p = {text.p_value(ranks.p)}.{alike} Source: Demšar, JMLR 2006."
    )
