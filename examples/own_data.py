"""Train on a table of your own: one row per sample, one column that names the client, one column to predict.

Run: python examples/own_data.py [ROUNDS]
"""

import sys

import numpy as np
import pandas as pd

import idiolect

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50

# A stand-in for your table: pd.read_csv("patients.csv"), or pass the file's name to from_table.
rng = np.random.default_rng(0)
table = pd.DataFrame(
    {
        "hospital": rng.choice(["north", "south", "east", "west"], 400),
        "age": rng.integers(20, 90, 400),
        "smoker": rng.choice(["yes", "no"], 400),
    }
)
limit = table["hospital"].map({"north": 45, "south": 50, "east": 60, "west": 65})
table["outcome"] = np.where(table["age"] + 10 * (table["smoker"] == "yes") > limit, "ill", "well")

data = idiolect.data.from_table(table, client="hospital", label="outcome")
print(data)

run = idiolect.run(data, "mlr", idiolect.Ditto(rate=0.05), rounds=rounds)
print(run.table("personal").sort_values("accuracy"))  # one line per hospital, the lowest accuracy first

model = run.client_model("personal", "north")
new = pd.DataFrame({"age": [35, 80], "smoker": ["no", "yes"]})
print(new.assign(outcome=model.predict(new)))  # predictions in the table's own words
