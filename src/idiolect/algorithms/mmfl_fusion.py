"""mmFL with a private fusion head: each client's own way to one prediction from the encoders that all share."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import Start, check
from idiolect.algorithms.parts.body_head import train_head
from idiolect.algorithms.parts.modality_clusters import ModalityClusters, Trained
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Predictor
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.tree import Params, Scalar
from idiolect.models.multimodal import Multimodal, joined
from idiolect.models.parts import separate

_HEAD = 0x68  # the purpose of the head's mini-batches: draws of their own


class Fused(Predictor):
    """h(phi_1(x_1), .., phi_M(x_M)), whichever modalities a sample has. encoders: the phi_m; head: h."""

    encoders: Params
    head: Params

    def bound(self, module: Callable[[Params], Any]) -> Any:
        """The multimodal model with these encoders and this fusion head."""
        return module(tree.merged(self.head, self.encoders))


class MmFLFusion(ModalityClusters):
    """mmFL, and in addition a fusion head h_n of each client, over whichever modalities a sample has.

    A round of client n: mmFL's, and, with the encoders phi as they came from the server and held,
        head_steps times, on a mini-batch: h_n <- h_n - beta grad_h F(h_n(phi_1(x_1), .., phi_M(x_M)))

    The paper has no fusion; the model's head ("concat" or "attention") is private here and never sent.

    head_rate: beta. head_steps: mini-batches of batch_size samples.

    The others: see `ModalityClusters`; mmFL's part of a round is unchanged.

    Models: `fused` is h_n on the server's encoders; `global`, `personal` and those of each modality as `MmFL`'s.

    Source: beyond Rahman, Nguyen, "Multimodal Federated Learning with Model Personalization", 2024.
    """

    name: ClassVar[str] = "mmfl-fusion"
    title: ClassVar[str] = "mmFL + fusion"
    summary: ClassVar[str] = "mmFL, and private heads that fuse a client's modalities"
    source: ClassVar[str] = "beyond Rahman, Nguyen, 2024"
    model_names: ClassVar[tuple[str, ...]] = ("fused", "global", "personal")

    head_rate: Scalar = 0.1
    head_steps: int = eqx.field(static=True, default=20)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, head_rate="positive", head_steps="count")

    def check_start(self, start: Start) -> None:
        """Refuse a model without a fusion head, and what mmFL refuses."""
        has_head = isinstance(start.params, Multimodal) and start.params.fusion is not None
        require(has_head, "mmfl-fusion needs a model with a fusion head: set fusion = 'concat' or 'attention'")
        super().check_start(start)

    def init_private(self, start: Start, key: PRNGKeyArray) -> Params:
        """The client's fusion head, as the initial model has it."""
        del key
        return separate(start.params, "fusion")[1]

    def local(
        self, view: dict[str, Params], private: Params, client: Client, key: PRNGKeyArray
    ) -> tuple[dict[str, Trained], Params]:
        """Message: mmFL's. Private: the fusion head."""
        message, _ = super().local(view, None, client, key)
        head = train_head(
            client,
            joined(view),
            private,
            jax.random.fold_in(key, _HEAD),
            rate=self.head_rate,
            steps=self.head_steps,
            batch_size=self.batch_size,
        )
        return message, head

    def models(self, view: dict[str, Params], private: Params, client: Client, key: PRNGKeyArray) -> Models:
        """The fused model, and mmFL's."""
        others: PyTree = super().models(view, None, client, key)
        return {"fused": Fused(joined(view), private), **others}
