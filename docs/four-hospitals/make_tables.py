"""Write the synthetic table of one hospital: `python make_tables.py north` writes patients.csv.

Four hospitals of different sizes. The chance of the outcome depends on the columns in the same way everywhere, except
that a marker of inflammation means less in the west. No row is of a person. The standard library is enough.
"""

import csv
import math
import random
import sys

ROWS = {"north": 275, "south": 185, "east": 140, "west": 120}
LABELS = {"north": "outcome", "south": "diagnosis", "east": "outcome", "west": "outcome"}


def rows(site: str) -> list[dict[str, str]]:
    """The rows of a hospital; the same at each call."""
    draw, found = random.Random(f"four hospitals: {site}"), []
    for number in range(1, ROWS[site] + 1):
        age, crp = draw.gauss(58, 14), draw.lognormvariate(1.8, 0.9)
        pressure, smoker = draw.gauss(132, 16), draw.random() < 0.3
        marker = (0.35 if site == "west" else 0.9) * (math.log(crp) - 1.8)
        score = 0.06 * (age - 58) + marker + 0.02 * (pressure - 132) + 0.8 * smoker - 0.4
        ill = draw.random() < 1 / (1 + math.exp(-1.6 * score))
        values = {"patient": f"{site}-{number}", "age": f"{age:.0f}", "smoker": "yes" if smoker else "no"}
        values |= {"crp": f"{crp:.1f}", "pressure": f"{pressure:.0f}", LABELS[site]: "ill" if ill else "well"}
        found.append(values)
    return found


def main(site: str) -> None:
    """Write patients.csv in the current folder."""
    table = rows(site)
    with open("patients.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    print(f"patients.csv: {len(table)} rows, label column '{LABELS[site]}'")


if __name__ == "__main__":
    main(sys.argv[1])
