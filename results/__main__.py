"""`python -m results`: make the folders small; write cells.csv and the tables of README.md and comparisons.md."""

from pathlib import Path

from results import cells, claims, compact, ratios
from results.scores import COMPARISONS, README, between


def pages(summary: str) -> dict[Path, str]:
    """README.md and comparisons.md with their tables, by file."""
    readme, comparisons = (file.read_text(encoding="utf-8") for file in (README, COMPARISONS))
    readme = between(between(readme, "cells", summary), "ratios", ratios.markdown())
    return {README: readme, COMPARISONS: between(comparisons, "claims", claims.markdown())}


if __name__ == "__main__":
    print(compact.write())
    summary = cells.write()
    for file, text in pages(summary).items():
        file.write_text(text, encoding="utf-8")
    print(summary)
