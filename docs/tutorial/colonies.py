"""Make the tutorial's three tables of penguins.csv."""

import pandas as pd

penguins = pd.read_csv("penguins.csv").dropna(subset=["body_mass_g"])  # of two nothing was measured
penguins["colony"] = penguins.pop("species") + " " + penguins.pop("island")
unknown, later = penguins["sex"].isna(), penguins["colony"] == "Chinstrap Dream"
penguins[~unknown & ~later].to_csv("colonies.csv", index=False)
penguins[unknown].drop(columns="sex").to_csv("unknown.csv", index=False)
penguins[later].to_csv("later.csv", index=False)
