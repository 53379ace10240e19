"""Local SGD: the hyper-parameters and the steps that most methods share on a client."""

from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Int, PRNGKeyArray

from idiolect.algorithms.base import Algorithm, check
from idiolect.algorithms.parts.solvers import Adjust, sgd, step_count
from idiolect.client.client import BATCH_ORDERS, BatchOrder, Client
from idiolect.core.tree import Params, Scalar


class LocalSteps(Algorithm):
    """A method whose clients make `local_steps` steps a round, or, if epochs > 0, that many passes.

    local_steps: mini-batch steps of a client in a round. epochs: passes over its samples instead, if > 0.
    batch_size: samples of a mini-batch; 0: all the client's samples, exact gradient descent (an epoch is then one
    step). batches: "fresh" draws, passes by "epoch", or "cyclic" order, see `Client.batch`.
    """

    local_steps: int = eqx.field(static=True, default=20)
    epochs: int = eqx.field(static=True, default=0)
    batch_size: int = eqx.field(static=True, default=20)
    batches: BatchOrder = eqx.field(static=True, default="fresh")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, local_steps="count", epochs="whole", batch_size="whole", batches=BATCH_ORDERS)

    def step_count(self, client: Client) -> Int[Array, ""] | int:
        """K_i, the number of a round's steps on a client."""
        return step_count(client, steps=self.local_steps, batch_size=self.batch_size, epochs=self.epochs)


class Rated(Algorithm):
    """A method with one learning rate: its first setting, wherever settings are listed.

    rate: of the clients' steps.
    """

    rate: Scalar = 0.02

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, rate="positive")


class Trainer(LocalSteps, Rated):
    """A method whose clients run SGD with the learning rate `rate`, see `LocalSteps`."""

    def train(
        self,
        params: Params,
        client: Client,
        key: PRNGKeyArray,
        *,
        rate: Scalar | None = None,
        steps: int | None = None,
        momentum: Scalar = 0.0,
        adjust: Adjust | None = None,
        anchors: Sequence[Params] = (),
        fixed: Params | None = None,
    ) -> Params:
        """SGD from `params`, see `sgd`. rate: instead of `rate`; steps: instead of local_steps or epochs."""
        return sgd(
            client,
            params,
            key,
            rate=self.rate if rate is None else rate,
            steps=self.local_steps if steps is None else steps,
            batch_size=self.batch_size,
            order=self.batches,
            epochs=self.epochs if steps is None else 0,
            momentum=momentum,
            adjust=adjust,
            anchors=anchors,
            fixed=fixed,
        )
