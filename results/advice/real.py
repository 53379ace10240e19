"""Local beside each client's own ridge or logistic regression, on real tables.

    python -m results.advice.real [TABLE ...] --data-dir DIR

DIR holds school/school.mat. Writes real.csv: for each table and candidate the loss, and its gap to Local.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from idiolect.core.files import atomic_write
from idiolect.data import from_table, school
from idiolect.data.federated import FederatedData
from idiolect.report.advice import lines_frame
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.advice.advise import advise
from idiolect.study.advice.draws import TEST, VALIDATION

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "real.csv"
PENGUINS = FOLDER.parents[1] / "docs" / "tutorial" / "penguins.csv"
Table = Callable[[], tuple[pd.DataFrame, str, str]]


def star98() -> tuple[pd.DataFrame, str, str]:
    """303 Californian school districts, clients by tenths of the share of low-income pupils."""
    import statsmodels.api as sm

    frame: Any = sm.datasets.star98.load_pandas().data
    frame["share"] = frame.NABOVE / (frame.NABOVE + frame.NBELOW)
    frame["client"] = pd.Series(pd.qcut(frame.LOWINC, 10, labels=[f"tenth {i}" for i in range(10)])).astype(str)
    return frame.drop(columns=["NABOVE", "NBELOW"]), "client", "share"


def diabetes() -> tuple[pd.DataFrame, str, str]:
    """442 patients, clients by sex and age."""
    from sklearn.datasets import load_diabetes

    data: Any = load_diabetes(as_frame=True, scaled=False)
    frame = data.frame
    age = pd.Series(pd.cut(frame["age"], [0, 40, 55, 100], labels=["to 40", "41 to 55", "over 55"])).astype(str)
    frame["client"] = frame.pop("sex").map({1.0: "sex 1", 2.0: "sex 2"}) + ", " + age
    return frame, "client", "target"


def grunfeld() -> tuple[pd.DataFrame, str, str]:
    """Investment of 11 firms over 20 years, clients by firm."""
    import statsmodels.api as sm

    frame: Any = sm.datasets.grunfeld.load_pandas().data
    return frame, "firm", "invest"


def penguins() -> tuple[pd.DataFrame, str, str]:
    """344 penguins, clients by island, their sex from four measures and the species."""
    frame = pd.read_csv(PENGUINS).dropna(subset=["sex"])
    return frame, "island", "sex"


TABLES: dict[str, Table] = {"star98": star98, "diabetes": diabetes, "grunfeld": grunfeld, "penguins": penguins}


def divisions(table: Table) -> Callable[[int], FederatedData]:
    """A table's division of a seed."""
    frame, client, label = table()

    def make(seed: int) -> FederatedData:
        return from_table(frame, client, label, test=TEST, validation=VALIDATION, split_seed=seed)

    return make


def main() -> None:
    """Ask on every table; write all lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", help="all by default; lines of others stay as they are")
    parser.add_argument("--data-dir", type=Path, help="needed for school")
    given = parser.parse_args()
    use_compilation_cache()
    made = {name: divisions(table) for name, table in TABLES.items()}
    made["school"] = lambda seed: school(given.data_dir, test=TEST, validation=VALIDATION, split_seed=seed)
    for name in given.tables or made:
        advice = advise(made[name], methods=())
        frame = lines_frame(advice.lines)
        frame.insert(0, "table", name)
        frame.insert(1, "clients", advice.about.num_clients)
        print(
            frame[["table", "name", "loss", "accuracy", "gap", "gap_low", "gap_high", "rounds"]].to_string(),
            flush=True,
        )
        before = pd.read_csv(RESULTS, dtype=str) if RESULTS.is_file() else pd.DataFrame()
        others = before[before["table"] != name] if len(before) else before
        with atomic_write(RESULTS) as file:
            file.write(pd.concat([others, frame]).to_csv(index=False, lineterminator="\n").encode())


if __name__ == "__main__":
    main()
