"""How the published values of an experiment compare with the measured ones, counted."""

from idiolect.study.analyse.outcomes import VERDICTS, Verdict, sentence
from idiolect.study.analyse.results import Results


def verdicts_of(results: Results) -> list[Verdict]:
    """The verdict on every published value."""
    return [line.verdict for line in (*results.lines, *results.further) if line.verdict is not None]


def verdict_summary(results: Results) -> dict[str, int]:
    """How many published values have which verdict."""
    verdicts = verdicts_of(results)
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def verdict_sentence(results: Results) -> str:
    """`verdict_summary` as a sentence; empty if there is no published value."""
    lines = (*results.lines, *results.further)
    differing = [line.published for line in lines if line.verdict == "differs"]
    return sentence(verdicts_of(results), sum(value is not None and bool(value.explained) for value in differing))
