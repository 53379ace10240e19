"""FedPer and LG-FedAvg: joint local SGD on the whole model, of which one part is averaged and the other stays."""

from typing import ClassVar

from jaxtyping import PRNGKeyArray

from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.body_head import Parted
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.core import tree
from idiolect.core.tree import Params


class FedPer(Parted, Averaging, Trainer):
    """FedPer: FedAvg on the base layers B, while each client keeps personalization layers P_i of its own.

    A round on client i: (B_i, P_i) <- local SGD on f_i from (B, P_i). The server: B <- sum_{i in S} p_i B_i.

    head: the personalization layers; head_init: see `Parted`; PFLEGO's published code (sotirisnik/PFLEGO, `b24b905`,
    main.py, line 846) has "uniform", drawn by each client. rate, local_steps, epochs, batch_size, batches: the
    clients' SGD, see `Trainer`. weighting, server_optimizer, server_rate: see `Averaging`. With an empty head it is
    FedAvg; with nothing but a head, Local.

    Model: `personal` is B with the client's P_i. A new client trains only P_i, with B held, since no
    server would follow what its steps do to B.

    Source: Arivazhagan et al., "Federated Learning with Personalization Layers", 2019, Algorithms 1 and 2.
    """

    name: ClassVar[str] = "fedper"
    title: ClassVar[str] = "FedPer"
    summary: ClassVar[str] = "FedAvg on the body, private heads trained with it"
    source: ClassVar[str] = "Arivazhagan et al., 2019, arXiv:1912.00818, Algorithms 1 and 2"

    def local(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> tuple[Params, Params]:
        """Message: the part that is shared, after local SGD on the whole model; private: the other part."""
        return self.part(self.train(tree.merged(private, view), client, key))

    def new_round(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> Params:
        """A round of SGD on P_i, B held."""
        return self.train(private, client, key, fixed=view)


class LGFedAvg(Parted, Averaging, Trainer):
    """LG-FedAvg: each client learns its own representation, the lower layers l_i; the layers g above are shared.

    A round on client i: (l_i, g_i) <- local SGD on f_i from (l_i, g). The server: g <- sum_{i in S} p_i g_i. It is
    FedPer with the parts exchanged.

    head: the SHARED layers; head_init: how the private rest of the model starts, see `Parted`.
    rate, local_steps, epochs, batch_size, batches: the clients' SGD, see `Trainer`. weighting, server_optimizer,
    server_rate: see `Averaging`.

    The paper's experiments start from a model that FedAvg has trained, and its optional auxiliary and adversarial
    losses are not part of the method here.

    Model: `personal` is the client's l_i under g. A new client trains only l_i, with g held.

    Source: Liang et al., "Think Locally, Act Globally: Federated Learning with Local and Global Representations",
    2020, Algorithm 1.
    """

    name: ClassVar[str] = "lg-fedavg"
    title: ClassVar[str] = "LG-FedAvg"
    summary: ClassVar[str] = "private lower layers under a shared, averaged head"
    source: ClassVar[str] = "Liang et al., 2020, arXiv:2001.01523, Algorithm 1"

    def part(self, params: Params) -> tuple[Params, Params]:
        """(layers above, representation): what is shared, and what is not."""
        body, head = super().part(params)
        return head, body

    def local(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> tuple[Params, Params]:
        """Message: the layers above, after local SGD on the whole model; private: the representation."""
        return self.part(self.train(tree.merged(private, view), client, key))

    def new_round(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> Params:
        """A round of SGD on l_i, g held."""
        return self.train(private, client, key, fixed=view)
