"""Apple's pfl: its federated averaging, PyTorch model and simulated backend; it takes samples in their order."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByUser
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Weighted
from pfl.model.pytorch import PyTorchModel

from benchmarks.peers import System
from benchmarks.peers.torch_models import Net, images, use_faster_threads
from benchmarks.samples import Given, samples
from benchmarks.workloads import Workload


class Module(Net):
    """With the metrics that pfl asks of a model."""

    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        """The loss, not counted."""
        with torch.no_grad():
            return {"loss": Weighted(torch.nn.functional.cross_entropy(self(x), y).item() * len(y), len(y))}


class Averaging:
    """One training that is continued."""

    def __init__(self, work: Workload, given: Given) -> None:
        x, y = samples(work.clients, work.samples, work.shape, work.classes, alike=given.alike)
        features, labels = torch.from_numpy(images(x)), torch.from_numpy(y)
        held = [PyTorchTensorDataset((features[i], labels[i]), user_id=str(i)) for i in range(work.clients)]
        order = iter(given.cohorts.ravel().tolist())
        data = FederatedDataset(held.__getitem__, lambda: next(order))
        self.work, self.done = work, 0
        self.net = Module(work.model, given.weights)
        # It evaluates its first round and no other.
        self.model = PyTorchModel(self.net, torch.optim.SGD, torch.optim.SGD(self.net.parameters(), lr=1.0))
        self.backend = SimulatedBackend(data, data, [WeightByUser()])
        self.algorithm = FederatedAveraging()

    @property
    def gradients(self) -> int:
        """As the module counts them."""
        return self.net.gradients

    def rounds(self, count: int) -> None:
        """Go on for so many central iterations."""
        self.done += count
        method = self.work.method
        self.algorithm.run(
            NNAlgorithmParams(self.done, 10**9, self.work.cohort, 0),
            self.backend,
            self.model,
            NNTrainHyperParams(
                local_batch_size=method["batch_size"],
                local_num_epochs=method["epochs"],
                local_learning_rate=method["rate"],
            ),
            NNEvalHyperParams(local_batch_size=None),
            send_metrics_to_platform=False,
        )

    def result(self) -> list[np.ndarray]:
        """The shared model."""
        return self.net.arrays()

    def close(self) -> None:
        """Nothing to let go of."""


def make(work: Workload, given: Given) -> System:
    """The training, with the number of threads that is faster for it here and now."""
    start = replace(given, cohorts=np.zeros((4, 1), np.int64))
    trial = Averaging(replace(work, clients=1, cohort=1), start)
    use_faster_threads(lambda: trial.rounds(1))
    return Averaging(work, given)
