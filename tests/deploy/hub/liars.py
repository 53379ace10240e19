"""Sites that lie, on the breast-cancer table in four sites: what each lie costs the three honest ones.

`python -m tests.deploy.hub.liars` prints the tables of docs/sites.md.
"""

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
ROBUST: Mapping[str, Any] = {"robust": 3.0, "weight_cap": 0.25}
"""What docs/sites.md recommends for four sites that do not trust each other."""
SETTINGS: Mapping[str, Mapping[str, Any]] = {"no guard": OFF, "default": {}, "robust": ROBUST}
METHODS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "FedAvg": ({"name": "fedavg"}, ("global",)),
    "Ditto": ({"name": "ditto"}, ("personal", "global")),
    "pFedMe, weights by rows": ({"name": "pfedme", "weighting": "size"}, ("personal", "global")),
    "pFedMe": ({"name": "pfedme"}, ("personal", "global")),
}

Lie = Callable[[str, int, Message, Vectors], Message]
"""(task, round, the honest answer, what the site has received) -> the answer that is sent."""


@cache
def data(seed: int = 0) -> FederatedData:
    """The table of scikit-learn, standardised, in four sites with these rows, drawn by the seed."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - np.mean(x, axis=0)) / np.std(np.asarray(x), axis=0)).astype("f4")
    order, parts, start = np.random.default_rng(seed).permutation(len(y)), {}, 0
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
    "400 MB": lie(lambda round, sent, received: np.broadcast_to(np.float32(0), 100_000_000)),
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
LIES: Mapping[str, Lie] = {"none": HONEST, **OUT, **WITHIN}
MOST = 2.0
"""Points that a lie may cost."""


@dataclass(frozen=True)
class Ended:
    """A run's end. accuracy: model -> test accuracy of the three honest sites in %, at the last evaluation.

    named: rounds whose line names the liar as missing, refused or left out; apart: rounds in which its update had
    no influence; others: honest sites that were missing in any round; rolled: (from, to, without) of each rollback;
    error: its.
    """

    accuracy: Mapping[str, float]
    named: int
    apart: int
    others: Sequence[str]
    rolled: Sequence[tuple[int, int, Sequence[str]]]
    error: str = ""


def ended(
    method: str,
    told: Lie,
    folder: Path,
    guard: Mapping[str, Any] = {},
    rounds: int = ROUNDS,
    seed: int = 0,
    liar: str = LIAR,
) -> Ended:
    """Run one method with one lie at one site. guard: settings of the hub's, see `guard.GuardSettings`."""
    drawn, spec = data(seed), METHODS[method][0]
    experiment = experiment_of([spec], rounds=rounds, eval_every=5, metric="accuracy")
    experiment = experiment.model_copy(update={"first_seed": seed})
    hub, error = hub_of(folder / "hub", experiment, drawn, guard=dict(guard), quorum=2), ""
    try:
        run_hub(hub, Liar(InProcess(sites_of(folder, drawn)), told, liar))
    except Exception as raised:
        error = str(raised)
    return measured(hub, method, seed, liar, error)


def measured(hub: Path, method: str, seed: int = 0, liar: str = LIAR, error: str = "") -> Ended:
    """What a hub's folder says of a run that has ended."""
    (spec, models), drawn = METHODS[method], data(seed)
    scores = scores_of(hub, f"t/{spec['name']}/seed{seed}")
    last = max(round for round, _, _ in scores)
    honest = [place for place, site in enumerate(drawn.clients) if site != liar]
    accuracy = dict[str, float]()
    for model in models:
        score = scores[last, model, "test"]
        accuracy[model] = 100 * float(np.average(score.values["accuracy"][honest], weights=score.count[honest]))
    lines = participation(hub)
    rolled = [(line["round"], line["rollback"], line["without"]) for line in lines if "rollback" in line]
    refused = [site for line in lines for site in line.get("missing", {})]
    apart = sum(liar in line.get("apart", {}) for line in lines)
    return Ended(accuracy, refused.count(liar), apart, sorted({*refused} - {liar}), rolled, error)


@cache
def run(method: str, told: str, setting: str, seed: int, rounds: int) -> Ended:
    """One run; a lie's cost needs the honest one, which many lies share."""
    with tempfile.TemporaryDirectory() as folder:
        return ended(method, LIES[told], Path(folder), SETTINGS[setting], rounds, seed)


def cost(method: str, told: str, setting: str, seeds: int, rounds: int) -> float:
    """Points of the model that loses most, beside honest runs without any guard."""

    def mean(told: str, setting: str) -> Mapping[str, float]:
        runs = [run(method, told, setting, seed, rounds).accuracy for seed in range(seeds)]
        return {model: sum(one[model] for one in runs) / seeds for model in runs[0]}

    honest, lie = mean("none", "no guard"), mean(told, setting)
    return max(honest[model] - lie[model] for model in honest)


def main() -> None:
    """Print the tables: the accuracy of the three honest sites, and how the liar was named."""
    print(f"| method | lie | {' | '.join(SETTINGS)} | named |\n|---|---|{'---|' * (len(SETTINGS) + 1)}")
    for method in METHODS:
        for name, told in LIES.items():
            runs = dict[str, Ended]()
            for setting, guard in SETTINGS.items():
                with tempfile.TemporaryDirectory() as folder:
                    runs[setting] = ended(method, told, Path(folder), guard)
            cells = [", ".join(f"{value:.1f}" for value in run.accuracy.values()) for run in runs.values()]
            print(f"| {method} | {name} | {' | '.join(cells)} | {_named(runs)} |", flush=True)


def _named(runs: Mapping[str, Ended]) -> str:
    default, robust = runs["default"], runs["robust"]
    found = [f"left out at round {to}, after round {at}" for at, to, _ in default.rolled]
    found += [f"refused in {default.named} rounds"] * bool(default.named)
    found += [f"robust: refused in {robust.named}, apart in {robust.apart}"] * bool(robust.named + robust.apart)
    return "; ".join(found) or "no"


if __name__ == "__main__":
    main()
