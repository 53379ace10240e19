"""How many published values a comparison reproduces."""

from collections import Counter

from idiolect.study.results import Results


def verdict_summary(results: Results) -> dict[str, int]:
    """Count the published values that are reproduced, differ, diverged, were not run, or were not measured."""
    counts = Counter(line.verdict for line in results.lines if line.published is not None)
    return {verdict: counts[verdict] for verdict in ("reproduced", "differs", "diverged", "not run", "not measured")}


def verdict_sentence(results: Results) -> str:
    """`verdict_summary` as a sentence; empty if there is no published value."""
    counts = verdict_summary(results)
    total = sum(counts.values())
    if not total:
        return ""
    words = {"differs": "differ"}
    parts = ", ".join(
        f"{n} {words.get(verdict, verdict)}"
        for verdict, n in counts.items()
        if n or verdict in ("reproduced", "differs")
    )
    return f"{total} published value{'s' if total > 1 else ''}: {parts}."
