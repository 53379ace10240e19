"""PFLEGO's Table 3 as multiples of PFLEGO's seconds: seconds of another machine do not compare, ratios do."""

import csv
from dataclasses import dataclass

from results.scores import HERE, rows_of

FOLDER, FIRST = "pflego/table3", "PFLEGO"
MARGIN = 0.25
"""A measured ratio differs where it is further from the published one than this share of it. The margin is ours."""


@dataclass(frozen=True)
class Ratio:
    """How many times PFLEGO's seconds a method's round takes: measured in one run, and published."""

    method: str
    measured: float
    published: float

    @property
    def differs(self) -> bool:
        """Whether the measured ratio is beyond the margin."""
        return abs(self.measured - self.published) > MARGIN * self.published


def ratios() -> list[Ratio]:
    """The ratio of every other method of Table 3, in the paper's order."""
    with (HERE / "targets.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["paper"], row["table"]) == ("PFLEGO", "Table 3")]
    published = {row["algorithm"]: float(row["value"]) for row in rows}
    measured = {row["method"]: float(row["seconds"]) for row in rows_of(FOLDER)}
    return [
        Ratio(name, measured[name.lower()] / measured[FIRST.lower()], published[name] / published[FIRST])
        for name in published
        if name != FIRST
    ]


def markdown() -> str:
    """How many of the ratios differ, and each of them, as a table."""
    found = ratios()
    differ = sum(ratio.differs for ratio in found)
    margin = f"{100 * MARGIN:.0f} %"
    lines = [
        f"These numbers do not include {len(found)} ratios that follow from PFLEGO's Table 3, whose seconds are of",
        "another machine: how many times PFLEGO's seconds the round of another method takes.",
        f"**{differ} of the {len(found)} differ** by more than {margin} of the published one; no run explains why",
        "([one run](pflego/README.md#table-3-seconds-a-round-on-omniglot)).",
        "",
        "| | " + " | ".join(ratio.method for ratio in found) + " |",
        "|---|" + "---:|" * len(found),
        "| measured | " + " | ".join(f"{ratio.measured:.1f}" for ratio in found) + " |",
        "| published | " + " | ".join(f"{ratio.published:.1f}" for ratio in found) + " |",
    ]
    return "\n".join(lines) + "\n"
