"""A table of several sites with columns of every kind, and what each site holds of it."""

import numpy as np
import pandas as pd

from idiolect.deploy.schema.summarise import summarise


def hospitals(*, label: str = "words", rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """Three sites of different sizes and means; the division stands in the table, so that both fits train alike."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(["north", "south", "west"], [rows, 2 * rows, rows // 2])
    n, shift = len(owners), np.searchsorted(["north", "south", "west"], owners)
    age = rng.normal(50 + 10 * shift, 10, n)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    risk = (age - 60) / 10 + rng.normal(0, 1, n)
    labels = {
        "words": np.where(risk > 0, "ill", "well"),
        "classes": rng.integers(0, 12, n) * (1 + shift),
        "whole floats": rng.integers(0, 4, n).astype(float),
        "many": rng.integers(0, 400, n),
        "amount": 5e4 + 9e3 * risk,
        "true": risk > 0,
        "comma": [f"{value:.3f}".replace(".", ",") for value in risk],
    }
    return pd.DataFrame(
        {
            "client": owners,
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "big": 1e9 + rng.integers(0, 3, n) + 0.5,
            "count": rng.integers(0, 40, n),
            "running": rng.permutation(n),
            "text": np.where(rng.random(n) < 0.1, "unknown", rng.normal(5, 2, n).round(2).astype(str)),
            "comma": [f"{value:.2f}".replace(".", ",") for value in rng.normal(0, 3, n)],
            "either": [f"{value},{500 + value}" for value in rng.integers(1, 9, n)],
            "day": days.strftime("%Y-%m-%d"),
            "european": days.strftime("%d.%m.%Y"),
            "stamp": days,
            "stay": pd.to_timedelta(rng.integers(1, 50, n), unit="h"),
            "smokes": rng.random(n) < 0.3,
            "sex": rng.choice(["f", "m"], n),
            "ward": rng.choice(["a", "b", "c", None], n),
            "only here": np.where(shift == 1, "x", "y"),
            "code": rng.integers(1, 4, n),
            "same": 7,
            "same or missing": np.where(rng.random(n) < 0.3, np.nan, 0.1),
            "empty": np.nan,
            "number": [f"p{k}" for k in rng.permutation(n)],
            "split": rng.choice(["train", "train", "validation", "test"], n),
            "label": labels[label],
        }
    )


def summaries(table: pd.DataFrame, **options):
    """What the sites tell, each from a table of its own."""
    return {
        str(name): summarise(own.reset_index(drop=True), site=str(name), **options)
        for name, own in table.groupby("client", sort=False)
    }
