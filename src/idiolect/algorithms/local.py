"""Local and Global: the two baselines between which every personalization method must find its place."""

from typing import ClassVar

from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models
from idiolect.core.tree import Params
from idiolect.data.federated import FederatedData


class Local(Trainer):
    """Local training: each client minimises its own f_i(w_i); nothing is sent.

    A client trains in the rounds in which it is sampled, `local_steps` mini-batch steps each (or `epochs` passes),
    so that it computes exactly as much as under FedAvg with the same cohort. Model: `local` is w_i.
    """

    name: ClassVar[str] = "local"
    title: ClassVar[str] = "Local"
    summary: ClassVar[str] = "local training: every client by itself, no communication"
    source: ClassVar[str] = "baseline"
    model_names: ClassVar[tuple[str, ...]] = ("local",)
    sends: ClassVar[bool] = False

    def init(self, start: Start, key: PRNGKeyArray) -> None:
        """The server keeps nothing."""
        del start, key

    def init_private(self, start: Start, key: PRNGKeyArray) -> Params:
        """All clients start from the same initial model, as the methods they are compared with do."""
        del key
        return start.params

    def local(self, view: None, private: Params, client: Client, key: PRNGKeyArray) -> tuple[None, Params]:
        """No message; the private model after a round of SGD."""
        return None, self.train(private, client, key)

    def aggregate(self, shared: None, cohort: Cohort, messages: None) -> None:
        """Nothing arrives, nothing changes."""

    def models(self, view: PyTree, private: Params, client: Client, key: PRNGKeyArray) -> Models:
        """local: the client's own model."""
        return {"local": private}


class Global(Averaging, Trainer):
    """Global: SGD on all clients' data pooled in one place, what training without privacy would reach.

    rate, local_steps, epochs, batch_size, batches: see `Trainer`. weighting says nothing here: there is one client.

    The pooled data are a federation of one client, which trains every round; `batch_size` is its mini-batch.
    Model: `global`.
    """

    name: ClassVar[str] = "global"
    title: ClassVar[str] = "Global"
    summary: ClassVar[str] = "all data pooled in one place: no privacy"
    source: ClassVar[str] = "baseline"

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """The model after a round of SGD."""
        return self.train(view, client, key), private

    def training_data(self, data: FederatedData) -> FederatedData:
        """All samples as one client."""
        return data.pooled()
