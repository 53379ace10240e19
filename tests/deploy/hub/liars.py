"""Sites that lie, on the breast-cancer table in four sites: what each lie costs the three honest ones.

`python -m tests.deploy.hub.liars` prints the table of docs/what-leaves.md.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, Vector, Vectors
from idiolect.deploy.transport import HubTransport, InProcess, Replies
from tests.deploy.federation import experiment_of, hub_of, participation, scores_of, sites_of

SIZES = (275, 185, 80, 29)
LIAR = "site-4"
ROUNDS = 60
OFF: Mapping[str, Any] = {"scale": None, "most_rows": 2_000_000_000, "rollbacks": 0}
"""A hub without a guard."""
METHODS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "FedAvg": ({"name": "fedavg"}, ("global",)),
    "Ditto": ({"name": "ditto"}, ("personal", "global")),
    "pFedMe, weights by rows": ({"name": "pfedme", "weighting": "size"}, ("personal", "global")),
    "pFedMe": ({"name": "pfedme"}, ("personal", "global")),
}

Lie = Callable[[str, int, Message, Vectors], Message]
"""(task, round, the honest answer, what the site has received) -> the answer that is sent."""


@cache
def data() -> FederatedData:
    """The table of scikit-learn, standardised, in four sites with these rows."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - np.mean(x, axis=0)) / np.std(np.asarray(x), axis=0)).astype("f4")
    order, parts, start = np.random.default_rng(0).permutation(len(y)), {}, 0
    for number, rows in enumerate(SIZES, 1):
        chosen = order[start : start + rows]
        parts[f"site-{number}"], start = (x[chosen], y[chosen]), start + rows
    return from_arrays(parts)


class Liar:
    """A transport in which one site lies."""

    def __init__(self, inner: HubTransport, lie: Lie, site: str = LIAR) -> None:
        self.inner, self.lie, self.site = inner, lie, site

    @property
    def sites(self) -> Sequence[str]:
        return self.inner.sites

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        got = self.inner.call(round, messages, deadline=deadline)
        if self.site in got.replies:
            task = str(messages[self.site].header["task"])
            got.replies[self.site] = self.lie(task, round, got.replies[self.site], messages[self.site].vectors)
        return got


def lie(change: Callable[[int, Vector, Vector], Vector], once: bool = False) -> Lie:
    """Change every vector of a round's message: (round, message, what was received) -> vector. once: in round 4."""

    def answer(task: str, round: int, honest: Message, received: Vectors) -> Message:
        if task != "round" or (once and round != 3):
            return honest
        return Message(
            honest.header, {name: change(round, v, received[f"view/{name}"]) for name, v in honest.vectors.items()}
        )

    return answer


def claiming(rows: int, then: Lie) -> Lie:
    """Claim so many training rows."""

    def answer(task: str, round: int, honest: Message, received: Vectors) -> Message:
        if task == "join":
            return Message({"samples": {**honest.header["samples"], "train": rows}})
        return then(task, round, honest, received)

    return answer


def noise(round: int, sent: Vector, received: Vector) -> Vector:
    """A random update of the honest update's size."""
    drawn = np.random.default_rng(round).normal(size=sent.shape)
    return (received + drawn * np.linalg.norm(sent - received) / np.linalg.norm(drawn)).astype(sent.dtype)


HONEST = lie(lambda round, sent, received: sent)
OUT: Mapping[str, Lie] = {
    "-100 times its model": lie(lambda round, sent, received: -100 * sent),
    "1e9 rows, -1 times its model": claiming(10**9, lie(lambda round, sent, received: -sent)),
    "1e30 once": lie(lambda round, sent, received: np.full_like(sent, 1e30), once=True),
    "3e38 once": lie(lambda round, sent, received: np.full_like(sent, 3e38), once=True),
    "NaN": lie(lambda round, sent, received: sent * np.nan),
    "a wrong shape": lie(lambda round, sent, received: sent[..., :1]),
    "float64": lie(lambda round, sent, received: sent.astype(np.float64)),
    "400 MB": lie(lambda round, sent, received: np.zeros(100_000_000, np.float32)),
}
"""Lies that are out of scale, or no message of the method."""
WITHIN: Mapping[str, Lie] = {
    "-1 times its model": lie(lambda round, sent, received: -sent),
    "-1 times its update": lie(lambda round, sent, received: 2 * received - sent),
    "-2 times its update": lie(lambda round, sent, received: 3 * received - 2 * sent),
    "-3 times its update": lie(lambda round, sent, received: 4 * received - 3 * sent),
    "-9 times its update": lie(lambda round, sent, received: 10 * received - 9 * sent),
    "a model of zeros": lie(lambda round, sent, received: 0 * sent),
    "noise as large as its update": lie(noise),
}
"""Finite lies that need not be out of scale."""


@dataclass(frozen=True)
class Ended:
    """A run's end. accuracy: model -> test accuracy of the three honest sites in %, at the last evaluation.

    named: rounds whose line names the liar as refused; rolled: (from, to, without) of each rollback; error: its.
    """

    accuracy: Mapping[str, float]
    named: int
    rolled: Sequence[tuple[int, int, Sequence[str]]]
    error: str = ""


def ended(method: str, told: Lie, folder: Path, guard: Mapping[str, Any] = {}, rounds: int = ROUNDS) -> Ended:
    """Run one method with one lie at the fourth site. guard: settings of the hub's, see `guard.GuardSettings`."""
    spec, models = METHODS[method]
    experiment = experiment_of([spec], rounds=rounds, eval_every=5, metric="accuracy")
    hub, error = hub_of(folder / "hub", experiment, data(), guard=dict(guard), quorum=2), ""
    try:
        run_hub(hub, Liar(InProcess(sites_of(folder, data())), told))
    except Exception as raised:
        error = str(raised)
    scores = scores_of(hub, f"t/{spec['name']}/seed0")
    last = max(round for round, _, _ in scores)
    found = {model: scores[last, model, "test"] for model in models}
    accuracy = {
        model: 100 * float(np.average(score.values["accuracy"][:3], weights=np.maximum(score.count[:3], 1)))
        for model, score in found.items()
    }
    lines = participation(hub)
    rolled = [(line["round"], line["rollback"], line["without"]) for line in lines if "rollback" in line]
    return Ended(accuracy, sum(LIAR in line.get("refused", {}) for line in lines), rolled, error)


def main() -> None:
    """Print the table."""
    print("| method | lie | accuracy without the guard | accuracy | named |\n|---|---|---|---|---|")
    for method in METHODS:
        for name, told in {"none": HONEST, **OUT, **WITHIN}.items():
            with tempfile.TemporaryDirectory() as folder:
                off, on = (ended(method, told, Path(folder) / str(i), g) for i, g in enumerate((OFF, {})))
            cells = [", ".join(f"{model} {value:.1f}" for model, value in one.accuracy.items()) for one in (off, on)]
            rolled = [f"left out at round {to}, after round {at}" for at, to, _ in on.rolled]
            named = [f"in {on.named} of {ROUNDS} rounds"] if on.named else []
            print(
                f"| {method} | {name} | {cells[0]} | {cells[1]} | {'; '.join(named + rolled) or 'no'} |", flush=True
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
