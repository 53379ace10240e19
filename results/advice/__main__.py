"""Ask for advice on federations whose truth is known, and count how often it is right.

    python -m results.advice [--draws 100] [--task regression]

Rows are added to truth-TASK.csv as they are made; the same command goes on where it stopped.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.advice.advise import Advice, advise
from results.scores import rows_of

FOLDER = Path(__file__).parent
METHODS = {"regression": ("ditto", "mocha"), "classification": ("ditto", "fedavg-ft")}  # beside local, fedavg
TRUTHS = ("alike", "worlds", "groups", "small", "few", "mixed")
OUTSIDERS = 5  # of the clients of "mixed"
CLIENTS, ROWS, FEATURES = 20, 40, 12
ROUNDS = 30
COLUMNS: tuple[str, ...] = (
    "truth",
    "draw",
    "right",
    "outcome",
    "method",
    "gain",
    "low",
    "high",
    "local_loss",
    "gains",
    "loses",
    "small",
)


def federation(truth: str, draw: int, task: str) -> FederatedData:
    """Draw a federation of linear clients, x ~ N(0, I), |w_i| = 2.

    alike: one w for all. worlds: each its own, little noise. groups: two w, at right angles, half of the clients
    each. small: alike, and the first client has 5 rows. few: alike, 4 clients of 12 rows. mixed: one w for 15
    clients, -w for the last 5, so that the shared model helps the 15 and harms the 5.
    Regression: y = w_i x + noise, deviation 1.5 (worlds: 0.7). Classification: the sign of w_i x + logistic noise.
    """
    rng = np.random.default_rng([draw, TRUTHS.index(truth)])

    def weights() -> np.ndarray:
        return 2 * np.linalg.qr(rng.normal(size=(FEATURES, 2)))[0].T

    count, rows = (4, 12) if truth == "few" else (CLIENTS, ROWS)
    noise = 0.7 if truth == "worlds" else 1.5
    common = weights()
    clients: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for i in range(count):
        w = weights()[0] if truth == "worlds" else common[i % 2 if truth == "groups" else 0]
        w = -w if truth == "mixed" and i >= CLIENTS - OUTSIDERS else w
        n = 5 if truth == "small" and i == 0 else rows
        x = rng.normal(size=(n, FEATURES))
        if task == "regression":
            y = x @ w + noise * rng.normal(size=n)
        else:
            y = (x @ w + 0.5 * noise * rng.logistic(size=n) > 0).astype(np.int64)
        clients[f"client {i:02d}"] = (x, y)
    return from_arrays(clients, title=truth, task=task)


def is_right(truth: str, advice: Advice) -> bool:
    """Whether the advice says what is true; of the small client it must say that it cannot be told.

    mixed: a model for each is right. So is the shared model for those whom it helps, if the advice names at least one
    of the others as losing. No client of either kind may be named as the opposite.
    """
    outcome, calls = advice.decision.outcome, [client.call for client in advice.decision.clients]
    if truth == "small":
        return outcome == "shared" and calls[0] == "cannot be told"
    if truth == "mixed":
        many, others = calls[:-OUTSIDERS], calls[-OUTSIDERS:]
        warned = outcome == "personal" or (outcome == "shared" and "loses" in others)
        return warned and "loses" not in many and "gains" not in others
    return outcome == {"alike": "shared", "worlds": "alone", "groups": "personal", "few": "unclear"}[truth]


def row_of(truth: str, draw: int, task: str) -> dict[str, Any]:
    """Ask on one federation."""
    advice = advise(federation(truth, draw, task), methods=METHODS[task], rounds=ROUNDS, with_baselines=False)
    decision = advice.decision
    calls = [client.call for client in decision.clients]
    gain = decision.gain
    values = (
        truth,
        draw,
        int(is_right(truth, advice)),
        decision.outcome,
        decision.method,
        *(f"{value:.6f}" for value in (gain.mean, gain.low, gain.high, decision.loss)),
        calls.count("gains"),
        calls.count("loses"),
        calls[0] if truth == "small" else "",
    )
    return dict(zip(COLUMNS, values, strict=True))


def main() -> None:
    """Make the draws that the file does not have yet, and print the count of right answers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--task", choices=("regression", "classification"), default="regression")
    given = parser.parse_args()
    path = FOLDER / f"truth-{given.task}.csv"
    use_compilation_cache()
    done = rows_of("advice", path.name) if path.exists() else []
    known = {(row["truth"], int(row["draw"])) for row in done}
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not known:
            writer.writeheader()
        for draw in range(given.draws):
            for truth in TRUTHS:
                if (truth, draw) not in known:
                    writer.writerow(row_of(truth, draw, given.task))
                    file.flush()
    rows = rows_of("advice", path.name)
    for truth in TRUTHS:
        right = [int(row["right"]) for row in rows if row["truth"] == truth]
        print(f"{truth}: {sum(right)} of {len(right)} right")


if __name__ == "__main__":
    main()
