"""What is measured: the same work for every system, as data."""

from dataclasses import dataclass, replace
from typing import Any

from benchmarks.counts import Counts, gradient_counts, scoring_counts

PFEDME = {
    "name": "pfedme",
    "rate": 0.01,
    "inner_rate": 0.02,
    "prox_weight": 15.0,
    "local_steps": 20,
    "inner_steps": 5,
    "batch_size": 20,
}
FEDAVG = {"name": "fedavg", "rate": 0.01, "batch_size": 20}
MLR: dict[str, Any] = {"name": "mlr"}
MLP: dict[str, Any] = {"name": "mlp", "hidden": [100]}
CNN: dict[str, Any] = {
    "name": "cnn",
    "channels": [32, 64],
    "kernel": 5,
    "padding": "VALID",
    "pool": 2,
    "dense": [512],
}
OMNIGLOT: dict[str, Any] = {
    "name": "omniglot-cnn",
    "channels": [64] * 4,
    "kernel": 3,
    "padding": "SAME",
    "pool": 2,
    "dense": [],
}
SKIP = "idiolect trains the 5 that are aggregated; the published code, and so its peer here, all 20: same result"


@dataclass(frozen=True)
class Workload:
    """One kind of round. method: as in an experiment file; cohort: the clients that are aggregated.

    samples: each client's training samples, and its test samples where the method is "evaluate". rounds: how many
    rounds make one timed repeat. peers: the systems that can do it besides idiolect.
    """

    name: str
    title: str
    method: dict[str, Any]
    model: dict[str, Any]
    clients: int
    samples: int
    cohort: int
    shape: tuple[int, ...] = (784,)
    classes: int = 10
    rounds: int = 1
    peers: tuple[str, ...] = ("torch", "torch-func")
    note: str = ""

    @property
    def evaluates(self) -> bool:
        """Whether a round scores models and trains none."""
        return self.method["name"] == "evaluate"

    @property
    def steps(self) -> int:
        """Outer steps of one client in a round: mini-batches, or steps on all its samples."""
        batch, epochs = self.method.get("batch_size", 0), self.method.get("epochs", 0)
        return epochs * -(-self.samples // batch) if epochs else self.method.get("local_steps", 1)

    @property
    def trained(self) -> int:
        """Clients that the published code trains in a round: pFedMe's trains all."""
        return self.clients if self.method["name"] == "pfedme" else self.cohort

    @property
    def gradients(self) -> int:
        """Gradients of one sample's loss that one client takes in a round."""
        batch, epochs = self.method.get("batch_size", 0), self.method.get("epochs", 0)
        if self.evaluates:
            return 0
        if self.method["name"] == "pflego":  # the head's steps are negligible beside the body's one
            return self.samples
        if epochs:
            return epochs * self.samples
        return self.steps * self.method.get("inner_steps", 1) * (batch or self.samples)

    @property
    def counts(self) -> Counts:
        """Operations and bytes of one round of the method, with only the aggregated clients training."""
        if self.evaluates:
            one = scoring_counts(self.model, self.shape, self.classes, self.samples)
        else:
            updates = self.steps * self.method.get("inner_steps", 1)
            if self.method["name"] == "pflego":
                updates = 1
            batch = self.method.get("batch_size", 0)
            drawn = self.steps * batch if batch else self.samples
            one = gradient_counts(self.model, self.shape, self.classes, self.gradients, updates, drawn)
        if self.method["name"] == "pflego":  # one more forward pass, for the features
            one = Counts(one.operations * 4 / 3, one.bytes)
        return Counts(one.operations * self.cohort, one.bytes * self.cohort)


WORKLOADS: tuple[Workload, ...] = (
    Workload("W1", "pFedMe, MLR, all 20 of 2,600 train", PFEDME, MLR, 20, 2600, 20, rounds=2),
    Workload("W1s", "the same, 5 aggregated", PFEDME, MLR, 20, 2600, 5, rounds=4, note=SKIP),
    Workload("W2", "pFedMe, MLP 100, all 20 of 2,600 train", PFEDME, MLP, 20, 2600, 20),
    Workload("W2s", "the same, 5 aggregated", PFEDME, MLP, 20, 2600, 5, rounds=2, note=SKIP),
    Workload(
        "W3",
        "FedAvg, MLR, 10 of 100 x 600, 5 epochs",
        {**FEDAVG, "epochs": 5},
        MLR,
        100,
        600,
        10,
        rounds=2,
        peers=("torch", "torch-func", "fedjax", "pfl", "flower"),
    ),
    Workload(
        "W4",
        "FedAvg, CNN, 10 x 600, one epoch",
        {**FEDAVG, "epochs": 1},
        CNN,
        10,
        600,
        10,
        shape=(28, 28, 1),
        peers=("torch", "torch-func", "fedjax", "pfl", "flower"),
    ),
    Workload(
        "W5",
        "FedAvg, MLP 200, 20 x 600, 50 steps on all samples",
        {"name": "fedavg", "rate": 0.01, "batch_size": 0, "local_steps": 50},
        {"name": "mlp", "hidden": [200]},
        20,
        600,
        20,
    ),
    Workload(
        "W6f",
        "FedAvg, Omniglot's network, 1 of 4 x 64, 50 steps on all samples",
        {"name": "fedavg", "rate": 0.001, "batch_size": 0, "local_steps": 50},
        OMNIGLOT,
        4,
        64,
        1,
        shape=(28, 28, 1),
        classes=32,
    ),
    Workload(
        "W6p",
        "PFLEGO, Omniglot's network, 1 of 4 x 64, tau = 50",
        {"name": "pflego", "rate": 0.003, "head_rate": 0.03, "local_steps": 50},
        OMNIGLOT,
        4,
        64,
        1,
        shape=(28, 28, 1),
        classes=32,
        rounds=3,
        peers=("torch",),
    ),
    Workload(
        "W7",
        "FedU, MLR, all 30 x 250 x 265 features, 5 epochs",
        {"name": "fedu", "rate": 0.01, "coupling": 0.01, "batch_size": 20, "epochs": 5},
        MLR,
        30,
        250,
        30,
        shape=(265,),
        classes=6,
        rounds=2,
    ),
    Workload(
        "W8", "scores of 100 personal MLPs, 100 samples each", {"name": "evaluate"}, MLP, 100, 100, 100, rounds=10
    ),
)


def named(name: str) -> Workload:
    """The workload of this name."""
    return next(work for work in WORKLOADS if work.name == name)


def smaller(work: Workload) -> Workload:
    """The same kind of round with little to do, for a look at whether everything works."""
    method = dict(work.method)
    if "local_steps" in method:
        method["local_steps"] = min(method["local_steps"], 4)
    if "epochs" in method:
        method["epochs"] = min(method["epochs"], 2)
    clients = min(work.clients, 4)
    return replace(
        work,
        method=method,
        clients=clients,
        samples=min(work.samples, 50),
        cohort=max(1, round(work.cohort * clients / work.clients)),
        rounds=1,
    )
