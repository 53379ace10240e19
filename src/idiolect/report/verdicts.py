"""How many published values a comparison reproduces."""

from collections import Counter

from idiolect.study.results import Results


def verdict_summary(results: Results) -> dict[str, int]:
    """Lines with a published value: how many are reproduced, differ, diverged, were not run or not measured."""
    counts = Counter(line.verdict for line in results.lines if line.published is not None)
    return {verdict: counts[verdict] for verdict in ("reproduced", "differs", "diverged", "not run", "not measured")}


def verdict_sentence(results: Results) -> str:
    """The same in words; empty if nothing was published."""
    counts = verdict_summary(results)
    total = sum(counts.values())
    if not total:
        return ""
    said = {"differs": "differ"}
    parts = ", ".join(
        f"{n} {said.get(verdict, verdict)}"
        for verdict, n in counts.items()
        if n or verdict in ("reproduced", "differs")
    )
    return f"{total} published value{'s' if total > 1 else ''}: {parts}."
