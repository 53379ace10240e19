"""Flower's simulation: its server, its grid, Ray actors of one core each, its FedAvg's aggregation; PyTorch clients.

The server names the client whose samples a node trains on, so that cohorts are those of the other systems.
"""

import os
import threading
from functools import lru_cache
from queue import Queue
from typing import Any

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"  # before its import, which reads it

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.peers import System
from benchmarks.peers.torch_models import Net, images
from benchmarks.samples import Given, samples
from benchmarks.workloads import Workload


@lru_cache(maxsize=1)
def held(*arguments: Any, alike: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """All samples, once in each actor."""
    x, y = samples(*arguments, alike=alike)
    return torch.from_numpy(images(x)), torch.from_numpy(y)


def trained(message: Message, work: Workload, alike: bool) -> Message:
    """Shuffled epochs of SGD on the samples of the client that the message names."""
    x, y = held(work.clients, work.samples, work.shape, work.classes, alike=alike)
    client = int(message.content["config"]["client"])
    net = Net(work.model, message.content["arrays"].to_numpy_ndarrays())
    optimizer = torch.optim.SGD(net.parameters(), lr=work.method["rate"])
    for _ in range(work.method["epochs"]):
        for rows in torch.randperm(work.samples).split(work.method["batch_size"]):
            optimizer.zero_grad()
            net.loss(x[client, rows], y[client, rows]).backward()
            optimizer.step()
    metrics = MetricRecord({"num-examples": work.samples, "gradients": net.gradients})
    content = RecordDict({"arrays": ArrayRecord(net.arrays()), "metrics": metrics})
    return Message(content=content, reply_to=message)


def client_app(work: Workload, alike: bool) -> ClientApp:
    """The app of every node."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        from benchmarks.peers.flower_peer import trained  # Ray sends this function, and cannot send PyTorch with it

        del context
        return trained(message, work, alike)

    return app


class Simulated:
    """The simulation in a thread that waits for the word before each round."""

    def __init__(self, work: Workload, given: Given) -> None:
        self.gradients = 0
        self._arrays, self._work, self._given = ArrayRecord(list(given.weights)), work, given
        self._go: Queue[bool] = Queue()
        self._done: Queue[Exception | None] = Queue()
        server = ServerApp()
        server.main()(self._serve)
        self._thread = threading.Thread(target=self._simulate, args=(server,), daemon=True)
        self._thread.start()

    def rounds(self, count: int) -> None:
        """Let so many rounds run."""
        for _ in range(count):
            self._go.put(True)
            if (error := self._done.get()) is not None:
                raise error

    def result(self) -> list[np.ndarray]:
        """The shared model."""
        return self._arrays.to_numpy_ndarrays()

    def close(self) -> None:
        """End the simulation."""
        self._go.put(False)
        self._thread.join(60)

    def _simulate(self, server: ServerApp) -> None:
        resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
        try:
            run_simulation(server, client_app(self._work, self._given.alike), self._work.clients, "ray", resources)
            self._done.put(RuntimeError("the simulation ended"))
        except Exception as error:
            self._done.put(error)

    def _serve(self, grid: Grid, context: Context) -> None:
        del context
        strategy = FedAvg(fraction_evaluate=0.0)
        done = 0
        while self._go.get():
            nodes = list(grid.get_node_ids())
            while len(nodes) < self._work.clients:
                nodes = list(grid.get_node_ids())
            messages = [
                Message(
                    content=RecordDict({"arrays": self._arrays, "config": ConfigRecord({"client": int(client)})}),
                    dst_node_id=nodes[client],
                    message_type=MessageType.TRAIN,
                )
                for client in self._given.cohorts[done]
            ]
            replies = list(grid.send_and_receive(messages))
            arrays, _ = strategy.aggregate_train(done + 1, replies)
            if arrays is None or any(reply.has_error() for reply in replies):
                self._done.put(RuntimeError("Flower: a client failed"))
                return
            self._arrays, done = arrays, done + 1
            self.gradients += sum(int(reply.content["metrics"]["gradients"]) for reply in replies)
            self._done.put(None)


def make(work: Workload, given: Given) -> System:
    """The simulation."""
    return Simulated(work, given)
