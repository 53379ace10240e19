"""Small made tables with columns of every kind, for tests of all that starts from a table."""

import numpy as np
import pandas as pd


def wards(*, rows: int = 20, regression: bool = False, seed: int = 0) -> pd.DataFrame:
    """Patients of three wards with age, sex, a dose with gaps, a split, and a label that depends on age and ward."""
    rng = np.random.default_rng(seed)
    count = 3 * rows
    ward = np.repeat(["north", "south", "west"], rows)
    age = rng.normal(50, 10, count).round(1)
    shift = np.repeat([-1.0, 0.0, 1.0], rows)
    risk = (age - 50) / 10 + shift + rng.normal(0, 0.5, count)
    dose = np.where(rng.uniform(size=count) < 0.1, np.nan, rng.uniform(0, 5, count).round(2))
    return pd.DataFrame(
        {
            "ward": ward,
            "age": age,
            "sex": rng.choice(["f", "m"], count),
            "dose": dose,
            "split": np.resize(["train", "train", "train", "test", "train"], count),
            "label": (50_000 + 9_000 * risk).round(2) if regression else np.where(risk > 0, "ill", "well"),
        }
    )
