"""Captions of figures: what lines, bands, marks and bars are, and over how many seeds."""

from collections.abc import Iterable, Sequence

from idiolect.report.text import SPREAD
from idiolect.report.view.parts import Part


def seed_counts(parts: Iterable[Part]) -> list[int]:
    """The number of finished seeds of every method that is drawn and has any."""
    counts = [(title, counts.get("done", 0), part) for part in parts for title, counts in part.statuses.items()]
    return [done for title, done, part in counts if done and (not part.only[0] or title in part.only[0])]


def seeds_text(counts: Sequence[int], planned: int) -> str:
    """Say how many seeds there are: "5 seeds"; "3 to 5 finished of 5 seeds" where methods differ."""
    low, high = min(counts, default=0), max(counts, default=0)
    if low == high == planned:
        return "one seed" if planned == 1 else f"{planned} seeds"
    return f"{low if low == high else f'{low} to {high}'} finished of {planned} seeds"


def coincide_caption(stacks: Iterable[str]) -> str:
    """Say which lines coincide; empty if none do. stacks: the names of each group of lines, one a line."""
    groups = [names.replace("\n", " = ") for names in stacks]
    return f"lines that coincide: {'; '.join(groups)}" if groups else ""


def spread_caption(marks: str, spread: str, counts: Sequence[int], planned: int) -> str:
    """Say what marks are over seeds, and what their spread, such as bands; a single seed has no spread."""
    seeds = seeds_text(counts, planned)
    if max(counts, default=0) < 2:
        return f"{marks}: {seeds}"
    none = ", none for a single seed" if min(counts) == 1 else ""
    return f"{marks}: mean of {seeds}; {spread}: ± {SPREAD}{none}"


def sentence(line: str) -> str:
    """A line of a caption as a sentence of plain text."""
    words = line.replace(r"\$", "$").strip()
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith(('.', '!', '?')) else '.'}"
