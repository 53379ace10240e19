"""`python -m results`: write cells.csv, and the two tables of README.md that follow from the folders."""

from results import cells, claims
from results.scores import README, between


def page(text: str, summary: str, table: str) -> str:
    """README.md with both tables."""
    return between(between(text, "cells", summary), "claims", table)


if __name__ == "__main__":
    summary = cells.write()
    README.write_text(page(README.read_text(encoding="utf-8"), summary, claims.markdown()), encoding="utf-8")
    print(summary)
